"""The command line: ``gpu-metrics-adapter``.

Exit codes: 0; 1 if something is wrong or has failed; 2 if it could not look, and for a wrong word,
option or setting.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from click.shell_completion import get_completion_class

from adapter import __version__
from adapter.config.process.output import say, whole_output
from adapter.tools.client.options import (
    ACCESS,
    FILE,
    NAMESPACE,
    NearestChoice,
    SharedOption,
    ToolGroup,
    ends,
    join_options,
)
from adapter.tools.conformance.commands import conformance
from adapter.tools.doctor.command import doctor
from adapter.tools.explain.commands import explain
from adapter.tools.generate.commands import generate
from adapter.tools.idle.commands import idle
from adapter.tools.idle.costcommand import costs
from adapter.tools.maintain.commands import maintain
from adapter.tools.migrate.commands import migrate
from adapter.tools.replay.commands import replay
from adapter.tools.top.commands import top
from adapter.tools.ui.commands import ui

if TYPE_CHECKING:  # importing it takes half a second, which most commands do not need
    from adapter.config.settings import Settings

_PROGRAM: Final = "gpu-metrics-adapter"

_YOUNG: Final = 20_000
"""New objects that start a garbage collection. The imports of a command make 100,000 that stay:
with Python's 700, visiting them takes up to a fifth of a command's start."""

_CONFIG = click.option(
    "--config",
    type=FILE,
    envvar="GMA_CONFIG",
    help="YAML file with settings (docs/settings.md lists them); also GMA_CONFIG.",
)


# Settings, as text: the environment and the file of --config set them too.
_KUBECONFIG = click.option(
    "--kubeconfig", cls=SharedOption, metavar="FILE", help="Kubeconfig, outside a cluster."
)
_CONTEXT = click.option(
    "--context", cls=SharedOption, metavar="NAME", help="Context of the kubeconfig."
)


class _SettingOption(click.Option):
    """An option for a setting. ``{key}`` in its help text is the default of that setting."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help text."""
        from adapter.config.settings import Settings  # noqa: PLC0415 - takes half a second

        names, text = super().get_help_record(ctx) or ("", "")
        return names, text.format(**dict(Settings()))


_LOG = join_options(
    click.option(
        "--log-level",
        cls=_SettingOption,
        type=NearestChoice(["debug", "info", "warning", "error"]),
        help="Lowest level to log [{log.level}].",
    ),
    click.option(
        "--log-format",
        cls=_SettingOption,
        type=NearestChoice(["auto", "console", "json"]),
        help="Log format [{log.format}]; auto: console on a terminal, otherwise JSON.",
    ),
)


class _Program(ToolGroup):
    """The command line of a process of its own."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run a command. Without arguments it is that of the process, and not one of others'."""
        if not arguments:
            gc.set_threshold(_YOUNG)
        return super().__call__(*arguments, **named)

    def main(self, *arguments: Any, **named: Any) -> Any:
        """Run a command, and write all of its output."""
        with whole_output():
            return super().main(*arguments, **named)


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@join_options(ACCESS, NAMESPACE)
@click.version_option(__version__, prog_name=_PROGRAM)
def main(**_: object) -> None:
    """Scale Kubernetes workloads on the real load of their GPUs.

    The options about the cluster may stand before or after the command. docs/commands.md says
    what all commands share: options, namespaces, formats, and exit codes.

    Each setting can come from a flag, from an environment variable (GMA_ and the key's path
    joined by __, such as GMA_SOURCE__KIND), or from the file that --config names. A flag
    overrides the variable, and the variable overrides the file.
    """


@main.command()
@_CONFIG
@click.option("--host", metavar="ADDRESS", help="Address to listen on; empty: all addresses.")
@click.option(
    "--port",
    cls=_SettingOption,
    type=int,
    metavar="PORT",
    help="HTTPS port [{server.port}]; 0: any free port.",
)
@_KUBECONFIG
@_CONTEXT
@click.option(
    "--pods-file", metavar="FILE", help="Read pods from a file of manifests, without a cluster."
)
@click.option(
    "--source",
    cls=_SettingOption,
    type=NearestChoice(["scrape", "prometheus", "azure_logs"]),
    help="Source of GPU values [{source.kind}].",
)
@click.option("--prometheus-url", metavar="URL", help="Query API, with --source prometheus.")
@click.option(
    "--prometheus-adapter-config",
    metavar="FILE",
    help="Configuration file of prometheus-adapter, whose rules are served too.",
)
@click.option("--record", metavar="FILE", help="Append a recording for `replay` to FILE.")
@_LOG
@click.option(
    "--check", is_flag=True, help="Check the settings and the files that they name, and exit."
)
@ends("it failed", "a setting cannot be used")
def serve(config: Path | None, check: bool, **given: object) -> None:
    """Serve custom.metrics.k8s.io from the cluster's GPU exporters.

    Without any setting it runs in a cluster: it watches pods, finds exporters by the labels
    of the common charts, scrapes them and answers over HTTPS. It watches the file that
    --config names. If a change is invalid, the log names the key and the fix, and the previous
    configuration stays active.

    \b
    Outside a cluster:
      gpu-metrics-adapter serve --kubeconfig ~/.kube/config --port 6443
      gpu-metrics-adapter serve --source prometheus --prometheus-url http://localhost:9090
    """
    settings, reload = _load(config, given)
    if check:
        _check(settings)
        return
    # Imported late: --help needs none of it.
    from adapter.config.process.config import ConfigError  # noqa: PLC0415
    from adapter.config.process.logs import configure  # noqa: PLC0415
    from adapter.server.serve.run import run  # noqa: PLC0415
    from adapter.server.serve.start import StartError  # noqa: PLC0415

    configure(settings.log)
    try:
        run(settings, config, reload)
    except ConfigError as error:
        _refuse(error.problems)
    except StartError as error:
        say(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(1)


@main.command()
@_CONFIG
@_KUBECONFIG
@_CONTEXT
@click.option(
    "--apply/--dry-run", default=None, help="Write to the cluster, or only plan [--dry-run]."
)
@click.option("--once", is_flag=True, help="Print one plan as a table, write nothing, and exit.")
@_LOG
@ends("it failed", "a setting cannot be used or --once could not look")
def nodepool(config: Path | None, once: bool, **given: object) -> None:
    """Order GPU nodes before pods wait for them, and remove idle headroom.

    It reads HPAs, their GPU metrics and Jobs like any client of the API server, and keeps
    headroom for the pods that they will need within a node's boot time. It uses CapacityBuffers
    if the cluster's autoscaler supports them, and placeholder pods of low priority otherwise.
    Dry run by default; --apply makes changes. docs/nodepool.md describes its decisions and
    limits.

    \b
    Print the current plan from outside the cluster:
      gpu-metrics-adapter nodepool --once --kubeconfig ~/.kube/config
    """
    if once and given["apply"]:
        raise click.UsageError("--once writes nothing: remove --apply")
    settings, reload = _load(config, given)
    # Imported late: --help needs none of it.
    from adapter.config.process.logs import configure  # noqa: PLC0415
    from adapter.nodepool.run.process import NodepoolError, run  # noqa: PLC0415

    configure(settings.log)
    try:
        run(settings, config, reload, once=once)
    except NodepoolError as error:
        say(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(2 if once else 1)


@main.command()
@click.option(
    "--seconds", type=float, metavar="TIME", help="Run time [60; with --ui until Ctrl-C, an hour]."
)
@click.option(
    "--speed",
    type=float,
    metavar="TIMES",
    help="Simulated seconds per real second, 1 to 60 [fits the whole scenario into --seconds].",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of the simulated load.")
@click.option("--plain", is_flag=True, help="Print lines of text even on a terminal.")
@click.option(
    "--port", type=int, default=0, metavar="PORT", help="Port of `serve` [any free port]."
)
@click.option("--ui", is_flag=True, help="Show the page of `gpu-metrics-adapter ui` as well.")
@click.option(
    "--browser/--no-browser",
    default=True,
    help="With --ui, open a browser if this machine has a display, or only print the address.",
)
@click.option("--keep", is_flag=True, help="Keep certificates, configuration and log.")
@click.option(
    "--exporter",
    metavar="NODE",
    help="Run only the simulated exporter of NODE, in a real cluster without GPUs.",
)
@ends("it failed", "it could not start")
def demo(
    seconds: float | None,
    speed: float | None,
    seed: int,
    plain: bool,
    port: int,
    ui: bool,
    browser: bool,
    keep: bool,
    exporter: str | None,
) -> None:
    """Run the autoscaling loop on this machine, without a cluster or a GPU.

    Simulated GPU nodes serve pages in dcgm-exporter's format under a bursty inference load. The
    real `serve` answers over HTTPS with front-proxy authentication, and the HPA's algorithm
    reads the metrics and scales. The demo prints a curl command to query the API, and ends with a
    summary.

    With --exporter it only replaces dcgm-exporter on a node of a cluster without GPUs
    (docs/quickstart-kind.md), on --port [9400].
    """
    if exporter is not None:
        _stand_in(exporter, port)
        return
    # Imported late: --help needs none of it.
    from adapter.demo.options import DemoOptions  # noqa: PLC0415
    from adapter.demo.run import run as play  # noqa: PLC0415

    try:
        options = DemoOptions(seconds, speed, seed, plain, port, ui, browser, keep)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    sys.exit(play(options))


def _stand_in(node: str, port: int) -> None:
    # Imported late: --help needs none of it.
    from adapter.config.process.logs import configure  # noqa: PLC0415
    from adapter.config.settings.log import LogSettings  # noqa: PLC0415
    from adapter.demo.simulatedgpus import StandInError, run  # noqa: PLC0415

    configure(LogSettings())
    try:
        run(node, port or 9400)
    except StandInError as error:
        say(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(1)


@main.command()
@ends(two="")
def version() -> None:
    """Show the version, its commit if known, and the versions of Python and the libraries."""
    # Imported late: --help needs none of it.
    from adapter.tools.client import aboutversion  # noqa: PLC0415

    for line in aboutversion.lines():
        click.echo(line)


@main.command()
@click.argument("shell", type=NearestChoice(["bash", "zsh", "fish"]))
@ends(two="")
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Complete commands and options in this shell:
      source <(gpu-metrics-adapter completion bash)
      source <(gpu-metrics-adapter completion zsh)
      gpu-metrics-adapter completion fish | source

    \b
    In every new shell: add such a line to ~/.bashrc or ~/.zshrc. For fish:
      gpu-metrics-adapter completion fish > ~/.config/fish/completions/gpu-metrics-adapter.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(script(main, {}, _PROGRAM, "_GPU_METRICS_ADAPTER_COMPLETE").source())


main.add_command(conformance)
main.add_command(costs)
main.add_command(doctor)
main.add_command(explain)
main.add_command(generate)
main.add_command(idle)
main.add_command(maintain)
main.add_command(replay)
main.add_command(migrate)
main.add_command(top)
main.add_command(ui)


def _check(settings: Settings) -> None:
    """Print what is wrong with the files that the settings name. Exit with 2 if one or a rule of
    prometheus-adapter's file cannot be used."""
    # Imported late: --help needs none of it.
    from adapter.config.process.config import ConfigError  # noqa: PLC0415
    from adapter.server.serve.check import start_problems  # noqa: PLC0415
    from adapter.server.serve.rules import rule_problems, rule_queries  # noqa: PLC0415

    problems = list(start_problems(settings))
    try:
        rules, broken = rule_problems(settings)
    except ConfigError as error:
        _refuse([*problems, *error.problems])
    if problems or broken:
        _refuse([*problems, *rules])
    for problem in rules:
        say(f"gpu-metrics-adapter: {problem}", err=True)
    for line in rule_queries(settings):
        say(line)
    click.echo(
        "settings are valid, and the files that they name can be used; "
        "the API server and the source were not asked"
    )


def _load(
    config: Path | None, given: Mapping[str, object]
) -> tuple[Settings, Callable[[], Settings]]:
    """Return the settings, and the function that loads them again. Exit with 2 if one is wrong."""
    from adapter.config.process.config import ConfigError, flag_values, load  # noqa: PLC0415 - takes half a second

    flags = flag_values(given)
    try:
        return load(config, flags), lambda: load(config, flags)
    except ConfigError as error:
        _refuse(error.problems)


def _refuse(problems: Iterable[str]) -> NoReturn:
    for problem in problems:
        say(f"gpu-metrics-adapter: {problem}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()

"""The command line: ``gpu-metrics-adapter``.

Exit codes: 0, 1 for a failed job, 2 for bad usage or configuration.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

from adapter import __version__
from adapter.maintain.commands import maintain
from adapter.process.config import ConfigError, load, named

_CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="GMA_CONFIG",
    metavar="FILE",
    help="YAML file with settings (docs/settings.md lists them); also GMA_CONFIG.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gpu-metrics-adapter")
def main() -> None:
    """Scale Kubernetes workloads on the real load of their GPUs.

    Every setting can be given, from strongest to weakest, as a flag, as an environment
    variable (GMA_ and the key's path joined by __, such as GMA_SOURCE__KIND), or in the
    file that --config names.
    """


@main.command()
@_CONFIG
@click.option("--host", metavar="ADDRESS", help="Address to listen on; empty is every one.")
@click.option("--port", type=int, metavar="PORT", help="HTTPS port [6443]; 0 takes a free one.")
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig, when not running in a cluster.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--pods-file", metavar="FILE", help="Pods from a file of manifests; no cluster.")
@click.option(
    "--source",
    type=click.Choice(["scrape", "prometheus"]),
    help="Where GPU values come from [scrape].",
)
@click.option("--prometheus-url", metavar="URL", help="Query API, with --source prometheus.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Least severity logged [info].",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "console", "json"]),
    help="Form of the log [auto: console on a terminal, else JSON].",
)
@click.option("--check", is_flag=True, help="Check the settings, and end.")
def serve(config: Path | None, check: bool, **given: object) -> None:
    """Serve custom.metrics.k8s.io from the cluster's GPU exporters.

    Without any setting it runs in a cluster: it watches pods, finds exporters by the labels
    the usual charts set, scrapes them every 5 s and answers on port 6443. The file given
    with --config is watched; a change that is not valid is reported and the old one kept.

    \b
    Outside a cluster:
      gpu-metrics-adapter serve --kubeconfig ~/.kube/config --port 6443
      gpu-metrics-adapter serve --source prometheus --prometheus-url http://localhost:9090
    """
    flags = named(given)
    try:
        settings = load(config, flags)
    except ConfigError as error:
        _refuse(error)
    if check:
        click.echo("settings are valid")
        return
    # Imported late: --help and --check need none of it.
    from adapter.process.logs import configure  # noqa: PLC0415
    from adapter.serve.run import StartError, run  # noqa: PLC0415

    configure(settings.log)
    try:
        run(settings, config, lambda: load(config, flags))
    except ConfigError as error:
        _refuse(error)
    except StartError as error:
        click.echo(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(1)


@main.command()
@_CONFIG
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig, when not running in a cluster.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--apply/--dry-run", default=None, help="Write to the cluster, or only plan [--dry-run]."
)
@click.option("--once", is_flag=True, help="Print one plan as a table, write nothing, and end.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Least severity logged [info].",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "console", "json"]),
    help="Form of the log [auto: console on a terminal, else JSON].",
)
def nodepool(config: Path | None, once: bool, **given: object) -> None:
    """Order GPU nodes before pods wait for them, and let idle headroom go.

    It reads HPAs, their GPU metrics and Jobs as any client of the API server does, and keeps
    headroom for what they will want within a node's boot time: CapacityBuffers where the
    cluster's autoscaler serves them, placeholder pods of low priority elsewhere. Unless told to
    apply, it only prints its plan. docs/nodepool.md says how it decides and what bounds it.

    \b
    What it would do now, from outside the cluster:
      gpu-metrics-adapter nodepool --once --kubeconfig ~/.kube/config
    """
    if once and given["apply"]:
        raise click.UsageError("--once writes nothing: leave out --apply")
    flags = named(given)
    try:
        settings = load(config, flags)
    except ConfigError as error:
        _refuse(error)
    # Imported late: --help needs none of it.
    from adapter.nodepool.run.process import NodepoolError, run  # noqa: PLC0415
    from adapter.process.logs import configure  # noqa: PLC0415

    configure(settings.log)
    try:
        run(settings, config, lambda: load(config, flags), once=once)
    except NodepoolError as error:
        click.echo(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(1)


@main.command()
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time to run for.")
@click.option(
    "--speed",
    type=float,
    metavar="TIMES",
    help="Simulated seconds in a real one, 1 to 60 [the whole story in --seconds].",
)
@click.option(
    "--seed", type=int, default=7, show_default=True, help="The same seed, the same load."
)
@click.option("--plain", is_flag=True, help="Lines of text even on a terminal.")
@click.option("--port", type=int, default=0, metavar="PORT", help="Port of `serve` [a free one].")
@click.option("--keep", is_flag=True, help="Leave certificates, configuration and log behind.")
@click.option(
    "--exporter",
    metavar="NODE",
    help="Only be NODE's simulated exporter, in a real cluster without GPUs.",
)
def demo(
    seconds: float,
    speed: float | None,
    seed: int,
    plain: bool,
    port: int,
    keep: bool,
    exporter: str | None,
) -> None:
    """The main job on this machine: no cluster and no GPU needed.

    Simulated GPU nodes whose exporters speak dcgm-exporter's text, a bursty inference load on
    them, the real `serve` over HTTPS with front-proxy authentication, and the HPA's algorithm
    reading it and scaling. It prints the curl command with which to look at the API itself,
    and ends with a summary.

    With --exporter it plays nothing: it stands in for dcgm-exporter on a node of a cluster that
    has no GPUs (docs/quickstart-kind.md), on --port [9400].
    """
    if exporter is not None:
        _stand_in(exporter, port)
        return
    from adapter.demo.options import DemoOptions  # noqa: PLC0415

    try:
        from adapter.demo.run import run as play  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        click.echo(
            "gpu-metrics-adapter: demo needs rich; install it with the extra demo: "
            "pip install 'gpu-metrics-adapter[demo]'",
            err=True,
        )
        sys.exit(1)
    try:
        options = DemoOptions(seconds, speed, seed, plain, port, keep)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    sys.exit(play(options))


def _stand_in(node: str, port: int) -> None:
    # Imported late: --help needs none of it.
    from adapter.demo.standin import StandInError, run  # noqa: PLC0415
    from adapter.process.logs import configure  # noqa: PLC0415
    from adapter.settings.log import LogSettings  # noqa: PLC0415

    configure(LogSettings())
    try:
        run(node, port or 9400)
    except StandInError as error:
        click.echo(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(1)


main.add_command(maintain)


@main.command()
@click.option("--proc", type=click.Path(path_type=Path), default="/proc", hidden=True)
def healthy(proc: Path) -> None:
    """Ask the `serve` or `nodepool` of this container whether it lives.

    Ends with 0 when it does, or when the container runs neither; with 1 and the reason when it
    does not. The image's HEALTHCHECK; Kubernetes asks by itself.
    """
    # Imported late: --help needs none of it.
    from adapter.process import healthcheck  # noqa: PLC0415

    found = healthcheck.beside(proc)
    if found is None:
        click.echo("nothing here is to be asked")
        return
    given = main.commands[found.command].make_context(found.command, found.arguments).params
    try:
        settings = load(given["config"], named(given))
    except ConfigError as error:
        _refuse(error, status=1)  # HEALTHCHECK knows 0 and 1
    if problem := healthcheck.problem(healthcheck.address(found.command, settings)):
        click.echo(problem)
        sys.exit(1)
    click.echo("ok")


def _refuse(error: ConfigError, status: int = 2) -> NoReturn:
    for problem in error.problems:
        click.echo(f"gpu-metrics-adapter: {problem}", err=True)
    sys.exit(status)


if __name__ == "__main__":
    main()

"""The command line of ``migrate``."""

from __future__ import annotations

from pathlib import Path

import click

from adapter.tools.client.amount import Amount
from adapter.tools.client.options import (
    ACCESS,
    ToolGroup,
    ends,
    identity,
    namespace_option,
    output_option,
)
from adapter.tools.migrate.options import RELEASE, MigrateOptions, UsageProblem


@click.group(cls=ToolGroup)
def migrate() -> None:
    """Prepare the move from another metrics adapter. It reads, and applies nothing."""


@migrate.command("prometheus-adapter")
@ACCESS
@namespace_option("Namespace of prometheus-adapter [looks in all namespaces].")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Read a configuration file, Helm values, or manifests with one of them instead of a "
    "cluster; - reads standard input.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Also ask both servers for each metric of each HPA; needs --ours.",
)
@click.option(
    "--ours",
    metavar="URL",
    help="Address of gpu-metrics-adapter, such as https://localhost:8443 of a port-forward.",
)
@click.option(
    "--theirs",
    metavar="URL",
    help="Address of prometheus-adapter [the API server, which has its APIService].",
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CA certificates of these addresses, and the caBundle of -o apiservices.",
)
@click.option(
    "--release",
    default=RELEASE,
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="Release of gpu-metrics-adapter that is installed, or will be.",
)
@click.option(
    "--tolerance",
    type=Amount(0, 100),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="Difference between two values that counts as equal.",
)
@output_option(
    *("rules", "values", "apiservices", "apiservices-before"),
    text="Output format; rules: prometheus-adapter's configuration alone; values: Helm values "
    "alone; apiservices: the manifests that move the APIs; apiservices-before: those that move "
    "them back.",
)
@ends("something is lost or differs")
def prometheus_adapter(
    kubeconfig: Path | None,
    context: str | None,
    as_user: str,
    as_groups: tuple[str, ...],
    namespace: str,
    file: Path | None,
    compare: bool,
    ours: str | None,
    theirs: str | None,
    ca: Path | None,
    release: str,
    tolerance: float,
    output: str,
) -> None:
    """Show what of prometheus-adapter moves here: its rules, arguments, APIs and HPAs.

    It reads a cluster or a file with your rights, and applies nothing.
    docs/migrate-from-prometheus-adapter.md is the guide.

    \b
    Examples:
      gpu-metrics-adapter migrate prometheus-adapter
      gpu-metrics-adapter migrate prometheus-adapter -f helmrelease.yaml -o rules
      gpu-metrics-adapter migrate prometheus-adapter -o values
      gpu-metrics-adapter migrate prometheus-adapter --compare --ours URL --ca ca.crt
    """
    # Imported late: --help needs none of it.
    from adapter.tools.migrate.run import run  # noqa: PLC0415

    try:
        options = MigrateOptions(
            kubeconfig,
            context,
            namespace,
            file,
            compare,
            ours,
            theirs,
            ca,
            release,
            tolerance,
            output,
            identity(as_user, as_groups),
        )
    except UsageProblem as error:
        raise click.UsageError(str(error)) from None
    run(options)

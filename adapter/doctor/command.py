"""The command ``doctor``."""

from __future__ import annotations

from pathlib import Path

import click

from adapter.client.options import CONTEXT, KUBECONFIG, OUTPUT


@click.command()
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Check manifests in a file or folder, or - for standard input, without a cluster. "
    "Repeat it for several.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a support file: the report and the facts behind it, without secrets.",
)
@click.option(
    "--explain",
    "identity",
    metavar="ID",
    help="Print the documentation of a check, or of a reason such as exporter_down.",
)
@click.option("--list", "listed", is_flag=True, help="List all checks.")
@KUBECONFIG
@CONTEXT
@OUTPUT
def doctor(
    files: tuple[Path, ...],
    bundle: Path | None,
    identity: str | None,
    listed: bool,
    kubeconfig: Path | None,
    context: str | None,
    output: str,
) -> None:
    """Check a cluster for what keeps GPU metrics from HPAs.

    It works before and after the installation, and only reads. Each finding has an id, a fix and
    a command. A check that needs a right that you do not have names the right.

    Exit status: 0 no errors, 1 errors, 2 it could not check.

    \b
    Check manifests in CI:
      gpu-metrics-adapter doctor -f manifests/
      helm template chart/ | gpu-metrics-adapter doctor -f -
    """
    # Imported late: --help needs none of it.
    from adapter.doctor import run  # noqa: PLC0415

    if identity is not None:
        run.explain(identity)
        return
    if listed:
        run.list_checks(output)
        return
    run.check(files, kubeconfig, context, output, bundle)

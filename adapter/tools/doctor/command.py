"""The command ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adapter.tools.client.options import (
    ACCESS,
    ALL_NAMESPACES,
    OUTPUT,
    ClientOptions,
    Duration,
    ends,
    join_options,
    looks_everywhere,
    namespace_option,
)

if TYPE_CHECKING:
    from adapter.tools.client.options import Output

_LONGEST = 86400.0
"""Seconds of ``--wait``."""


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
    "--only",
    multiple=True,
    metavar="ID|SECTION",
    help="Run one check, such as GMA404, or those of a section, such as hpas; may be repeated.",
)
@join_options(
    namespace_option(
        "HPAs, ScaledObjects and servers of one namespace, with all that concerns every namespace "
        "[all: the checks are of a cluster]."
    ),
    ALL_NAMESPACES,
)
@click.option(
    "--wait",
    type=Duration(0, _LONGEST),
    default="0s",
    help="Check again until there is no error and nothing unchecked, at most so long: 5m.",
)
@click.option("-v", "--verbose", is_flag=True, help="One line for each check.")
@click.option("-q", "--quiet", is_flag=True, help="Only findings; nothing if all is fine.")
@click.option(
    "--bundle",
    "support",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a support file: the report and the facts behind it, without secrets.",
)
@click.option(
    "--explain",
    "identity",
    metavar="ID",
    help="Print the documentation of a check, or of a reason such as exporter_down.",
)
@click.option("--list", "listed", is_flag=True, help="List all checks.")
@ACCESS
@OUTPUT
@ends("there is an error", "a check could not be made")
def doctor(
    only: tuple[str, ...],
    identity: str | None,
    listed: bool,
    namespace: str,
    all_namespaces: bool,
    output: Output,
    kubeconfig: Path | None,
    context: str | None,
    as_user: str,
    as_groups: tuple[str, ...],
    **given: Any,
) -> None:
    """Check a cluster for what keeps GPU metrics from HPAs.

    It works before and after the installation, and only reads. It prints what it found, with a
    fix and a command, and how many checks are fine. A check that needs a right that you do not
    have names the right.

    \b
    Wait for an installation:
      gpu-metrics-adapter doctor --wait 5m -q

    \b
    Check manifests in CI:
      gpu-metrics-adapter doctor -f manifests/
      helm template chart/ | gpu-metrics-adapter doctor -f -
    """
    looks_everywhere(namespace, all_namespaces)
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("-v and -q exclude each other: remove one of them")
    if given["wait"] and given["files"]:
        raise click.UsageError("--wait looks at a cluster again: remove -f")
    # Imported late: --help needs none of it.
    from adapter.tools.doctor import run  # noqa: PLC0415

    if identity is not None:
        run.explain(identity)
        return
    if listed:
        run.list_checks(output)
        return
    access = ClientOptions(
        kubeconfig, context, namespace, output, as_user=as_user, as_groups=as_groups
    )
    run.check(run.DoctorOptions(access, only=run.choose_checks(only), **given))

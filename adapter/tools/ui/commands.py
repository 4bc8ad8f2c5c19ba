"""The command line of ``ui``."""

from __future__ import annotations

from typing import Any

import click

from adapter.tools.client.options import (
    ACCESS,
    ALL_NAMESPACES,
    DURATION,
    FILE,
    ends,
    interval_option,
    join_options,
    looks_everywhere,
    namespace_option,
)
from adapter.tools.idle.options import PRICES, TEAM_LABEL
from adapter.tools.ui.options import UiOptions


@click.command()
@join_options(
    ACCESS, namespace_option("Show one namespace [all: the page is of a cluster]."), ALL_NAMESPACES
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port on 127.0.0.1 [any free port].",
)
@click.option(
    "--browser/--no-browser",
    default=True,
    help="Open a browser if this machine has a display, or only print the address.",
)
@interval_option("Time between two looks at the cluster; longer for a large one.")
@join_options(PRICES, TEAM_LABEL)
@click.option(
    "--idle-after",
    type=DURATION,
    default="10m",
    show_default=True,
    help="Count a GPU as idle after this time.",
)
@click.option(
    "--prometheus",
    default="",
    metavar="URL",
    help="Prometheus with the metrics of kube-state-metrics, for the time before the start.",
)
@click.option(
    "--config",
    type=FILE,
    help="Configuration of `serve`: its `source.prometheus` has the login for --prometheus.",
)
@click.option("--demo", is_flag=True, hidden=True, help="The page says that it shows the demo.")
@ends(two="it could not start")
def ui(all_namespaces: bool, **given: Any) -> None:
    """Show the cluster's GPUs, pods and HPAs on a page in the browser, live.

    The page is served on this machine only, and the printed address contains its key. It reads
    the cluster with your rights, through the API server, and writes nothing. A panel that you may
    not read names the missing right. docs/ui.md describes the page.

    \b
    Examples:
      gpu-metrics-adapter ui
      gpu-metrics-adapter ui --context prod -n chat --port 8899 --no-browser
    """
    # Imported late: --help needs none of it.
    from adapter.tools.ui.run import run  # noqa: PLC0415

    looks_everywhere(given["namespace"], all_namespaces)
    run(UiOptions(**given))

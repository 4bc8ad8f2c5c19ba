"""The command line of ``idle``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from adapter.tools.client.options import (
    ACCESS,
    ALL_NAMESPACES,
    DURATION,
    INTERVAL,
    NAMESPACE,
    WATCH,
    ClientOptions,
    NearestChoice,
    ends,
    join_options,
    looks_everywhere,
    output_option,
)
from adapter.tools.idle.options import PRICES, TEAM_LABEL

if TYPE_CHECKING:
    from adapter.tools.client.access import Api
    from adapter.tools.client.options import Output
    from adapter.tools.idle.report import IdleReport


@click.command()
@join_options(ACCESS, NAMESPACE, ALL_NAMESPACES)
@click.option(
    "--by",
    type=NearestChoice(["team", "namespace", "node", "model"]),
    help="Sum up by this, the most expensive first.",
)
@TEAM_LABEL
@click.option(
    "--min",
    "minimum",
    type=DURATION,
    default="10m",
    show_default=True,
    help="Leave out what is idle for less.",
)
@PRICES
@output_option("csv")
@join_options(WATCH, INTERVAL)
@ends("a GPU is idle")
def idle(
    all_namespaces: bool,
    by: str | None,
    team_label: str,
    minimum: float,
    prices: Path | None,
    output: str,
    **given: Any,
) -> None:
    """List GPUs that pods hold and that do nothing: since when, whose they are, what they cost.

    It reads gpupods of the view API with your rights, and deletes nothing. docs/idle.md says when
    a GPU counts as idle, and where the list prices are from.

    \b
    Examples:
      gpu-metrics-adapter idle
      gpu-metrics-adapter idle -A --by team
      gpu-metrics-adapter idle -A --min 1d -o csv --prices our-prices.yaml
    """
    whole = looks_everywhere(given["namespace"], all_namespaces)
    if output == "csv" and given["watch"]:
        raise click.UsageError("--watch prints text, JSON or YAML: remove -o csv")

    async def look(api: Api) -> IdleReport:
        # Imported late: --help needs none of it.
        from adapter.config.process.output import say  # noqa: PLC0415
        from adapter.tools.idle.find import idle_devices, read_pods, with_lasting_hints  # noqa: PLC0415
        from adapter.tools.idle.prices import load  # noqa: PLC0415
        from adapter.tools.idle.report import IdleReport  # noqa: PLC0415

        price_list = load(prices)
        now = await api.clock()
        namespace = "" if whole else api.namespace
        devices = idle_devices(
            await read_pods(api, namespace), price_list, team_label, now, minimum
        )
        report = IdleReport(
            await with_lasting_hints(api, devices.idle),
            now,
            devices.held,
            price_list.currency,
            price_list.note,
            by=by or "",
            minimum=minimum,
            namespace=namespace,
            unmeasured=devices.unmeasured,
            unsized=devices.unsized,
        )
        if output == "csv":
            click.echo(report.csv(), nl=False)
            for line in report.unknown_lines():
                say(line, err=True)
            sys.exit(report.status)
        return report

    # Imported late: --help needs none of it.
    from adapter.tools.client.command import run  # noqa: PLC0415

    shown = cast("Output", "text" if output == "csv" else output)
    run(ClientOptions(output=shown, **given), look)

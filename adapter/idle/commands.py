"""The command line of ``idle``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adapter.client.options import (
    CONTEXT,
    DURATION,
    INTERVAL,
    KUBECONFIG,
    WATCH,
    ClientOptions,
    NearestChoice,
    joined,
)
from adapter.idle.options import PRICES, TEAM_LABEL

if TYPE_CHECKING:
    from adapter.client.access import Api
    from adapter.idle.report import IdleReport


@click.command()
@joined(KUBECONFIG, CONTEXT)
@click.option(
    "-n", "--namespace", default="", metavar="NAME", help="One namespace [all namespaces]."
)
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
    metavar="TIME",
    help="Leave out what is idle for less.",
)
@PRICES
@click.option(
    "-o",
    "--output",
    type=NearestChoice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@joined(WATCH, INTERVAL)
def idle(
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

    Exit codes: 0, 1 if a GPU is idle, 2 if it could not look.

    \b
    Examples:
      gpu-metrics-adapter idle --by team
      gpu-metrics-adapter idle --min 1d -o csv --prices our-prices.yaml
    """
    namespace = given.pop("namespace")
    if output == "csv" and given["watch"]:
        raise click.UsageError("--watch prints text or JSON: remove -o csv")

    async def look(api: Api) -> IdleReport:
        # Imported late: --help needs none of it.
        from adapter.idle.find import idle_devices, read_pods, with_lasting_hints  # noqa: PLC0415
        from adapter.idle.prices import load  # noqa: PLC0415
        from adapter.idle.report import IdleReport  # noqa: PLC0415

        known = load(prices)
        now = await api.clock()
        devices, held = idle_devices(
            await read_pods(api, namespace), known, team_label, now, minimum
        )
        devices = await with_lasting_hints(api, devices)
        report = IdleReport(
            devices, now, held, known.currency, known.own, by=by or "", minimum=minimum
        )
        if output == "csv":
            click.echo(report.csv(), nl=False)
            sys.exit(report.status)
        return report

    # Imported late: --help needs none of it.
    from adapter.client.command import run  # noqa: PLC0415

    run(
        ClientOptions(namespace=namespace, output="json" if output == "json" else "text", **given),
        look,
    )

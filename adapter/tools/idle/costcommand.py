"""The command line of ``costs``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from adapter.tools.client.options import (
    FILE,
    Duration,
    NearestChoice,
    ends,
    join_options,
    namespace_option,
    output_option,
)
from adapter.tools.idle.options import PRICES

_LEAST, _MOST = 3600.0, 400 * 86400.0
"""Seconds: twelve steps of the query (:func:`adapter.tools.idle.hours.step_of`), of which the first
and the last one may be cut."""


@click.command()
@join_options(namespace_option("Count one namespace [all]."))
@click.option(
    "--over",
    type=Duration(_LEAST, _MOST),
    default="7d",
    show_default=True,
    help="How much of the past to count, up to now; at least 1h.",
)
@click.option(
    "--by",
    type=NearestChoice(["namespace", "team", "workload", "model", "instance"]),
    default="namespace",
    show_default=True,
    help="Sum up by this, what costs most without being used first.",
)
@click.option(
    "--from-prometheus",
    "store",
    default="",
    metavar="URL",
    help="Prometheus that scrapes `serve`.",
)
@click.option(
    "--config",
    type=FILE,
    help="Configuration of `serve`: the login and the matchers of that Prometheus.",
)
@PRICES
@output_option("csv")
@ends(two="it could not look")
def costs(
    namespace: str,
    over: float,
    by: str,
    store: str,
    config: Path | None,
    prices: Path | None,
    output: str,
) -> None:
    """Sum up GPU-hours over a time: allocated, used, idle, unknown, and what they cost.

    It reads the counters that `serve` keeps (gma_gpu_seconds_total) from your Prometheus, and no
    cluster. docs/costs.md says what is counted, and where the list prices are from.

    \b
    Examples:
      gpu-metrics-adapter costs --from-prometheus http://localhost:9090
      gpu-metrics-adapter costs --from-prometheus https://prometheus --by team --over 30d -o csv
    """
    # Imported late: --help needs none of it.
    from adapter.tools.client.command import UNSEEN, complain, show  # noqa: PLC0415
    from adapter.tools.client.errors import ClientError  # noqa: PLC0415
    from adapter.tools.idle.costlook import look  # noqa: PLC0415

    if not (store or config):
        raise click.UsageError("--from-prometheus is missing: name a Prometheus that scrapes serve")
    try:
        report = asyncio.run(look(store, config, over, by, prices, namespace))
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:
        sys.exit(130)
    if output == "csv":
        click.echo(report.csv(), nl=False)
    else:
        show(report, output)

"""``python -m load [SCENARIO ...]``: run the benchmarks, print and publish their tables."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from load import machine, report
from load.ahead import ahead
from load.churn import churn, soak
from load.fanout import fanout
from load.freshness import freshness
from load.keda import keda
from load.latencies import latencies
from load.nodepool import nodepool
from load.nodepoolround import rounds
from load.parsing import parsing
from load.peer import peer
from load.pipeline import pipeline
from load.promises import promises
from load.rules import rules
from load.serving import serving
from load.standin import standin
from load.start import start
from load.steps import steps
from load.stores import stores
from load.table import Run, Table
from load.tools import tools
from load.top import top
from load.uimemory import uimemory
from load.uitimes import uitimes
from load.view import view
from research.ablation import forecast
from tests.e2e import programs

README = Path(__file__).with_name("README.md")


class Scenario(NamedTuple):
    """A row of the table below."""

    description: str
    run: Callable[[Run], Table]
    named_only: bool = False
    """Too long for a run of all scenarios."""


SCENARIOS: dict[str, Scenario] = {
    "parse": Scenario(
        "parse an exporter's page, compared with prometheus_client's parser", parsing
    ),
    "pipeline": Scenario("from an exporter's page to every pod's value, by stage", pipeline),
    "latencies": Scenario("servers' pages at rest, and while latencies are asked for", latencies),
    "serving": Scenario("GET pods/* for 100 pods over TLS on one core", serving),
    "churn": Scenario("memory over 20 minutes of new pods, devices, users", churn, named_only=True),
    "soak": Scenario("memory over two hours of change in 1,000 nodes", soak, named_only=True),
    "stores": Scenario("source: prometheus at 100 to 40,000 GPU pods", stores, named_only=True),
    "start": Scenario("start and a restarted API server, up to 150,000 pods", start),
    "steps": Scenario("the longest steps of the event loop, and a relist, by CPU time", steps),
    "standin": Scenario("the stand-in API server beside the real one", standin),
    "fanout": Scenario("upstream requests per sync of 1, 100 and 1,500 HPAs", fanout),
    "freshness": Scenario("from a changed exporter page to a changed answer", freshness),
    "keda": Scenario("GetMetrics for 1, 100 and 1,500 ScaledObjects, and HTTP meanwhile", keda),
    "nodepool": Scenario("pending pods and GPU-hours on recorded load, simulated", nodepool),
    "promises": Scenario(
        "requests that miss a latency promise, and GPU-hours, simulated", promises, named_only=True
    ),
    "ahead": Scenario("replicas ahead of demand on made-up and recorded services", ahead),
    "forecast": Scenario("calibration of the forecast, its first hours, its inputs", forecast),
    "round": Scenario("CPU of a round of nodepool for 500 workloads", rounds),
    "view": Scenario("full lists of the view API at 10,000 GPU pods", view),
    "tools": Scenario("start of the commands, doctor at 150,000 pods, serve's base", tools),
    "top": Scenario("pictures of top at 10,000 GPUs, with new values", top),
    "uitimes": Scenario("the page at 10,000 GPUs: paint, keys, clicks", uitimes, named_only=True),
    "uimemory": Scenario("the page at 10,000 GPUs: 10 minutes", uimemory, named_only=True),
    "rules": Scenario("cost of rules at 1, 100 and 1,500 HPAs, with prometheus-adapter", rules),
    "peer": Scenario("compared with prometheus-adapter on a real API server", peer),
}

GROUPS = {"ui": ("uitimes", "uimemory")}
"""Names of several scenarios."""

_BY_DEFAULT = [name for name, item in SCENARIOS.items() if not item.named_only]
_LISTED = "\n".join(f"  {name:<10} {item.description}" for name, item in SCENARIOS.items())


@click.command(
    help=f"Run benchmarks; without a name, the ones that take seconds to minutes:\n\n\b\n{_LISTED}",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("scenario", nargs=-1, type=click.Choice([*SCENARIOS, *GROUPS]))
@click.option("--quick", is_flag=True, help="Smoke run that writes nothing.")
@click.option("--no-write", is_flag=True, help="Do not write load/README.md.")
def main(scenario: tuple[str, ...], quick: bool, no_write: bool) -> None:
    """Run scenarios; exit 0 if every scenario ran, even if a goal was missed."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    results = [
        _run(console, name, quick=quick, write=not (quick or no_write))
        for group in scenario or _BY_DEFAULT
        for name in GROUPS.get(group, (group,))
    ]
    sys.exit(0 if all(results) else 1)


def _run(console: Console, name: str, *, quick: bool, write: bool) -> bool:
    """Whether the scenario ran; one that fails leaves the others to run."""
    console.print(f"[bold]{name}[/]: {SCENARIOS[name].description}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        try:
            table = SCENARIOS[name].run(Run(quick, Path(folder)))
        except (RuntimeError, OSError, AssertionError, programs.ProgramMissingError) as error:
            console.print(f"  failed: {error}", style="red", markup=False)
            return False
    report.show(console, f"{name}, {time.monotonic() - begin:.0f} s", table)
    if write:
        _publish(name, table)
    return True


def _publish(name: str, table: Table) -> None:
    """Write the result, the machine and the command into the README."""
    facts = "\n".join(f"- {key}: {value}" for key, value in machine.facts().items())
    stamp = f"`python -m load {name}`, {datetime.now(UTC):%Y-%m-%d}"
    document = README.read_text()
    document = report.replace(document, "machine", facts)
    document = report.replace(document, name, f"{stamp}\n\n{report.markdown(table)}")
    README.write_text(document)


if __name__ == "__main__":
    main()

"""What ``serve`` costs to keep running: resident memory and CPU at three sizes."""

from __future__ import annotations

from typing import NamedTuple

from load.drive import drive, idle, plan, split_cores
from load.fleet import SERVICE_SIZE, nodes
from load.pki import issue
from load.report import figure
from load.servers import fleet, serve, target
from load.table import Goal, Run, Table

SIZES = (100, 1_000, 10_000)
INTERVAL = 5.0
LIMIT = 150e6


class Cost(NamedTuple):
    """One size's figures; bytes, and shares of one core."""

    pods: int
    exporters: int
    settled: int
    after: int
    peak: int
    share: float


def memory(run: Run) -> Table:
    """Each size in a process of its own, over simulated exporters."""
    intervals = 1 if run.quick else 8
    sizes = SIZES[:2] if run.quick else SIZES
    return table([_cost(run, pods, intervals) for pods in sizes], intervals)


def _cost(run: Run, pods: int, intervals: int) -> Cost:
    core, others = split_cores()
    pki = issue(run.folder)
    with (
        fleet(pods, run.folder, others) as exporters,
        serve(pki, exporters, run.folder, interval=INTERVAL, cores=core) as server,
    ):
        share = idle([server.child], intervals * INTERVAL)[server.child.name]
        settled = server.child.usage().rss
        services = max(1, pods // SERVICE_SIZE)
        load = plan(pki, server.port, target(), connections=min(8, services), seconds=2)
        load.targets = [target(service) for service in range(services)]
        drive(load, [server.child], cores=others)
        now = server.child.usage()
    return Cost(pods, len(nodes(pods)), settled, now.rss, now.peak, share)


def table(costs: list[Cost], intervals: int) -> Table:
    """A row per size; the goal is judged at the largest."""
    largest = costs[-1]
    worst = max(largest.after, largest.peak)
    note = (
        f"RSS after {intervals} scrape intervals of {INTERVAL:.0f} s, then after two seconds "
        "of requests for each service in turn on 8 connections. CPU of the steady state without "
        "requests: scraping, parsing and attribution."
    )
    return Table(
        ("GPU pods", "exporters", "RSS MB", "RSS MB after requests", "peak MB", "CPU of one core"),
        tuple(
            (
                f"{cost.pods:,}",
                f"{cost.exporters:,}",
                figure(cost.settled / 1e6),
                figure(cost.after / 1e6),
                figure(cost.peak / 1e6),
                f"{cost.share:.1%}",
            )
            for cost in costs
        ),
        (
            Goal(
                f"under 150 MB at {largest.pods:,} GPU pods",
                f"{largest.after / 1e6:.0f} MB resident, {largest.peak / 1e6:.0f} MB at the peak",
                worst < LIMIT,
            ),
        ),
        (note,),
    )

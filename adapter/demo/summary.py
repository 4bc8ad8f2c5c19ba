"""The summary at the end: figures of this run, none of them assumed."""

from __future__ import annotations

import math
import statistics

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.comparison import comparison, learned
from adapter.demo.show import OutagePlayed, Show, clock


def summary(show: Show) -> RenderableType:
    """Return the table and the sentences below it."""
    sentences = [_outage(show, outage) for outage in show.outages]
    world = show.world
    heading = (
        f"{clock(world.now)} simulated (after a warm-up of {clock(-world.start)}), "
        f"{show.speed:.3g}x real time, seed {show.seed}"
    )
    return Group(
        Text(heading),
        _services(show),
        *(Text(sentence) for sentence in [*sentences, _reads(show)]),
        Text(),
        Text("The same load on two clusters whose nodes take time to boot:"),
        comparison(show),
        Text(learned(show)),
        Text("These minutes contain only bursts; load/README.md has whole days of recorded load."),
    )


def _services(show: Show) -> Table:
    world = show.world
    seconds = world.now - world.start
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for scaler in show.autoscalers:
        table.add_column(scaler.service, justify="right")
    rows = {
        "requests served": [
            f"{world.totals(each.service).served} of {world.totals(each.service).arrived}"
            for each in show.autoscalers
        ],
        "longest queue": [str(world.totals(each.service).peak_queue) for each in show.autoscalers],
        "replicas, minimum to maximum": [_replicas(show, each) for each in show.autoscalers],
        "scaled out / in": [_moves(each) for each in show.autoscalers],
        "device-minutes held": [
            f"{world.gpu_seconds[each.service] / 60:.0f}" for each in show.autoscalers
        ],
        "at a constant maximum": [_always(show, each, seconds) for each in show.autoscalers],
    }
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


def _counts(show: Show, scaler: DemoAutoscaler) -> list[int]:
    decided = [count for s in scaler.syncs for count in (s.decision.current, s.decision.desired)]
    return decided or [show.world.wanted(scaler.service)]


def _replicas(show: Show, scaler: DemoAutoscaler) -> str:
    counts = _counts(show, scaler)
    return f"{min(counts)} to {max(counts)}"


def _moves(scaler: DemoAutoscaler) -> str:
    decisions = [sync.decision for sync in scaler.syncs]
    out = sum(decision.desired > decision.current for decision in decisions)
    inward = sum(decision.desired < decision.current for decision in decisions)
    return f"{out} / {inward}"


def _always(show: Show, scaler: DemoAutoscaler, seconds: float) -> str:
    peak = max(_counts(show, scaler)) * seconds
    if peak <= 0:
        return "-"
    saved = 1 - show.world.gpu_seconds[scaler.service] / peak
    return f"{peak / 60:.0f} ({saved:.0%} saved)"


def _outage(show: Show, outage: OutagePlayed) -> str:
    """How the HPAs behaved whose pods the dead exporter reported."""
    end = show.world.now if outage.end is None else outage.end
    text = f"The exporter of {outage.node} was dead from {clock(outage.start)} to {clock(end)}"
    for scaler in show.autoscalers:
        pool = next((p for p in show.world.fleet.pools if outage.node.startswith(p.name)), None)
        if pool is None or show.world.workloads[scaler.service].resource != pool.resource:
            continue
        syncs = [sync for sync in scaler.syncs if outage.start <= sync.at < end]
        blind = [sync for sync in syncs if not sync.active]
        inward = sum(sync.decision.desired < sync.decision.current for sync in blind)
        text += f": {scaler.service} had no value at {len(blind)} of {len(syncs)} syncs"
        if blind:
            text += f" (ScalingActive=False) and was scaled in {inward} times in these"
    return f"{text}."


def _reads(show: Show) -> str:
    tally = show.tally
    if not tally.seconds:
        return "The HPAs read no metric."
    ordered = sorted(tally.seconds)
    slow = ordered[math.ceil(0.99 * len(ordered)) - 1]
    return (
        f"The HPAs made {tally.requests} requests over HTTPS, {tally.answered} of them returned "
        f"values: median {1000 * statistics.median(ordered):.1f} ms, 99 % within "
        f"{1000 * slow:.1f} ms."
    )

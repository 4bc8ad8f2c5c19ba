"""The summary at the end: figures of this run, none of them assumed."""

from __future__ import annotations

import math
import statistics

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.comparison import comparison, figures, learned
from adapter.demo.state import DemoState, OutagePlayed, clock


def summary(state: DemoState) -> RenderableType:
    """Return the table and the sentences below it."""
    world = state.world
    heading = (
        f"{clock(world.now)} simulated (after a warm-up of {clock(-world.start)}), "
        f"{state.speed:.3g}x real time, seed {state.seed}"
    )
    return Group(
        Text(heading),
        _services(state),
        *(Text(_outage(state, outage)) for outage in state.outages),
        Text(_reads(state)),
        Text(),
        Text("The same load on two clusters whose nodes take time to boot:"),
        comparison(state),
        Text(learned(state)),
        Text("These minutes contain only bursts; load/README.md has whole days of recorded load."),
    )


def _services(state: DemoState) -> Table:
    world, scalers = state.world, state.autoscalers
    totals = [world.services[each.service].totals for each in scalers]
    return figures(
        ["", *(each.service for each in scalers)],
        {
            "requests served": [f"{each.served} of {each.arrived}" for each in totals],
            "longest queue": [str(each.peak_queue) for each in totals],
            "replicas, minimum to maximum": [_replicas(state, each) for each in scalers],
            "scaled out / in": [_moves(each) for each in scalers],
            "device-minutes held": [
                f"{world.gpu_seconds[each.service] / 60:.0f}" for each in scalers
            ],
            "at a constant maximum": [_always(state, each) for each in scalers],
        },
    )


def _counts(state: DemoState, scaler: DemoAutoscaler) -> list[int]:
    decided = [count for s in scaler.syncs for count in (s.decision.current, s.decision.desired)]
    return decided or [state.world.wanted[scaler.service]]


def _replicas(state: DemoState, scaler: DemoAutoscaler) -> str:
    counts = _counts(state, scaler)
    return f"{min(counts)} to {max(counts)}"


def _moves(scaler: DemoAutoscaler) -> str:
    decisions = [sync.decision for sync in scaler.syncs]
    out = sum(decision.desired > decision.current for decision in decisions)
    inward = sum(decision.desired < decision.current for decision in decisions)
    return f"{out} / {inward}"


def _always(state: DemoState, scaler: DemoAutoscaler) -> str:
    peak = max(_counts(state, scaler)) * (state.world.now - state.world.start)
    if peak <= 0:
        return "-"
    saved = 1 - state.world.gpu_seconds[scaler.service] / peak
    return f"{peak / 60:.0f} ({saved:.0%} saved)"


def _outage(state: DemoState, outage: OutagePlayed) -> str:
    """How the HPAs behaved whose pods the dead exporter reported."""
    end = state.world.now if outage.end is None else outage.end
    text = f"The exporter of {outage.node} was dead from {clock(outage.start)} to {clock(end)}"
    for scaler in state.autoscalers:
        pool = next((p for p in state.world.fleet.pools if outage.node.startswith(p.name)), None)
        if pool is None or state.world.workloads[scaler.service].resource != pool.resource:
            continue
        syncs = [sync for sync in scaler.syncs if outage.start <= sync.at < end]
        blind = [sync for sync in syncs if not sync.active]
        inward = sum(sync.decision.desired < sync.decision.current for sync in blind)
        text += f": {scaler.service} had no value at {len(blind)} of {len(syncs)} syncs"
        if blind:
            text += f" (ScalingActive=False) and was scaled in {inward} times in these"
    return f"{text}."


def _reads(state: DemoState) -> str:
    tally = state.tally
    if not tally.seconds:
        return "The HPAs read no metric."
    ordered = sorted(tally.seconds)
    slow = ordered[math.ceil(0.99 * len(ordered)) - 1]
    return (
        f"The HPAs made {tally.requests} requests over HTTPS, {tally.answered} of them returned "
        f"values: median {1000 * statistics.median(ordered):.1f} ms, 99 % within "
        f"{1000 * slow:.1f} ms."
    )

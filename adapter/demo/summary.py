"""The summary at the end, with a comparison of the two clusters.

Each figure is counted in this run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from adapter.demo import story
from adapter.demo.autoscaler import DemoAutoscaler, Sync
from adapter.demo.fleet import DemoPod
from adapter.demo.state import DemoCluster, DemoState, OutagePlayed, clock
from adapter.hpa import ControllerOptions
from adapter.pipeline.catalog.promise import parse_promise


def outcomes(state: DemoState) -> Sequence[str]:
    """Return the sentences: the signal, replicas ahead, the missing values, the nodes."""
    dead = [_outage(state, outage) for outage in state.outages]
    return (
        _signal(state),
        _replicas_ahead(state),
        " ".join(dead) or "No exporter died in the part of the story that was played.",
        _nodes(state),
    )


def _signal(state: DemoState) -> str:
    """Compare the same service scaled on a promise, on its queue and on utilization."""
    [bound] = parse_promise(story.PROMISE)
    signals = {
        on: cluster for on, cluster in state.signals.items() if cluster is not state.expected
    }
    scaled = "; ".join(f"on {on}, {_kept_promises(cluster)}" for on, cluster in signals.items())
    return (
        f"The same requests, three signals. {bound.share:.0%} of the requests of chat are promised "
        f"a first token within {bound.seconds:g} s. Scaled {scaled}."
    )


def _replicas_ahead(state: DemoState) -> str:
    """Compare the queue with what is expected of it."""
    return (
        f"Replicas ahead of demand: chat on its queue and on what {len(state.days.seeds)} earlier "
        f"days make its HPA expect: {_kept_promises(state.expected)}."
    )


def _kept_promises(cluster: DemoCluster) -> str:
    """Return how many requests kept the promise, and what that cost."""
    name = story.BURSTS[0].service
    totals = cluster.world.services[name].totals
    minutes = cluster.world.gpu_seconds[name] / 60
    share = f"{1 - totals.late / totals.begun:.1%}" if totals.begun else "none"
    return f"{share} had it, for {minutes:.0f} GPU-minutes"


def _outage(state: DemoState, outage: OutagePlayed) -> str:
    """Return how the HPAs behaved whose pods the dead exporter reported."""
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
            text += _made_up_effect(blind)
    return f"{text}."


def _made_up_effect(blind: Sequence[Sync]) -> str:
    """Return what values of 0 would have done at these syncs, if anything."""
    most = max(blind, key=lambda sync: sync.decision.current)
    if most.lowest >= most.decision.current:
        return ""
    return f". A made-up 0 would have scaled in {most.decision.current} -> {most.lowest}"


def _nodes(state: DemoState) -> str:
    names = [scaler.service for scaler in state.reactive.autoscalers]
    waited = [sum(map(cluster.world.waiting_seconds, names)) for cluster in state.clusters]
    hours = [paid_seconds(cluster, names) / 3600 for cluster in state.clusters]
    return (
        f"Pods of {' and '.join(names)} waited for a GPU {waited[0]:.0f} pod-seconds with nodepool "
        f"and {waited[1]:.0f} without; its nodes ran for {hours[0]:.2f} GPU-hours instead of "
        f"{hours[1]:.2f}."
    )


def paid_seconds(cluster: DemoCluster, names: Sequence[str]) -> float:
    """Return the seconds of the GPUs on the nodes of these services, from the nodes' order."""
    world = cluster.world
    resources = {world.workloads[name].resource for name in names}
    pools = [pool for pool in world.fleet.pools if pool.resource in resources]
    return sum(world.paid_seconds[pool.name] for pool in pools)


def summary(state: DemoState) -> RenderableType:
    """Return the table and the sentences below it."""
    world = state.world
    heading = (
        f"{clock(world.now)} simulated (after a warm-up of {clock(-world.start)}, which totals "
        f"include), {state.speed:.3g}x real time, seed {state.seed}"
    )
    return Group(
        Text(heading),
        _number_sentences(outcomes(state)),
        Text(),
        Text("Each service of the cluster in the picture:"),
        _services(state),
        Text(_reads(state)),
        Text(),
        Text("The same load on two clusters whose nodes take time to boot:"),
        comparison(state),
        Text(describe_learning(state)),
        Text("These minutes contain only bursts; load/README.md has whole days of recorded load."),
        Text(),
        Text.assemble(("Next, on your own cluster: ", "bold"), f"{state.adapter} doctor"),
    )


def _number_sentences(sentences: Sequence[str]) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    for number, sentence in enumerate(sentences, 1):
        grid.add_row(f"{number}.", Text(sentence))
    return grid


def _services(state: DemoState) -> Table:
    world, scalers = state.world, state.autoscalers
    totals = [world.services[scaler.service].totals for scaler in scalers]
    return figures(
        ["", *(scaler.service for scaler in scalers)],
        {
            "requests served": [f"{total.served} of {total.arrived}" for total in totals],
            "longest queue": [str(total.peak_queue) for total in totals],
            "replicas, minimum to maximum": [_replicas(state, scaler) for scaler in scalers],
            "scaled out / in": [_moves(scaler) for scaler in scalers],
            "device-minutes held": [
                f"{world.gpu_seconds[scaler.service] / 60:.0f}" for scaler in scalers
            ],
            "at a constant maximum": [_constant_maximum(state, scaler) for scaler in scalers],
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


def _constant_maximum(state: DemoState, scaler: DemoAutoscaler) -> str:
    peak = max(_counts(state, scaler)) * (state.world.now - state.world.start)
    if peak <= 0:
        return "-"
    saved = 1 - state.world.gpu_seconds[scaler.service] / peak
    return f"{peak / 60:.0f} ({saved:.0%} saved)"


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


def comparison(state: DemoState) -> Table:
    """Waiting, cost and load of the services, with nodepool and without."""
    names = [scaler.service for scaler in state.reactive.autoscalers]
    return figures((" and ".join(names), "with nodepool", "without"), _rows(state, names))


def figures(headings: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Table:
    """Return a table with a label and figures in each row."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="right" if table.columns else "left")
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


def describe_learning(state: DemoState) -> str:
    """What nodepool had learned before the run."""
    days = state.days
    if not days.peaks:
        return "nodepool had learned nothing before the run."
    text = (
        f"nodepool learned from {len(days.peaks)} earlier days of the same load, simulated before "
        f"this run with the seeds {', '.join(map(str, days.seeds))}."
    )
    for scaler in state.reactive.autoscalers:
        most = ", ".join(str(day[scaler.service]) for day in days.peaks if scaler.service in day)
        text += f" {scaler.metric} of {scaler.service} asked for up to {most} pods there."
    for pool in state.world.fleet.pools:
        boot = days.past.boots.p90(pool.name)
        if boot is not None:
            text += f" A node of {pool.name} took {boot:.0f} s to boot."
    return text


def needed_replicas(scaler: DemoAutoscaler, rate: float, mean_work: float) -> int:
    """Return the fewest replicas that the HPA does not want to raise at a load.

    Args:
        rate: requests per second.
        mean_work: GPU-seconds of a request.
    """
    target = scaler.target / 100 * (1 + ControllerOptions().tolerance)
    return max(1, math.ceil(rate * mean_work / target))


def _rows(state: DemoState, names: list[str]) -> dict[str, list[str]]:
    waits = [
        [
            pod.waiting_seconds(cluster.world.now)
            for name in names
            for pod in cluster.world.created[name]
        ]
        for cluster in state.clusters
    ]
    rows = {
        "pod-seconds of waiting for a GPU": [f"{sum(seconds):.0f}" for seconds in waits],
        "longest wait of a pod": [f"{max(seconds, default=0):.0f} s" for seconds in waits],
    }
    for burst in story.BURSTS:
        if burst.start < state.world.now:
            label, cells = _burst(state, burst)
            rows[label] = cells
    hours = [paid_seconds(cluster, names) / 3600 for cluster in state.clusters]
    rows["GPU-hours of the nodes, counted from the order"] = [
        f"{hours[0]:.2f} ({hours[0] / hours[1] - 1:+.0%})" if hours[1] else f"{hours[0]:.2f}",
        f"{hours[1]:.2f}",
    ]
    rows["syncs above the target and its tolerance"] = [
        _share_over_target(cluster, names) for cluster in state.clusters
    ]
    rows["longest queue of requests"] = [
        str(max(cluster.world.services[name].totals.peak_queue for name in names))
        for cluster in state.clusters
    ]
    return rows


def _burst(state: DemoState, burst: story.Burst) -> tuple[str, list[str]]:
    """Return how long it took until all the pods that the burst needs were Running."""
    workload = state.world.workloads[burst.service]
    scaler = next(scaler for scaler in state.autoscalers if scaler.service == burst.service)
    corners = workload.profile.points
    rates = [corner.rate for corner in corners if burst.start <= corner.at <= burst.end]
    count = needed_replicas(scaler, max(rates), workload.mean_work)
    cells = []
    for cluster in state.clusters:
        end = min(burst.end, cluster.world.now)
        created = cluster.world.created[burst.service]
        after = running_after(created, count, burst.start, end)
        never = "never" if cluster.world.now >= burst.end else "not yet"
        cells.append(never if after is None else f"{after:.0f} s")
    return f"burst at {clock(burst.start)}: {count} pods Running after", cells


def running_after(pods: Sequence[DemoPod], count: int, start: float, end: float) -> float | None:
    """Seconds from ``start`` until ``count`` pods hold a device; None when not before ``end``."""
    moments = sorted(pod.bound for pod in pods if pod.bound is not None and pod.bound > start)
    for moment in [start, *moments]:
        if moment < end and sum(pod.holds(moment) for pod in pods) >= count:
            return moment - start
    return None


def _share_over_target(cluster: DemoCluster, names: list[str]) -> str:
    """Return the share of the syncs over the target. A sync without a value does not count."""
    most = 1 + ControllerOptions().tolerance
    over = [
        sync.value > most * scaler.target
        for scaler in cluster.autoscalers
        if scaler.service in names
        for sync in scaler.syncs
        if sync.value is not None
    ]
    return f"{sum(over) / len(over):.0%}" if over else "-"

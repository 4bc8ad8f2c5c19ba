"""The comparison of the two clusters in the summary; each figure is counted in this run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from adapter.demo import story
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.fleet import DemoPod
from adapter.demo.state import DemoCluster, DemoState, clock
from adapter.hpa import ControllerOptions


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


def learned(state: DemoState) -> str:
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


def needed(scaler: DemoAutoscaler, rate: float, mean_work: float) -> int:
    """Return the fewest replicas that the HPA does not want to raise at a load.

    Args:
        rate: requests per second.
        mean_work: GPU-seconds of a request.
    """
    target = scaler.target / 100 * (1 + ControllerOptions().tolerance)
    return max(1, math.ceil(rate * mean_work / target))


def _rows(state: DemoState, names: list[str]) -> dict[str, list[str]]:
    waits = [
        [pod.waited(each.world.now) for name in names for pod in each.world.created[name]]
        for each in state.clusters
    ]
    rows = {
        "pod-seconds of waiting for a GPU": [f"{sum(each):.0f}" for each in waits],
        "longest wait of a pod": [f"{max(each, default=0):.0f} s" for each in waits],
    }
    for burst in story.BURSTS:
        if burst.start < state.world.now:
            label, cells = _burst(state, burst)
            rows[label] = cells
    hours = [_paid(each, names) / 3600 for each in state.clusters]
    rows["GPU-hours of the nodes, counted from the order"] = [
        f"{hours[0]:.2f} ({hours[0] / hours[1] - 1:+.0%})" if hours[1] else f"{hours[0]:.2f}",
        f"{hours[1]:.2f}",
    ]
    rows["syncs above the target and its tolerance"] = [
        _over(each, names) for each in state.clusters
    ]
    rows["longest queue of requests"] = [
        str(max(each.world.services[name].totals.peak_queue for name in names))
        for each in state.clusters
    ]
    return rows


def _burst(state: DemoState, burst: story.Burst) -> tuple[str, list[str]]:
    """Return how long it took until all the pods that the burst needs were Running."""
    workload = state.world.workloads[burst.service]
    scaler = next(each for each in state.autoscalers if each.service == burst.service)
    corners = workload.profile.points
    rates = [corner.rate for corner in corners if burst.start <= corner.at <= burst.end]
    count = needed(scaler, max(rates), workload.mean_work)
    cells = []
    for each in state.clusters:
        end = min(burst.end, each.world.now)
        created = each.world.created[burst.service]
        after = running_after(created, count, burst.start, end)
        never = "never" if each.world.now >= burst.end else "not yet"
        cells.append(never if after is None else f"{after:.0f} s")
    return f"burst at {clock(burst.start)}: {count} pods Running after", cells


def running_after(pods: Sequence[DemoPod], count: int, start: float, end: float) -> float | None:
    """Seconds from ``start`` until ``count`` pods hold a device; None when not before ``end``."""
    moments = sorted(pod.bound for pod in pods if pod.bound is not None and pod.bound > start)
    for at in [start, *moments]:
        if at < end and sum(pod.holds(at) for pod in pods) >= count:
            return at - start
    return None


def _paid(cluster: DemoCluster, names: list[str]) -> float:
    world = cluster.world
    resources = {world.workloads[name].resource for name in names}
    pools = [pool for pool in world.fleet.pools if pool.resource in resources]
    return sum(world.paid_seconds[pool.name] for pool in pools)


def _over(cluster: DemoCluster, names: list[str]) -> str:
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

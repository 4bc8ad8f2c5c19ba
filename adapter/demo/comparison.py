"""The comparison of the two clusters in the summary; each figure is counted in this run."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table

from adapter.demo import story, waits
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.show import Show, clock
from adapter.demo.side import Side
from adapter.hpa import ControllerOptions


def comparison(show: Show) -> Table:
    """Waiting, cost and load of the services, with nodepool and without."""
    table = Table(box=box.SIMPLE_HEAD)
    names = [scaler.service for scaler in show.reactive.autoscalers]
    for heading in (" and ".join(names), "with nodepool", "without"):
        table.add_column(heading, justify="left" if not table.columns else "right")
    for label, cells in _rows(show, names).items():
        table.add_row(label, *cells)
    return table


def learned(show: Show) -> str:
    """What nodepool had learned before the run."""
    days = show.days
    if not days.peaks:
        return "nodepool had learned nothing before the run."
    text = (
        f"nodepool learned from {len(days.peaks)} earlier days of the same load, simulated before "
        f"this run with the seeds {_list(days.seeds)}."
    )
    for scaler in show.reactive.autoscalers:
        peaks = [day[scaler.service] for day in days.peaks if scaler.service in day]
        text += f" {scaler.metric} of {scaler.service} asked for up to {_list(peaks)} pods there."
    for pool in show.world.fleet.pools:
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


def _rows(show: Show, names: list[str]) -> dict[str, list[str]]:
    sides = list(show.sides)
    pods = [[pod for name in names for pod in side.world.created[name]] for side in sides]
    nows = [side.world.now for side in sides]
    rows = {
        "pod-seconds of waiting for a GPU": [
            f"{waits.waited(own, now):.0f}" for own, now in zip(pods, nows, strict=True)
        ],
        "longest wait of a pod": [
            f"{waits.longest(own, now):.0f} s" for own, now in zip(pods, nows, strict=True)
        ],
    }
    for burst in story.BURSTS:
        if burst.start < show.world.now:
            label, cells = _burst(show, burst)
            rows[label] = cells
    hours = [_paid(side, names) / 3600 for side in sides]
    rows["GPU-hours of the nodes, counted from the order"] = [
        f"{hours[0]:.2f} ({hours[0] / hours[1] - 1:+.0%})" if hours[1] else f"{hours[0]:.2f}",
        f"{hours[1]:.2f}",
    ]
    rows["syncs above the target and its tolerance"] = [_over(side, names) for side in sides]
    rows["longest queue of requests"] = [
        str(max(side.world.totals(name).peak_queue for name in names)) for side in sides
    ]
    return rows


def _burst(show: Show, burst: story.Burst) -> tuple[str, list[str]]:
    """Return how long it took until all the pods that the burst needs were Running."""
    workload = show.world.workloads[burst.service]
    scaler = next(each for each in show.autoscalers if each.service == burst.service)
    corners = workload.profile.points
    rates = [corner.rate for corner in corners if burst.start <= corner.at <= burst.end]
    count = needed(scaler, max(rates), workload.mean_work)
    cells = []
    for side in show.sides:
        end = min(burst.end, side.world.now)
        created = side.world.created[burst.service]
        after = waits.running_after(created, count, burst.start, end)
        never = "never" if side.world.now >= burst.end else "not yet"
        cells.append(never if after is None else f"{after:.0f} s")
    return f"burst at {clock(burst.start)}: {count} pods Running after", cells


def _paid(side: Side, names: list[str]) -> float:
    resources = {side.world.workloads[name].resource for name in names}
    pools = [pool for pool in side.world.fleet.pools if pool.resource in resources]
    return sum(side.world.paid_seconds[pool.name] for pool in pools)


def _over(side: Side, names: list[str]) -> str:
    """Return the share of the syncs over the target. A sync without a value does not count."""
    most = 1 + ControllerOptions().tolerance
    over = [
        sync.value > most * scaler.target
        for scaler in side.autoscalers
        if scaler.service in names
        for sync in scaler.syncs
        if sync.value is not None
    ]
    return f"{sum(over) / len(over):.0%}" if over else "-"


def _list(values: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, values))

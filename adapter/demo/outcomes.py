"""The three outcomes that the summary begins with, from the figures of the run."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.demo.autoscaler import Sync
from adapter.demo.state import DemoCluster, DemoState, OutagePlayed, clock


def outcomes(state: DemoState) -> Sequence[str]:
    """Return the sentences: the signal, the missing values, the nodes."""
    dead = [_outage(state, outage) for outage in state.outages]
    return (
        _signal(state),
        " ".join(dead) or "No exporter died in the part of the story that was played.",
        _nodes(state),
    )


def _signal(state: DemoState) -> str:
    """Compare the service that is scaled on its queue with the one scaled on utilization."""
    [name] = state.queued.world.services
    queue, utilization = (_took(each, name) for each in (state.queued, state.shown))
    return (
        f"The same requests, two signals: {name} scaled on its queue took {queue}; {name} scaled "
        f"on GPU utilization took {utilization}."
    )


def _took(cluster: DemoCluster, name: str) -> str:
    totals = cluster.world.services[name].totals
    mean = totals.mean_seconds
    time = "no time" if mean is None else f"{mean:.1f} s a request"
    minutes = cluster.world.gpu_seconds[name] / 60
    return f"{time}, had up to {totals.peak_queue} waiting and held {minutes:.0f} GPU-minutes"


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
            text += _made_up(blind)
    return f"{text}."


def _made_up(blind: Sequence[Sync]) -> str:
    """Return what values of 0 would have done at these syncs, if anything."""
    most = max(blind, key=lambda sync: sync.decision.current)
    if most.lowest >= most.decision.current:
        return ""
    return f". A made-up 0 would have scaled in {most.decision.current} -> {most.lowest}"


def _nodes(state: DemoState) -> str:
    names = [scaler.service for scaler in state.reactive.autoscalers]
    waited = [sum(map(each.world.waited, names)) for each in state.clusters]
    hours = [paid(each, names) / 3600 for each in state.clusters]
    return (
        f"Pods of {' and '.join(names)} waited for a GPU {waited[0]:.0f} pod-seconds with nodepool "
        f"and {waited[1]:.0f} without; its nodes ran for {hours[0]:.2f} GPU-hours instead of "
        f"{hours[1]:.2f}."
    )


def paid(cluster: DemoCluster, names: Sequence[str]) -> float:
    """Return the seconds of the GPUs on the nodes of these services, from the nodes' order."""
    world = cluster.world
    resources = {world.workloads[name].resource for name in names}
    pools = [pool for pool in world.fleet.pools if pool.resource in resources]
    return sum(world.paid_seconds[pool.name] for pool in pools)

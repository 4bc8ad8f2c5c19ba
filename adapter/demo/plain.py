"""The demo as lines of text, for pipes, logs and screen readers."""

from __future__ import annotations

from adapter.demo import waits
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.show import Show, clock
from adapter.demo.side import Side
from adapter.demo.world import DemoEvent

STATUS_PERIOD = 60.0
"""Seconds of the simulation between two lines about each service."""


def event_line(event: DemoEvent) -> str:
    """Format one event."""
    return f"{clock(event.at)}  {event.about}: {event.text}"


def status_line(show: Show, scaler: DemoAutoscaler) -> str:
    """Format the current state of one service."""
    world, name = show.world, scaler.service
    counts = world.counts(name)
    latest = scaler.latest
    value = "none" if latest is None or latest.value is None else f"{latest.value:.1f}"
    return (
        f"{clock(world.now)}  {name}: {world.rate(name):.1f} req/s, queue {world.queue(name)}, "
        f"{world.wanted(name)} wanted, {counts.ready} ready, {counts.starting} loading, "
        f"{counts.pending} without a GPU; {scaler.metric} {value}, target {scaler.target:g}"
    )


def nudge_line(show: Show) -> str:
    """Headroom, and how long the pods of both clusters have waited for a GPU so far."""
    ordered = sum(order.replicas for order in show.nudged.nudge.orders) if show.nudged.nudge else 0
    nudged, reactive = (_waited(show, side) for side in show.sides)
    return (
        f"{clock(show.world.now)}  nodepool: {ordered} pods of headroom; waited for a GPU so far: "
        f"{nudged:.0f} pod-seconds with it, {reactive:.0f} without"
    )


def _waited(show: Show, side: Side) -> float:
    names = [scaler.service for scaler in show.reactive.autoscalers]
    return sum(waits.waited(side.world.created[name], side.world.now) for name in names)

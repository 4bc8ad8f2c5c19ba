"""Sentences that explain the story while it plays.

A sentence that compares the clusters is made from their state at its time, so that it is true for
any seed and speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from adapter.demo import story
from adapter.demo.state import DemoCluster, DemoState

PINNED: Final = 60.0
"""Seconds of the simulation for which the picture keeps a caption."""


class Caption(NamedTuple):
    """A sentence that is shown at its time."""

    at: float
    """Seconds of the story."""
    about: str
    say: Callable[[DemoState], str]


def _headroom(state: DemoState) -> str:
    return (
        "free GPUs that nodepool orders before pods need them. "
        "A node pool is a group of nodes that can grow"
    )


def _burst(state: DemoState) -> str:
    service = story.BURSTS[0].service
    rates = [point.rate for point in state.world.workloads[service].profile.points]
    return (
        f"its requests rise from {rates[0]:g} to {max(rates):g} a second. One {service} is scaled "
        "on utilization, others with the same requests on their queue and on a promise"
    )


def _signals(state: DemoState) -> str:
    scaled = "; ".join(f"on {signal}: {_now(cluster)}" for signal, cluster in state.signals.items())
    return f"{scaled}. Utilization ends at 100, and does not show how much too much there is"


def _now(cluster: DemoCluster) -> str:
    service = story.BURSTS[0].service
    pods, waiting = cluster.world.wanted[service], cluster.world.services[service].waiting
    return f"{pods} pods, {waiting} requests wait"


def _waiting_times(state: DemoState) -> str:
    service = story.BURSTS[0].service
    ahead, late = (cluster.world.waiting_seconds(service) for cluster in state.clusters)
    return (
        f"pods of {service} waited for a GPU so far: {ahead:.0f} pod-seconds with nodepool, "
        f"{late:.0f} without"
    )


def _notebook(state: DemoState) -> str:
    return f"holds 2 MIG instances of dev-1 and does nothing: {state.adapter} idle --min 10s"


def _rerank(state: DemoState) -> str:
    return f"its HPA is stuck without a value: {state.adapter} explain hpa rerank -n research"


CAPTIONS: Final = (
    Caption(0, "headroom", _headroom),
    Caption(story.BURSTS[0].start, story.BURSTS[0].service, _burst),
    Caption(130, "rerank", _rerank),
    Caption(200, story.BURSTS[0].service, _signals),
    Caption(270, "notebook", _notebook),
    Caption(340, "nodepool", _waiting_times),
)

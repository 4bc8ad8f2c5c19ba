"""What ``replay hpa --headroom`` says of the loads that the lab plays.

Its nodes are a model. Beside the lab, the figures show how far it is from a real control plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.hpa import ControllerOptions, Observation, from_manifest
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.nodestudy import NodeOptions, study_nodes
from adapter.tools.replay.nodeworld import NodePhysics
from adapter.tools.replay.options import FORECAST, NONE, SHARE, TriedHeadroom
from adapter.tools.replay.simulation import SimulatedWorld
from adapter.tools.replay.syncs import RecordedSync
from load.nodepoolplays import MOST, PERCENT, LabPlay, wanted
from tests.e2e.lab.stage import autoscaler

TRIED: Final = (TriedHeadroom(NONE), TriedHeadroom(SHARE, PERCENT), TriedHeadroom(FORECAST))
"""In the order of the lab's policies."""
_BEGIN: Final = 1_700_000_040.0
"""A whole minute."""
_BATCH: Final = 1.0
"""Seconds: Karpenter waits until no pod has arrived for so long."""


class Expected(NamedTuple):
    """What a policy comes to."""

    wait_seconds: float
    """Of all pods together."""
    node_minutes: float


def expected(play: LabPlay) -> list[Expected]:
    """Return what each policy of :data:`TRIED` comes to, over all loads.

    The past is simulated too, so that the forecast knows it. It does not count.
    """
    waits, minutes = [0.0] * len(TRIED), [0.0] * len(TRIED)
    for load in play.loads:
        past = [each for each in load.past for _ in range(play.apart // play.tick)]
        parts = ((1, load.ticks), (-1, load.ticks[: play.uncounted]))
        for sign, ticks in parts:
            for number, found in enumerate(_costs(play, [*past, *ticks])):
                waits[number] += sign * found.wait_seconds
                minutes[number] += sign * found.node_minutes
    return [Expected(*each) for each in zip(waits, minutes, strict=True)]


def _costs(play: LabPlay, ticks: Sequence[float]) -> list[Expected]:
    if not ticks:
        return [Expected(0.0, 0.0)] * len(TRIED)
    behavior = {"scaleDown": {"stabilizationWindowSeconds": play.stabilization}}
    spec = from_manifest(autoscaler("lab", 0, MOST, behavior))
    work = [
        RecordedDemand(_BEGIN + index * play.tick, round(1000 * load), 1, False, index == 0)
        for index, load in enumerate([*ticks, ticks[-1]])
    ]
    start = RecordedSync(_BEGIN, Observation(wanted(ticks[0]), (), ({},)), ())
    physics = NodePhysics(boot=play.boot, gpu_wait=_BATCH, unneeded=play.empty)
    world = SimulatedWorld(0.0, 100_000, ControllerOptions(sync_period=play.tick))
    study = study_nodes(spec, work, [start], NodeOptions(TRIED, physics), world, 1)
    return [Expected(run.waits.seconds, run.gpu_seconds / 60) for run in study.runs]

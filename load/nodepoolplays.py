"""What the lab plays: recorded loads, and the times of the cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from research import traces
from research.traces import DAY, JUDGE_DAYS, LORA, STEP, Trace, folder, many_days

TARGET: Final = 50
"""Percent: what the HPAs keep each pod at."""
LEAST: Final = 2
"""minReplicas."""
MOST: Final = 64
"""maxReplicas."""
PERCENT: Final = 20
"""The fixed share: Karpenter adds so many percent of the replicas, rounded up."""
WIDE: Final = 25
"""Minutes of a rise that is played."""
BEFORE: Final = 6
"""Minutes that are played before it and do not count: the headroom boots."""
BUSIER: Final = 4
"""By how much the recorded rate is multiplied: the machine has to carry a node for each pod."""


class LabLoad(NamedTuple):
    """What a service of each policy gets, in percent of one GPU."""

    name: str
    past: Sequence[float]
    """One entry a tick, or a minute, as the play says: what the controller has seen before."""
    ticks: Sequence[float]


class LabPlay(NamedTuple):
    """Loads, and the times of the cluster in seconds."""

    loads: Sequence[LabLoad]
    tick: int
    """Between two settings of the load, two syncs of the HPA, and two reads of nodepool."""
    apart: int
    """Between two entries of the past."""
    boot: int
    """From the order of a node to its registration."""
    empty: int
    """After which Karpenter removes an empty node."""
    scrape: int
    stabilization: int
    """Of the HPAs, downward."""
    uncounted: int = 0
    """Ticks at the beginning that do not count."""


def rises(*, quick: bool = False) -> LabPlay:
    """Return the steepest rise of each judged day."""
    trace = _trace(BUSIER)
    percent = [work * TARGET / traces.TARGET for work in trace.work]
    tick, wide, before = 15, 1 if quick else WIDE, 0 if quick else BEFORE
    loads = []
    for day in JUDGE_DAYS:
        first = steepest(percent, _minutes(trace, day)) - before
        end = first + before + wide
        ticks = [load for load in percent[first:end] for _ in range(STEP // tick)]
        loads.append(LabLoad(str(day + 1), percent[:first], ticks))
    return LabPlay(loads, tick, STEP, 120, 300, 5, 300, before * STEP // tick)


@cache
def _trace(busier: int) -> Trace:
    return many_days(folder() / LORA, busier)


def _minutes(trace: Trace, day: int) -> range:
    """Return the minutes of a day, counted from the one in which the trace begins."""
    first = int((trace.begin // DAY + day) * DAY - trace.begin) // STEP
    return range(max(0, first), min(first + DAY // STEP, len(trace.work)))


def steepest(loads: Sequence[float], minutes: range) -> int:
    """Return the first of the :data:`WIDE` minutes whose last ten are most above their first."""

    def rise(first: int) -> float:
        end = first + WIDE
        return sum(loads[end - 10 : end]) - sum(loads[first : first + 10])

    return max(range(minutes.start + BEFORE, minutes.stop - WIDE), key=rise)


def wanted(load: float) -> int:
    """Return the replicas for a load."""
    return max(LEAST, math.ceil(load / TARGET))

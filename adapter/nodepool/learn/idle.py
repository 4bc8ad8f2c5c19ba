"""Idle GPUs: which pods hold GPUs without using them, since when, and at what cost. Pure.

Autoscalers count requests and cannot see idle GPUs. Idle pods are reported, not evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple


class GpuPod(NamedTuple):
    """A pod that holds GPUs now."""

    namespace: str
    name: str
    uid: str
    """The identity of the pod: a later pod may have the same name."""
    pool: str
    gpus: int
    utilization: float | None
    """Percent, the mean over its GPUs; None without a reading."""


class IdleStreak(NamedTuple):
    """The time that a pod has been idle, from its readings."""

    since: float
    """Epoch seconds of the first reading."""
    last: float
    """Epoch seconds of the latest reading."""
    seconds: float
    """Time between consecutive idle readings, without gaps."""


class IdlePod(NamedTuple):
    """An idle pod in the report."""

    pod: GpuPod
    since: float
    """Epoch seconds."""
    gpu_hours: float
    """Observed idle time, without gaps between readings."""
    cost: float | None
    """In the price's currency; None without a price."""


BELOW: Final = 1.0
"""A pod at or below this percentage is idle."""
AFTER: Final = 900.0
"""Seconds before a pod is reported."""
GAP: Final = 120.0
"""Maximum seconds between two readings of one streak."""


def follow(
    streaks: Mapping[str, IdleStreak], pods: Sequence[GpuPod], now: float
) -> dict[str, IdleStreak]:
    """Return the streaks of all pods, by uid, updated with the current readings.

    A pod without a reading does not count as idle: its streak pauses. It ends when the pause is
    longer than :data:`GAP`, or when the clock is set back.
    """
    after: dict[str, IdleStreak] = {}
    for pod in pods:
        past = streaks.get(pod.uid)
        if past is not None and not 0 <= now - past.last <= GAP:
            past = None
        if pod.utilization is None:
            if past is not None:
                after[pod.uid] = past
        elif pod.utilization <= BELOW:
            after[pod.uid] = (
                IdleStreak(now, now, 0.0)
                if past is None
                else IdleStreak(past.since, now, past.seconds + now - past.last)
            )
    return after


def report(
    streaks: Mapping[str, IdleStreak],
    pods: Sequence[GpuPod],
    price: Callable[[str], float | None],
    now: float,
) -> tuple[IdlePod, ...]:
    """Return the pods that have been idle for long enough, most expensive first.

    Args:
        streaks: from :func:`follow` at the same ``now``.
        price: pool -> price of one of its GPUs for an hour.
    """
    rows = []
    for pod in pods:
        streak = streaks.get(pod.uid)
        if streak is None or pod.utilization is None or pod.gpus <= 0:
            continue
        if now - streak.since < AFTER:
            continue
        hours = pod.gpus * streak.seconds / 3600
        rate = price(pod.pool)
        rows.append(IdlePod(pod, streak.since, hours, None if rate is None else hours * rate))
    return tuple(sorted(rows, key=lambda row: (-row.gpu_hours, row.pod.namespace, row.pod.name)))

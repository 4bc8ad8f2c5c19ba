"""GPUs that a pod holds and does not use: which pod, since when, and at what cost. Pure.

Autoscalers do not see them: they count what pods request. Idle pods are reported, not evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class GpuPod(NamedTuple):
    """A pod that holds GPUs now."""

    namespace: str
    name: str
    uid: str
    """Its identity: a pod of the same name may be another one."""
    pool: str
    gpus: int
    utilization: float | None
    """Percent, the mean over its GPUs; None where there is no reading."""


class IdleStreak(NamedTuple):
    """How long a pod has been idle, as far as there were readings."""

    since: float
    """Epoch seconds of the first reading."""
    last: float
    """Epoch seconds of the latest reading."""
    seconds: float
    """Time between readings that were all idle; gaps are not in it."""


class IdlePod(NamedTuple):
    """A row of the report."""

    pod: GpuPod
    since: float
    """Epoch seconds."""
    gpu_hours: float
    """Seen idle; time without readings is not in it."""
    cost: float | None
    """In the price's currency; None without a price."""


class IdleRule(NamedTuple):
    """What counts as idle."""

    below: float = 1.0
    """Percent; a pod at it or under it does nothing."""
    after: float = 900.0
    """Seconds before a pod is reported."""
    gap: float = 120.0
    """Most seconds between two readings that are one streak."""


def follow(
    streaks: Mapping[str, IdleStreak], pods: Sequence[GpuPod], rule: IdleRule, now: float
) -> dict[str, IdleStreak]:
    """The streaks of all pods, by uid, with what is seen now.

    A pod without a reading is never idle: its streak rests, and ends when it rests for longer
    than the rule's gap, or when the clock is set back.
    """
    after: dict[str, IdleStreak] = {}
    for pod in pods:
        past = streaks.get(pod.uid)
        if past is not None and not 0 <= now - past.last <= rule.gap:
            past = None
        if pod.utilization is None:
            if past is not None:
                after[pod.uid] = past
        elif pod.utilization <= rule.below:
            after[pod.uid] = (
                IdleStreak(now, now, 0.0)
                if past is None
                else IdleStreak(past.since, now, past.seconds + now - past.last)
            )
    return after


def report(
    streaks: Mapping[str, IdleStreak],
    pods: Sequence[GpuPod],
    rule: IdleRule,
    price: Callable[[str], float | None],
    now: float,
) -> tuple[IdlePod, ...]:
    """The pods that are idle now and have been for long enough; the costliest waste first.

    Args:
        streaks: of :func:`follow` at the same ``now``.
        price: pool to the price of one of its GPUs for an hour.
    """
    rows = []
    for pod in pods:
        streak = streaks.get(pod.uid)
        if streak is None or pod.utilization is None or pod.gpus <= 0:
            continue
        if now - streak.since < rule.after:
            continue
        hours = pod.gpus * streak.seconds / 3600
        each = price(pod.pool)
        rows.append(IdlePod(pod, streak.since, hours, None if each is None else hours * each))
    return tuple(sorted(rows, key=lambda row: (-row.gpu_hours, row.pod.namespace, row.pod.name)))

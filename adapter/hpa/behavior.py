"""Limits on a proposed number of replicas: stabilization windows and rate policies.

``normalizeDesiredReplicas`` and ``normalizeDesiredReplicasWithBehaviors`` of ``horizontal.go``. The
controller overwrites outdated entries of its lists in place. Here they are dropped, with the same
decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from adapter.hpa.podreplicas import MAX_INT32
from adapter.hpa.spec import Behavior, PolicyKind, Rules, ScalingPolicy, Select


class Recommendation(NamedTuple):
    """The proposal of the metrics at one sync, before any limit."""

    replicas: int
    time: float
    """Epoch seconds."""


class ScaleEvent(NamedTuple):
    """A change of the replicas that was carried out."""

    change: int
    """Pods added or removed; never negative."""
    time: float
    """Epoch seconds."""


class ScalingHistory(NamedTuple):
    """Recommendations and scale events of earlier syncs."""

    recommendations: tuple[Recommendation, ...]
    ups: tuple[ScaleEvent, ...]
    downs: tuple[ScaleEvent, ...]


class Limited(NamedTuple):
    """A number of replicas, and what limited it."""

    replicas: int
    reason: str
    message: str


class Bounds(NamedTuple):
    """A lowest and a highest number of replicas."""

    low: int
    high: int


READY = ("ReadyForNewScale", "recommended size matches current size")
_LOWER = "recent recommendations were lower than current one, applying the lowest recent"
_HIGHER = "recent recommendations were higher than current one, applying the highest recent"
SCALE_UP_STABILIZED = ("ScaleUpStabilized", f"{_LOWER} recommendation")
SCALE_DOWN_STABILIZED = ("ScaleDownStabilized", f"{_HIGHER} recommendation")

_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_UP_LIMIT = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_DOWN_LIMIT = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_TOO_MANY = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")


def stabilize_plain(
    past: tuple[Recommendation, ...], wanted: int, window: float, now: float
) -> tuple[Limited, tuple[Recommendation, ...]]:
    """Take the highest recommendation of the window, for an HPA without ``behavior``."""
    recent = tuple(advice for advice in past if advice.time >= now - window)
    highest = max((advice.replicas for advice in recent), default=wanted)
    stable = max(highest, wanted)
    condition = READY if stable == wanted else SCALE_DOWN_STABILIZED
    return Limited(stable, *condition), (*recent, Recommendation(wanted, now))


def limit_plain(current: int, wanted: int, bounds: Bounds) -> Limited:
    """Keep within the bounds, and grow to at most twice the size, or 4, in one step."""
    rate = max(2 * current, 4)
    highest, condition = (rate, _UP_LIMIT) if bounds.high > rate else (bounds.high, _TOO_MANY)
    if wanted < bounds.low:
        return Limited(bounds.low, *_TOO_FEW)
    if wanted > highest:
        return Limited(highest, *condition)
    return Limited(wanted, *_WITHIN)


def stabilize(
    past: tuple[Recommendation, ...],
    current: int,
    wanted: int,
    windows: tuple[float, float],
    now: float,
) -> tuple[Limited, tuple[Recommendation, ...]]:
    """Move no higher than the lowest, no lower than the highest recommendation of a window.

    Args:
        windows: seconds to look back when scaling up, and when scaling down.
    """
    up, down = windows
    lowest = min((advice.replicas for advice in past if advice.time > now - up), default=wanted)
    highest = max((advice.replicas for advice in past if advice.time > now - down), default=wanted)
    stable = min(max(current, min(lowest, wanted)), max(highest, wanted))
    recent = tuple(advice for advice in past if advice.time >= now - max(windows))
    condition = READY
    if stable != wanted:
        condition = SCALE_UP_STABILIZED if wanted >= current else SCALE_DOWN_STABILIZED
    return Limited(stable, *condition), (*recent, Recommendation(wanted, now))


def rate_bounds(history: ScalingHistory, behavior: Behavior, current: int, now: float) -> Bounds:
    """Return the lowest and the highest number of replicas that the policies allow now."""
    return Bounds(
        min(_down_limit(history, behavior.scale_down, current, now), current),
        max(_up_limit(history, behavior.scale_up, current, now), current),
    )


def limit(current: int, wanted: int, rate: Bounds, bounds: Bounds) -> Limited:
    """Keep to the policies' rate and to the bound in the direction of the change."""
    if wanted > current:
        highest, condition = bounds.high, _TOO_MANY
        if rate.high < bounds.high:
            highest, condition = rate.high, _UP_LIMIT
        if wanted > highest:
            return Limited(highest, *condition)
    elif wanted < current:
        lowest, condition = bounds.low, _TOO_FEW
        if rate.low > bounds.low:
            lowest, condition = rate.low, _DOWN_LIMIT
        if wanted < lowest:
            return Limited(lowest, *condition)
    return Limited(wanted, *_WITHIN)


def record(
    history: ScalingHistory, behavior: Behavior | None, before: int, after: int, now: float
) -> ScalingHistory:
    """Record a change that was carried out; without ``behavior`` nothing is recorded."""
    if behavior is None or before == after:
        return history
    event = ScaleEvent(abs(after - before), now)
    if after > before:
        return history._replace(ups=(*_recent_events(history.ups, behavior.scale_up, now), event))
    return history._replace(downs=(*_recent_events(history.downs, behavior.scale_down, now), event))


def _recent_events(
    events: tuple[ScaleEvent, ...], rules: Rules, now: float
) -> tuple[ScaleEvent, ...]:
    longest = max((policy.period for policy in rules.policies), default=0.0)
    return tuple(event for event in events if event.time >= now - longest)


def _up_limit(history: ScalingHistory, rules: Rules, current: int, now: float) -> int:
    if rules.select is Select.DISABLED:
        return current
    choose: Callable[[list[int]], int] = min if rules.select is Select.MIN else max
    return choose(
        [
            start + policy.value
            if policy.kind is PolicyKind.PODS
            # Rounded up, because a small workload could otherwise never grow.
            else min(math.ceil(float(start) * (1 + float(policy.value) / 100)), MAX_INT32)
            for policy, start in _period_starts(history, rules, current, now)
        ]
    )


def _down_limit(history: ScalingHistory, rules: Rules, current: int, now: float) -> int:
    if rules.select is Select.DISABLED:
        return current
    choose: Callable[[list[int]], int] = max if rules.select is Select.MIN else min
    return choose(
        [
            start - policy.value
            if policy.kind is PolicyKind.PODS
            else int(float(start) * (1 - float(policy.value) / 100))
            for policy, start in _period_starts(history, rules, current, now)
        ]
    )


def _period_starts(
    history: ScalingHistory, rules: Rules, current: int, now: float
) -> list[tuple[ScalingPolicy, int]]:
    """Pair each policy with the number of replicas at the start of its period."""
    return [
        (
            policy,
            current
            - _sum_changes(history.ups, policy.period, now)
            + _sum_changes(history.downs, policy.period, now),
        )
        for policy in rules.policies
    ]


def _sum_changes(events: tuple[ScaleEvent, ...], period: float, now: float) -> int:
    return sum(event.change for event in events if event.time > now - period)

"""The HPA of a simulated service: the real algorithm, and a shortcut with the same results.

The service's work is divided evenly among its running pods. Every running pod has the same value,
so one value and two counts are enough. The shortcut is about 100 times as fast as
:func:`adapter.hpa.decide`, which reads each pod.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from typing import Final

from adapter.hpa import (
    HpaSpec,
    HpaState,
    MetricKind,
    MetricSpec,
    MetricTarget,
    Missing,
    Observation,
    PodState,
    TargetKind,
    Values,
    decide,
)
from adapter.hpa.podreplicas import Tolerances
from adapter.hpa.spec import ControllerOptions
from research.traces import TARGET

_TARGET_MILLI: Final = TARGET * 1000
_OPTIONS: Final = ControllerOptions()
TOLERANCES: Final = Tolerances.of(None, _OPTIONS.tolerance)


class _WorkHpa:
    """What the two have in common: the work is always known."""

    def propose_replicas(self, bound: int, pending: int, load: float | None) -> tuple[int, float]:
        work = load or 0.0
        proposed = _proposed_replicas(bound, pending, _pod_value(work, bound)) if bound else pending
        return max(1, proposed), work / TARGET


class RealHpa(_WorkHpa):
    """The HPA as :mod:`adapter.hpa` has it."""

    def __init__(self, most: int) -> None:
        target = MetricTarget(TargetKind.AVERAGE_VALUE, _TARGET_MILLI)
        self._spec = HpaSpec(most, (MetricSpec(MetricKind.PODS, "work", target),))
        self._state = HpaState()

    def sync(self, bound: int, pending: int, load: float | None, now: float) -> int:
        values: Values = Missing("no pod is running")
        if bound:
            values = dict.fromkeys(_names(bound), _pod_value(load or 0.0, bound))
        observation = Observation(bound + pending, _pods(bound, pending), (values,))
        decision, self._state = decide(self._spec, self._state, observation, now)
        return decision.desired


class FastHpa(_WorkHpa):
    """The same decisions for one Pods metric with equal values.

    Args:
        most: ``maxReplicas``.
        window: seconds of ``scaleDown.stabilizationWindowSeconds``; ``behavior`` has no more.
    """

    def __init__(self, most: int, window: float = _OPTIONS.downscale_stabilization) -> None:
        self._most = most
        self._window = window
        self._highest: deque[tuple[float, int]] = deque()
        """Recommendations of the stabilization window that no later one exceeds, highest first."""
        self._new = True

    def sync(self, bound: int, pending: int, load: float | None, now: float) -> int:
        replicas = bound + pending
        if self._new:
            self._new = False
            self._highest.append((now, replicas))
        if not bound:
            return replicas
        wanted = _proposed_replicas(bound, pending, _pod_value(load or 0.0, bound))
        highest = self._highest
        while highest and highest[0][0] < now - self._window:
            highest.popleft()
        while highest and highest[-1][1] <= wanted:
            highest.pop()
        highest.append((now, wanted))
        return max(1, min(highest[0][1], self._most, max(2 * replicas, 4)))


def _pod_value(load: float, bound: int) -> int:
    """Return the value of each running pod in thousandths."""
    return round(load / bound * 1000)


def _proposed_replicas(bound: int, pending: int, value: int) -> int:
    """Return what the metric proposes: ``calcPlainMetricReplicas`` for equal values."""
    replicas = bound + pending
    ratio = value / _TARGET_MILLI
    if not pending or ratio <= 1.0:
        return replicas if TOLERANCES.within(ratio) else math.ceil(ratio * bound)
    cautious = (value * bound // replicas) / _TARGET_MILLI
    if cautious < 1.0 or TOLERANCES.within(cautious):
        return replicas
    return max(replicas, math.ceil(cautious * replicas))


@lru_cache(maxsize=1024)
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"p{index}" for index in range(count))


@lru_cache(maxsize=4096)
def _pods(bound: int, pending: int) -> tuple[PodState, ...]:
    running = tuple(PodState(name) for name in _names(bound))
    return running + tuple(
        PodState(f"q{index}", "Pending", ready=False) for index in range(pending)
    )

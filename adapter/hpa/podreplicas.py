"""The number of replicas that the values of pods propose, within the HPA's tolerance.

It follows ``groupPods`` and ``calcPlainMetricReplicas`` of ``replica_calculator.go``.

A pod without a value counts as it harms least: as its target on the way down, as 0 on the way up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from adapter.hpa.observation import PodState, ResourceSample, Rule, Working
from adapter.hpa.spec import Behavior, ControllerOptions

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
NO_PODS: Final = "no pods returned by selector while calculating replica count"
NO_METRICS: Final = "did not receive metrics for targeted pods (pods might be unready)"
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Tolerances(NamedTuple):
    """How far the ratio of value to target may differ from 1 without a change."""

    down: float
    up: float

    @classmethod
    def of(cls, behavior: Behavior | None, default: float) -> Tolerances:
        """Per-behavior tolerance: gate HPAConfigurableTolerance, on since 1.35."""
        if behavior is None:
            return cls(default, default)
        down, up = behavior.scale_down.tolerance, behavior.scale_up.tolerance
        return cls(default if down is None else down, default if up is None else up)

    def within(self, ratio: float) -> bool:
        """Return whether the ratio is within tolerance, so that nothing changes."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


class InvalidMetricError(Exception):
    """The metric cannot be used at this sync; the text gives the cause."""


class MetricRules(NamedTuple):
    """What bounds and times the proposal of one metric."""

    tolerances: Tolerances
    controller: ControllerOptions
    now: float
    """Epoch seconds; it matters only to CPU."""


class Proposed(NamedTuple):
    """The replicas that a metric proposes, its usage in thousandths, and how it came about."""

    replicas: int
    usage: int | None
    working: Working
    exact: float
    """The replicas before the tolerance and before they are rounded up."""


def plain_replicas(
    values: Mapping[str, int], groups: Groups, target: int, replicas: int, tolerances: Tolerances
) -> Proposed:
    """calcPlainMetricReplicas: the mean of the pods against the target."""
    fallback = dict.fromkeys(groups.missing, target)
    return by_pods(
        values, groups, lambda used: _ratio(used, target), fallback, replicas, tolerances
    )


def by_pods(
    values: Mapping[str, int],
    groups: Groups,
    measure: Callable[[Mapping[str, int]], tuple[float, int]],
    fallback: Mapping[str, int],
    replicas: int,
    tolerances: Tolerances,
) -> Proposed:
    """Compare the pods' values with the target, carefully where pods have none.

    Args:
        measure: returns the ratio of value to target, and the usage.
        fallback: the value of each missing pod on the way down; on the way up it is 0.
    """
    used = {name: v for name, v in values.items() if name not in groups.left_out}
    if not used:
        raise InvalidMetricError(NO_METRICS)
    ratio, usage = measure(used)

    def propose(
        count: int, rule: Rule, cautious: float | None = None, filled: Mapping[str, int] = NOTHING
    ) -> Proposed:
        working = Working(
            rule,
            ratio,
            values={name: v for name, v in values.items() if name not in groups.left_out},
            filled=filled,
            missing=groups.missing,
            unready=groups.unready,
            ignored=groups.ignored,
            cautious=cautious,
            count=len(used) if cautious is not None else groups.counted,
        )
        exact = (ratio if cautious is None else cautious) * float(working.count)
        return Proposed(count, usage, working, exact)

    fill_unready = bool(groups.unready) and ratio > 1.0
    if not fill_unready and not groups.missing:
        if tolerances.within(ratio):
            return propose(replicas, Rule.TOLERANCE)
        return propose(ceil32(ratio * float(groups.counted)), Rule.RATIO)

    filled: dict[str, int] = {}
    if ratio < 1.0:
        filled |= fallback
    elif ratio > 1.0:
        filled |= dict.fromkeys(groups.missing, 0)
    if fill_unready:
        filled |= dict.fromkeys(groups.unready, 0)
    used |= filled
    cautious, _ = measure(used)
    if tolerances.within(cautious):
        return propose(replicas, Rule.TOLERANCE, cautious, filled)
    count = ceil32(cautious * float(len(used)))
    turned = (ratio < 1.0 < cautious) or (cautious < 1.0 < ratio)
    wrong_way = (cautious < 1.0 and count > replicas) or (cautious > 1.0 and count < replicas)
    if turned or wrong_way:
        return propose(replicas, Rule.TURNED, cautious, filled)
    return propose(count, Rule.RATIO, cautious, filled)


class Groups(NamedTuple):
    """The pods of the scale target, by whether their values count."""

    counted: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]

    @property
    def left_out(self) -> frozenset[str]:
        """Pods whose values do not count."""
        return self.ignored | self.unready


def group(
    pods: Sequence[PodState], values: Mapping[str, int], still: frozenset[str] = frozenset()
) -> Groups:
    """groupPods: Pending is unready, Succeeded is not special.

    Args:
        still: pods with a value that does not count yet, as :func:`starting_pods` returns them.
    """
    alive = [pod for pod in pods if not pod.deleting and pod.phase != "Failed"]
    pending = frozenset(pod.name for pod in alive if pod.phase == "Pending")
    running = [pod.name for pod in alive if pod.name not in pending]
    missing = frozenset(name for name in running if name not in values)
    unready = pending | {name for name in running if name in still and name not in missing}
    ignored = frozenset(pod.name for pod in pods if pod.deleting or pod.phase == "Failed")
    counted = sum(name not in missing and name not in unready for name in running)
    return Groups(counted, unready, missing, ignored)


def starting_pods(
    pods: Sequence[PodState], samples: Mapping[str, ResourceSample], rules: MetricRules
) -> frozenset[str]:
    """Return the pods whose CPU does not count yet, because they start or were never ready."""
    return frozenset(
        pod.name
        for pod in pods
        if pod.name in samples and _is_starting(pod, samples[pod.name], rules.controller, rules.now)
    )


def _is_starting(
    pod: PodState, sample: ResourceSample, controller: ControllerOptions, now: float
) -> bool:
    if pod.ready_since is None or pod.started is None:
        return True
    if pod.started + controller.cpu_initialization > now:
        return not pod.ready or sample.time < pod.ready_since + sample.window
    return not pod.ready and pod.started + controller.initial_readiness > pod.ready_since


def _ratio(values: Mapping[str, int], target: int) -> tuple[float, int]:
    """GetMetricUsageRatio: the mean is truncated to a thousandth before it is compared."""
    total = sum(values.values())
    usage = abs(total) // len(values) * (1 if total >= 0 else -1)
    return float(usage) / float(target), usage


def ceil32(replicas: float) -> int:
    """Round up and saturate; Go's own conversion is undefined beyond 32 bits."""
    return max(-MAX_INT32, min(math.ceil(replicas), MAX_INT32))

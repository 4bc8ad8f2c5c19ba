"""The value for KEDA with which its HPA decides as the HPA would on the Pods metric.

A Pods metric has one value per pod, and the HPA controller is cautious about pods without one: it
counts them as 0 when it scales out, and as at the target when it scales in
(``replica_calculator.go``, ``calcPlainMetricReplicas``). KEDA gives the controller one number over
all pods, in which a starting pod would silently be 0. The target is known here, so the same caution
is applied before the pods are combined. The result decides how far to scale and is never shown as a
measurement: if every pod has a value, it is those values' aggregate and nothing else
(docs/decisions/0004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.answers.api.aggregate import Aggregate
from apiservice.wire.quantity import to_milli

_TOLERANCE: Final = 0.1
"""kube-controller-manager's default."""


class Standing(NamedTuple):
    """The pods of a workload, by what is known about them."""

    values: Sequence[float]
    """The values of pods that have one; at least one."""
    silent: int = 0
    """Ready pods without samples yet."""
    unready: int = 0
    """Running pods that are not Ready, and are left out for that reason."""
    pending: int = 0
    """Pods that do not run yet."""

    @property
    def whole(self) -> bool:
        """Whether every pod has a value."""
        return not (self.silent or self.unready or self.pending)


def demand(how: Aggregate, standing: Standing, target: float) -> float:
    """Return the value for KEDA: a sum for ``AverageValue``, any other aggregate for ``Value``.

    Args:
        how: the aggregate.
        standing: the pods.
        target: above 0, in the values' unit; for a sum, per replica.
    """
    values = list(standing.values)
    if standing.whole:
        return how.of(values)
    level = Aggregate.MEAN if how is Aggregate.SUM else how
    if level.of(values) <= target:
        values += [target] * (standing.silent + standing.unready)
        if level.of(values) >= (1 - _TOLERANCE) * target:
            # The HPA will not scale. Otherwise it leaves pending pods out: they have no load.
            values += [target] * standing.pending
        return how.of(values)
    missing = standing.silent + standing.unready + standing.pending
    if level.of([*values, *[0.0] * missing]) < target:
        # The caution reversed the direction, so nothing changes.
        return how.of([target] * (len(values) + missing))
    # For Value, the controller multiplies by the ready pods only.
    values += [0.0] * (missing if how is Aggregate.SUM else standing.silent)
    return how.of(values)


MAX_MILLI: Final = 2**63 - 1
"""The largest number that the HPA's arithmetic can represent."""


_NOISE: Final = 1e-6
"""Thousandths by which floating-point arithmetic may miss the exact value."""


class Number(NamedTuple):
    """Both forms of a number in the messages."""

    whole: int
    """For a KEDA without the float field: rounded, and 0 only if the value is 0."""
    exact: float
    """KEDA uses it if it is above 0."""


def number(value: float) -> Number:
    """Return the forms of a finite ``value``, in thousandths that do not exceed it; a negative one
    is 0, as in KEDA."""
    value = max(0.0, value)
    milli = min(to_milli(value), MAX_MILLI)
    if milli > 1 and milli - value * 1000 > _NOISE:
        # A mean that is rounded up is above a whole number of replicas: 4 x 70 / 6 asks for 5 of 6.
        milli -= 1
    exact = milli / 1000
    if int(exact * 1000) < milli:
        exact = math.nextafter(exact, math.inf)
    return Number(max(1, round(exact)) if milli else 0, exact)

"""The number that makes KEDA's HPA decide as the HPA would on the Pods metric.

A Pods metric comes as one value per pod, and the HPA controller itself is cautious about
pods that have none yet: as if at 0 when scaling out, as if at the target when scaling in
(``replica_calculator.go``, ``calcPlainMetricReplicas``). KEDA hands the controller one
number over all pods, in which a pod that starts would silently be 0. The target is known
here, so the same caution is taken before the pods are combined. It decides how far to
scale and is never shown as a measurement: with a value from every pod the number is those
values' aggregate and nothing else (docs/decisions/0004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.api.aggregate import Aggregate
from apiservice.wire.quantity import to_milli

_TOLERANCE: Final = 0.1
"""kube-controller-manager's default."""


class Standing(NamedTuple):
    """The pods of a workload, by what is known of them."""

    values: Sequence[float]
    """Of the pods that have one; at least one."""
    silent: int = 0
    """Ready pods without rows yet."""
    unready: int = 0
    """Running pods that are not Ready, and are left out for that."""
    pending: int = 0
    """Pods that do not run yet."""

    @property
    def whole(self) -> bool:
        """Every pod has a value."""
        return not (self.silent or self.unready or self.pending)


def demand(how: Aggregate, standing: Standing, target: float) -> float:
    """What to tell KEDA: a sum for ``AverageValue``, any other aggregate for ``Value``.

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
            # The HPA will stay. Otherwise it leaves pending pods out: they bear no load.
            values += [target] * standing.pending
        return how.of(values)
    everybody = standing.silent + standing.unready + standing.pending
    if level.of([*values, *[0.0] * everybody]) < target:
        # Caution turned the direction: stay.
        return how.of([target] * (len(values) + everybody))
    # With Value the controller multiplies by the ready pods alone.
    values += [0.0] * (everybody if how is Aggregate.SUM else standing.silent)
    return how.of(values)


MAX_MILLI: Final = 2**63 - 1
"""What the HPA's arithmetic holds."""


class Number(NamedTuple):
    """Both forms of a number, as the messages have them."""

    whole: int
    """For KEDA that does not know the float: rounded, yet 0 only where that is the value."""
    exact: float
    """Used by KEDA where it is above 0."""


def number(value: float) -> Number:
    """The forms of a finite ``value``; a negative one is 0, as KEDA itself would have it."""
    milli = min(to_milli(max(0.0, value)), MAX_MILLI)
    exact = milli / 1000
    if int(exact * 1000) < milli:
        exact = math.nextafter(exact, math.inf)
    return Number(max(1, round(exact)) if milli else 0, exact)

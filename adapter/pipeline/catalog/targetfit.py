"""Whether the target of an autoscaler fits its metric: the form of the value, direction and unit.

How kube-controller-manager uses a number that describes several pods
(``pkg/controller/podautoscaler/replica_calculator.go``):

- ``Value``: replicas × value / target. The value must be a level, such as a mean. A sum grows with
  every new replica, so the HPA goes to its maximum.
- ``AverageValue``: value / target. The value must be a sum. A mean stays below its target by
  design, so the HPA asks for one or two replicas, however many there are.

An HPA adds replicas while the value is above its target. So a value that falls under load, such
as free memory, scales backwards. KEDA passes ``metricType`` on as the type
(``pkg/scalers/scaler.go``).

The controller knows pods by the selector of the scale subresource only. Where a replica is a group
of pods, that selector matches too few of them, or more than there are replicas:
:class:`Selects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from adapter.pipeline.catalog.latencyfit import latency_of, likely_target
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Scope, Unit
from adapter.pipeline.catalog.migfit import instead_on_mig

VALUE: Final = "Value"
AVERAGE: Final = "AverageValue"
AGGREGATE: Final = "aggregate"
"""The label of an external metric's selector, and the key of a trigger, that names the form."""
SUM: Final = "sum"
_FAR: Final = 10
"""Times the highest value of a pod that a target of pods of another workload cannot mean."""
_MIB: Final = Decimal(1 << 20)
_UNITS: Final = {
    (Unit.RATIO, Decimal(100)): Unit.PERCENT,
    (Unit.PERCENT, Decimal("0.01")): Unit.RATIO,
    (Unit.MEBIBYTES, _MIB): Unit.BYTES,
    (Unit.BYTES, 1 / _MIB): Unit.MEBIBYTES,
}
"""Unit and factor -> unit of the product."""
_UTILIZATION: Final = "gpu_utilization"
_INSTEAD: Final = {
    LoadDirection.FALLS: "gpu_memory_utilization",
    LoadDirection.STEADY: _UTILIZATION,
}


class MisfitKind(StrEnum):
    """What does not fit."""

    SUM = "a sum with a target of type Value"
    LEVEL = "a mean with a target of type AverageValue"
    FALLS = "a metric that falls under load"
    STEADY = "a metric that does not follow the load"
    UNIT = "a number in another unit"
    RANGE = "a number that no value exceeds"
    MIG = "a metric that MIG instances do not have"
    LEADERS = "a metric of the leaders of groups only"
    MEMBERS = "a number of pods that is not the number of replicas"

    @property
    def runs_away(self) -> bool:
        """Whether the HPA goes to its maximum for no load: a higher maximum is never the fix."""
        return self in (
            MisfitKind.SUM,
            MisfitKind.FALLS,
            MisfitKind.STEADY,
            MisfitKind.UNIT,
            MisfitKind.MEMBERS,
        )


class Selects(Enum):
    """The pods of a replica that the selector of its scale subresource matches."""

    ALL = "its only pod"
    LEADERS = "the leader of its group"
    MEMBERS = "every pod of its group"


class AskedTarget(NamedTuple):
    """A metric of an autoscaler, and its target."""

    name: str
    unit: Unit
    load: LoadDirection
    form: str
    """``sum``, or how the value of several pods is a level: ``mean``, ``max``, ``p95``."""
    type: str
    """``Value`` or ``AverageValue``."""
    number: Decimal | None
    """In the unit of the metric; None if it is not a number."""
    high: float | None
    """The highest value of one pod; None without one."""
    own: bool | None = True
    """Whether the value describes the pods that are scaled; None if it is not known."""
    on_mig: bool = False
    """The scaled pods are known to hold MIG instances."""
    scope: Scope | None = None
    """What a value describes; None if it is not known."""
    selects: Selects = Selects.ALL
    """Of the scaled kind."""
    of_groups: bool = False
    """The selector of a Pods metric asks for the value of each pod's group (``aggregate``)."""
    factor: Decimal = Decimal(1)
    """What a query multiplies the metric by. ``unit`` and ``high`` are those of the product."""

    @property
    def words(self) -> str:
        """The metric, as a text names it: ``DCGM_FI_PROF_GR_ENGINE_ACTIVE × 100``."""
        return self.name if self.factor == 1 else f"{self.name} × {_text(self.factor)}"

    def times(self, factor: Decimal) -> AskedTarget:
        """Return it for a query that multiplies the metric."""
        unit = self.unit if factor == 1 else _UNITS.get((self.unit, factor), Unit.NUMBER)
        high = None if self.high is None else self.high * float(factor)
        return self._replace(factor=factor, unit=unit, high=high)


class Misfit(NamedTuple):
    """Why a target does not fit, and what would."""

    kind: MisfitKind
    text: str
    """What follows, on one line, without the object's name."""
    type: str = ""
    """The type that fits; empty if the type does."""
    number: str = ""
    """The number that was probably meant, as a quantity; empty if it is not known."""
    metric: str = ""
    """A metric that follows the load instead; empty if this one does."""
    aggregate: str = ""
    """What the selector of the metric should ask for with ``aggregate``; empty if nothing."""
    words: str = ""
    """What a person has to do, as an order; empty if one field has to be set."""


def form_of(kind: str, over_pods: Combine, aggregate: str = "") -> str:
    """Return the form of the value that an autoscaler compares.

    Args:
        kind: ``Pods``, ``Object`` or ``External``.
        over_pods: how the metric combines an object's pods.
        aggregate: of an external metric; empty without one.
    """
    if kind == "Object":
        return over_pods.value
    return (aggregate or SUM) if kind == "External" else Combine.MEAN.value


def aggregate_of(selector: Mapping[str, Any] | None) -> str:
    """Return the value of the label ``aggregate`` in a LabelSelector; empty without one."""
    selector = selector or {}
    labels = selector.get("matchLabels")
    if isinstance(labels, Mapping) and AGGREGATE in labels:
        return str(labels[AGGREGATE])
    rows = selector.get("matchExpressions")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("key") == AGGREGATE and row.get("operator") == "In":
            values = row.get("values")
            if isinstance(values, list) and len(values) == 1:
                return str(values[0])
    return ""


def selector_with(selector: Mapping[str, Any] | None, aggregate: str) -> dict[str, Any]:
    """Return a LabelSelector that also asks for a form."""
    selector = dict(selector or {})
    labels = selector.get("matchLabels")
    stated = labels if isinstance(labels, Mapping) else {}
    selector["matchLabels"] = {**stated, AGGREGATE: aggregate}
    return selector


def misfits(target: AskedTarget, *, averaged: bool = False) -> Iterator[Misfit]:
    """Yield what does not fit, the most important first.

    Args:
        target: the metric and its target.
        averaged: the controller itself takes the mean over the pods, as for a Pods metric.
    """
    if (wrong := _instances(target) or _direction(target)) is not None:
        yield wrong
        return
    if (grouped := _group(target, averaged=averaged)) is not None:
        yield grouped
    if target.number is None or target.number <= 0:
        return  # the API server, or the scaler, refuses it
    form = None if averaged else _form(target)
    if form is not None:
        yield form
        if form.kind is MisfitKind.SUM:
            return  # the number is a total
    if _is_of_pod(target) and (misfit := _unit(target) or _range(target)) is not None:
        yield misfit


def _instances(target: AskedTarget) -> Misfit | None:
    instead = instead_on_mig(target.name) if target.on_mig and target.own is not False else None
    if instead is None:
        return None
    text = f"{target.name} does not exist for MIG instances, which the pods hold: it has no value"
    if instead == _UTILIZATION:
        text += f"; {instead} has one, by DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    return _misfit_of_metric(MisfitKind.MIG, text, instead or _UTILIZATION)


def _misfit_of_metric(kind: MisfitKind, text: str, metric: str) -> Misfit:
    """Return what is wrong, with a metric that does not have it."""
    words = f"scale on another metric, such as {metric}, with a target in its unit"
    return Misfit(kind, text, metric=metric, words=words)


def _direction(target: AskedTarget) -> Misfit | None:
    if target.load is LoadDirection.FALLS:
        text = (
            f"{target.words} falls as the load rises: the HPA adds replicas while there is no work"
        )
        return _misfit_of_metric(MisfitKind.FALLS, text, _INSTEAD[target.load])
    if target.load is LoadDirection.STEADY:
        text = f"{target.words} does not follow the load, so replicas do not bring it to its target"
        return _misfit_of_metric(MisfitKind.STEADY, text, _INSTEAD[target.load])
    return None


def _group(target: AskedTarget, *, averaged: bool) -> Misfit | None:
    """Return what is wrong for a replica that is a group of pods."""
    if target.selects is Selects.MEMBERS and (averaged or target.type == VALUE):
        return Misfit(
            MisfitKind.MEMBERS,
            "the selector of the scaled object matches every pod of a group, and the HPA "
            f"multiplies their number by {target.name} / target: it asks for too many groups",
            words="scale on the sum of an External metric (workload=NAME) with type AverageValue, "
            "and a target for one pod times the pods of a group "
            "(docs/recipes/leaderworkerset.md)",
        )
    leaders = target.selects is Selects.LEADERS and averaged and not target.of_groups
    if not leaders or target.scope is not Scope.DEVICE:
        return None
    return Misfit(
        MisfitKind.LEADERS,
        f"{target.name} is read of the leaders only, because the selector of the scaled object "
        "matches no worker: the HPA scales in while the leaders are idle and the workers are busy",
        aggregate=Combine.MEAN.value,
    )


def _form(target: AskedTarget) -> Misfit | None:
    latency = latency_of(target.name) is not None
    if target.form == SUM:
        if latency and target.own is False:
            return Misfit(
                MisfitKind.SUM,
                f"{target.name} is a sum: the latency times the pods that have it, which are not "
                "those that are scaled",
                aggregate=Combine.MEAN.value,
                words="ask for aggregate: mean, with a target of type Value",
            )
        if target.type != VALUE or target.own is False:
            return None
        return Misfit(
            MisfitKind.SUM,
            f"{target.words} is the sum over the pods, and its target has type Value: each new "
            "replica raises the sum, so the HPA goes to its maximum",
            type=AVERAGE,
        )
    counted = target.high is None and not latency  # such as the queue of one gateway
    if target.type != AVERAGE or (target.own is False and counted):
        return None
    text = (
        f"{target.words} is the {_word(target.form)} over the pods, and its target has type "
        "AverageValue: the HPA asks for value / target replicas"
    )
    if target.high is not None and target.number is not None:
        most = Decimal(target.high) / target.number
        text += f", so for {int(most.to_integral_value(ROUND_CEILING))} at most"
    return Misfit(MisfitKind.LEVEL, text, type=VALUE)


def _word(form: str) -> str:
    return {"max": "maximum", "min": "minimum"}.get(form, form)


def _is_of_pod(target: AskedTarget) -> bool:
    """Return whether the number is one that the value of a pod, or a mean of them, can have."""
    grouped = target.selects is not Selects.ALL
    if target.form != SUM or (target.own and not grouped):
        return True
    if grouped:
        return False  # the target is that of a group
    # Many pods of another workload may be behind each replica.
    high, number = target.high, target.number
    return target.own is None and (
        high is None or number is None or number < high or number >= _FAR * high
    )


def _unit(target: AskedTarget) -> Misfit | None:
    assert target.number is not None  # noqa: S101 - the caller has checked
    other = other_unit(target.unit, target.number)
    if other is None:
        return None
    words, better = other
    return Misfit(MisfitKind.UNIT, f"the target of {target.words} means {words}", number=better)


def _range(target: AskedTarget) -> Misfit | None:
    if (
        target.number is not None
        and target.factor == 1
        and (meant := likely_target(target.name, target.number)) is not None
    ):
        text = f"the target of {target.name} is {_text(target.number)} s: it never scales out"
        return Misfit(MisfitKind.RANGE, text, number=meant)
    high, number = target.high, target.number
    if high is None or number is None or number < high:
        return None
    better = "70"
    if target.unit is Unit.NUMBER:
        better = _text(Decimal(f"{high * 0.7:g}"))
    elif target.unit is Unit.RATIO:
        # A percentage as the target of a ratio: 70 means 0.7.
        percent = min(number, Decimal(99)) if number > 1 else Decimal(70)
        better = f"{int(percent * 10)}m"
    limit = "never above" if number > high else "at most"
    text = f"{target.words} is {limit} {high:g}, and its target is {_text(number)}: "
    text += "it never scales out"
    return Misfit(MisfitKind.RANGE, text, number=better)


def can_be_target(name: str, unit: Unit, high: float | None, number: Decimal) -> bool:
    """Return whether a number can be the target of a metric: it is in the unit, and is exceeded."""
    target = AskedTarget(name, unit, LoadDirection.UNKNOWN, "", VALUE, number, high)
    return number <= 0 or (_unit(target) or _range(target)) is None


def other_unit(unit: Unit, number: Decimal) -> tuple[str, str] | None:
    """Return what a target means and the number that was probably meant; None for a usual one.

    Args:
        unit: of the metric.
        number: the target, above 0.
    """
    text = _text(number)
    if unit is Unit.PERCENT and number <= 1:
        return f"{text} %", _text(number * 100)
    if unit is Unit.BYTES and number < _MIB:
        return f"{text} bytes", f"{text}Gi"
    if unit is Unit.MEBIBYTES and number > _MIB:
        return f"{int(number)} MiB", str(int(number / _MIB))
    return None


def _text(number: Decimal) -> str:
    """Return a number without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

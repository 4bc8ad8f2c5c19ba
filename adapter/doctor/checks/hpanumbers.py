"""Checks of HPAs' target numbers: type, range, unit."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from adapter.catalog.metric import Unit
from adapter.client.hpacommands import other_unit
from adapter.doctor import servedmetrics
from adapter.doctor.checks.hpas import asks_ours, metrics, patch
from adapter.doctor.facts import Facts, Hpa, HpaMetric
from adapter.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.hpa.quantity import to_milli

_MOST: Final = {Unit.PERCENT: Decimal(100), Unit.RATIO: Decimal(1)}


def _any_of_ours(facts: Facts) -> None:
    """Raise NotApplicableError if no HPA uses a metric of the adapter."""
    if not any(True for _ in metrics(facts)):
        raise NotApplicableError("no HPA uses a metric of the adapter")


@check("GMA402", CheckSection.HPAS, "target types can work")
def target_type(facts: Facts) -> Iterator[Finding]:
    """A metric of type Pods needs a target of type AverageValue: for another type, the controller
    uses `averageValue` regardless, or the API server rejects the HPA. `Utilization` works only for
    Resource metrics, because it relates a value to the pods' requests.

    Set `type: AverageValue` and `averageValue`. For a share of what the pod requests, use
    `gpu_utilization_of_request`.
    """
    _any_of_ours(facts)
    for hpa, metric in metrics(facts):
        wanted = "AverageValue"
        if metric.type == "Pods" and metric.target_type not in ("", wanted):
            wrong = f"type {metric.target_type}, and a Pods metric needs {wanted}"
        elif metric.target_type == "Utilization":
            wrong = "type Utilization, which only Resource metrics have"
        elif metric.type == "Pods" and metric.average is None:
            wrong = "no averageValue"
        else:
            continue
        at = f"{metric.at}.{metric.key}.target"
        number = metric.target or 70
        yield Finding(
            hpa.subject,
            f"{metric.name}: its target has {wrong}",
            f'set {at} to {{type: {wanted}, averageValue: "{number}"}}',
            patch(hpa, at, {"type": wanted, "averageValue": str(number)}),
        )


def _per_pod(metric: HpaMetric) -> Decimal | None:
    """Return the target as the mean of the pods reaches it; None if it is a sum."""
    if metric.type == "External" and metric.value is None:
        return None
    return metric.target


@check("GMA403", CheckSection.HPAS, "targets can be reached")
def unreachable_target(facts: Facts) -> Iterator[Finding]:
    """The target is above the highest value of the metric: a percentage is at most 100, a ratio at
    most 1. The HPA never scales out. The usual cause is a percentage as the target of a ratio
    (`DCGM_FI_PROF_…` are 0 to 1).

    Give a target below the maximum, such as 70 for a percentage or 700m for a ratio.
    """
    _any_of_ours(facts)
    names = servedmetrics.metrics(facts.settings)
    for hpa, metric in metrics(facts):
        most, target = _MOST.get(names[metric.name].unit), _per_pod(metric)
        if most is None or target is None or target < most:
            continue
        percent = most == 100
        better = "70" if percent else f"{min(target, Decimal(99)) * 10:f}".partition(".")[0] + "m"
        if not percent and target <= 1:
            better = "700m"
        field = "averageValue" if metric.average is not None else "value"
        at = f"{metric.at}.{metric.key}.target.{field}"
        said = "never above" if target > most else "at most"
        yield Finding(
            hpa.subject,
            f"{metric.name} is {said} {most}, and its target is {target}: it never scales out",
            f'set {at} below {most}, such as "{better}"',
            patch(hpa, at, better),
        )


@check("GMA404", CheckSection.HPAS, "targets are in the metric's unit", Severity.WARNING)
def wrong_unit(facts: Facts) -> Iterator[Finding]:
    """The target's number suggests another unit: `700m` or `0.7` for a percentage is 0.7 %, and a
    number below a mebibyte for a metric in bytes is a few bytes. The HPA scales to its maximum
    under the lightest load.

    Give the number in the unit of the metric: `docs/metrics.md`.
    """
    _any_of_ours(facts)
    names = servedmetrics.metrics(facts.settings)
    for hpa, metric in metrics(facts):
        unit, target = names[metric.name].unit, _per_pod(metric)
        if target is None or target <= 0:
            continue
        found = other_unit(unit, to_milli(target))
        if found is None:
            continue
        said, better = found
        field = "averageValue" if metric.average is not None else "value"
        at = f"{metric.at}.{metric.key}.target.{field}"
        yield Finding(
            hpa.subject,
            f"the target of {metric.name} means {said}: the HPA goes to {_goal(hpa)} as soon as it "
            "gets a value",
            f'set {at} to "{better}"',
            patch(hpa, at, better),
        )


def _goal(hpa: Hpa) -> str:
    return "its maximum" if hpa.high is None else f"maxReplicas {hpa.high}"


@check("GMA411", CheckSection.HPAS, "HPAs are below their maximum", Severity.WARNING)
def at_maximum(facts: Facts) -> Iterator[Finding]:
    """The HPA wants more replicas than `maxReplicas` allows. The check leaves out HPAs whose target
    is in another unit (GMA404): they want more replicas than the load needs.

    Raise `maxReplicas` if there are GPUs for more replicas.
    """
    facts.live()
    limited = [hpa for hpa in facts.hpas.read() if asks_ours(facts, hpa) and _limited(hpa)]
    wrong = {each.subject for each in wrong_unit(facts)} if limited else set()
    right = [hpa for hpa in limited if hpa.subject not in wrong]
    if limited and not right:
        raise NotApplicableError("the target of every HPA at its maximum is in another unit")
    for hpa in right:
        if hpa.high is None:
            continue
        yield Finding(
            hpa.subject,
            f"wants more than its maxReplicas of {hpa.high}",
            "raise spec.maxReplicas if there are GPUs for more",
            patch(hpa, "spec.maxReplicas", hpa.high * 2),
        )


def _limited(hpa: Hpa) -> bool:
    reasons = (
        c.reason for c in hpa.conditions if c.type == "ScalingLimited" and c.status == "True"
    )
    return hpa.low != hpa.high and "TooManyReplicas" in reasons

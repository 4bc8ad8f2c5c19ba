"""Checks of the targets of HPAs and ScaledObjects: type, form, direction, range, unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from adapter.hpa import TargetKind
from adapter.pipeline.catalog.latencyfit import latency_of
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.catalog.targetfit import AVERAGE, Misfit, MisfitKind
from adapter.pipeline.cluster.fixes import Fix
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.askedmetrics import SeenTarget, target_of_metric, targets
from adapter.tools.doctor.checks.hpas import REQUESTS_ROW, asks_ours, edit, metrics, patch
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)


def _require_hpas(facts: Facts) -> None:
    """Raise NotApplicableError if no HPA uses a metric of the adapter."""
    if not any(True for _ in metrics(facts)):
        raise NotApplicableError("no HPA uses a metric of the adapter")


@check("GMA402", CheckSection.HPAS, "target types can work")
def target_type(facts: Facts) -> Iterator[Finding]:
    """A metric of type Pods needs a target of type AverageValue. `Utilization` works only for
    Resource metrics.

    Set `type: AverageValue` and `averageValue`. For a share of what the pod requests, use
    `gpu_utilization_of_request`.
    """
    _require_hpas(facts)
    for hpa, metric in metrics(facts):
        if metric.type == "Pods" and metric.target_type not in ("", AVERAGE):
            wrong = f"type {metric.target_type}, and a Pods metric needs {AVERAGE}"
        elif metric.target_type == "Utilization":
            wrong = "type Utilization, which only Resource metrics have"
        elif metric.odd and metric.target is None:
            wrong = f"the number {metric.odd!r}, which is not a quantity"
        elif metric.type == "Pods" and metric.average is None:
            wrong = "no averageValue"
        else:
            continue
        message = f"{metric.name}: its target has {wrong}"
        yield Finding(hpa.subject, message, *_correct_target(facts, hpa, metric))


def _correct_target(facts: Facts, hpa: Hpa, metric: HpaMetric) -> tuple[str, str | Fix]:
    """Return how a target becomes one of a type that can work, with the number that is stated. The
    number is what GMA403 and GMA404 would say of it, so that their fixes fit this one."""
    known_metric = servedmetrics.metrics(facts.settings)[metric.name]
    number, kind = metric.target, AVERAGE
    if number is None and metric.percent is not None and known_metric.unit in _PERCENT:
        number = metric.percent * _PERCENT[known_metric.unit]
    path = f"{metric.at}.{metric.key}.target"
    if number is None or number <= 0:
        words = f"set {path} to type {kind}, with averageValue in the unit of {metric.name}"
        return words, edit(hpa, words)
    text = f"{number.normalize():f}"
    averaged = metric._replace(target_type=kind, average=number, value=None)
    for misfit in target_of_metric(facts, hpa, averaged, known_metric).misfits:
        kind, text = misfit.type or kind, misfit.number or text
    field = TargetKind(kind).key
    words = f'set {path} to {{type: {kind}, {field}: "{text}"}}'
    return words, patch(hpa, path, {"type": kind, field: text})


_PERCENT: Final = {Unit.PERCENT: Decimal(1), Unit.RATIO: Decimal("0.01")}
"""Unit -> what one percent is in it."""


def _find_misfits(facts: Facts, *kinds: MisfitKind) -> Iterator[tuple[SeenTarget, Misfit]]:
    """Yield the targets that do not fit in one of these ways; raises NotApplicableError."""
    some = False
    for target in targets(facts):
        some = True
        for misfit in target.misfits:
            if misfit.kind in kinds:
                yield target, misfit
    if not some:
        raise NotApplicableError("no HPA or ScaledObject uses a metric of the adapter")


@check("GMA403", CheckSection.HPAS, "targets can be reached", effect=FindingEffect.FAULT)
def unreachable_target(facts: Facts) -> Iterator[Finding]:
    """The target is above the highest value of the metric (100 for a percentage, 1 for a ratio such
    as `DCGM_FI_PROF_…`), or it is a latency in milliseconds, so the HPA never scales out.

    Give a target below the maximum: 70 for a percentage, `700m` for a ratio, `100m` for a tenth of
    a second.
    """
    for target, misfit in _find_misfits(facts, MisfitKind.RANGE):
        yield Finding(target.subject, misfit.text, *target.fix(misfit))


@check(
    "GMA404",
    CheckSection.HPAS,
    "targets are in the metric's unit",
    Severity.WARNING,
    effect=FindingEffect.RUNAWAY,
)
def wrong_unit(facts: Facts) -> Iterator[Finding]:
    """The target's number suggests another unit: `700m` for a percentage is 0.7 %, and a number
    below a mebibyte is a few bytes. The HPA goes to its maximum under the lightest load.

    Give the number in the unit of the metric: `docs/metrics.md`.
    """
    for target, misfit in _find_misfits(facts, MisfitKind.UNIT):
        goal = f"{misfit.text}: the HPA goes to {target.goal} as soon as it gets a value"
        effect = _effect_now(facts, target.subject)
        yield Finding(target.subject, goal, *target.fix(misfit), effect=effect)


def _effect_now(facts: Facts, subject: str) -> FindingEffect | None:
    """Return that a target takes its HPA to the maximum already; None if it does not."""
    of = {hpa.subject for hpa in facts.hpas.read() if _is_limited(hpa)}
    of |= {f"scaledobject {h.namespace}/{h.owner}" for h in facts.hpas.read() if _is_limited(h)}
    return FindingEffect.CAUSE if subject in of else None


@check(
    "GMA412",
    CheckSection.HPAS,
    "the type of targets fits a sum or a mean",
    effect=FindingEffect.RUNAWAY,
)
def wrong_form(facts: Facts) -> Iterator[Finding]:
    """A target of type `Value` multiplies the replicas by value / target, so it needs a level, such
    as a mean; a sum leads to the maximum. `AverageValue` divides the value by the target, so it
    needs a sum; a mean leads to one or two replicas under any load.

    The latency of an object is a level. That of an External metric counts each pod with the latency
    of all requests: a sum for the pods that are scaled, and nothing for those of a gateway.

    Set `AverageValue` for a sum, `Value` for `aggregate: mean`, `max` or `p95`. An External metric
    and a trigger of KEDA are sums unless `aggregate` says otherwise; for an Object metric see
    `docs/metrics.md`. Raise no maximum before.
    """
    for target, misfit in _find_misfits(facts, MisfitKind.SUM, MisfitKind.LEVEL):
        effect = _effect_now(facts, target.subject)
        yield Finding(target.subject, misfit.text, *target.fix(misfit), effect=effect)


@check(
    "GMA413", CheckSection.HPAS, "metrics of HPAs rise with the load", effect=FindingEffect.RUNAWAY
)
def wrong_direction(facts: Facts) -> Iterator[Finding]:
    """An HPA adds replicas while the value is above the target. Free memory falls under load. A
    temperature, a clock, an error code or an amount of built-in memory does not follow the load;
    that is a warning.

    Use `gpu_utilization`, `gpu_memory_utilization`, or the queue of the server.
    """
    for target, misfit in _find_misfits(facts, MisfitKind.FALLS, MisfitKind.STEADY):
        severity = Severity.WARNING if misfit.kind is MisfitKind.STEADY else None
        yield Finding(target.subject, misfit.text, *target.fix(misfit), severity)


@check(
    "GMA456",
    CheckSection.HPAS,
    "metrics of groups of pods cover each group",
    effect=FindingEffect.FAULT,
)
def wrong_pods(facts: Facts) -> Iterator[Finding]:
    """One replica of the target is a group of pods. The selector of a LeaderWorkerSet or
    DisaggregatedSetRoleScaler matches the leaders only, so a Pods metric of devices says nothing of
    the workers; that of a PodCliqueScalingGroup matches every pod, and the controller takes each
    for a replica.

    For leaders, set `aggregate: mean` in the metric's selector. For a PodCliqueScalingGroup, scale
    on a sum: `docs/recipes/leaderworkerset.md`.
    """
    for target, misfit in _find_misfits(facts, MisfitKind.LEADERS, MisfitKind.MEMBERS):
        yield Finding(target.subject, misfit.text, *target.fix(misfit))


@check(
    "GMA457",
    CheckSection.HPAS,
    "HPAs on latencies read another metric too",
    Severity.WARNING,
    effect=FindingEffect.RISK,
)
def only_latencies(facts: Facts) -> Iterator[Finding]:
    """All metrics of the HPA or ScaledObject are latencies. Without requests there is no latency,
    so the HPA keeps its replicas. Under load, a latency stays flat until the servers are full.

    Add a metric that follows the load and exists without requests, such as
    `inference_requests_running`. While one metric has no value, no HPA scales in; to scale in
    without requests, use the running requests alone.
    """
    some = False
    for hpa in facts.hpas.read():
        names = [metric.name for metric in hpa.metrics]
        some |= asks_ours(facts, hpa)
        if not hpa.owner and _are_latencies(names):
            path = f"spec.metrics.{len(names)}"
            yield Finding(
                hpa.subject, _describe_latencies(names), _BESIDE, patch(hpa, path, REQUESTS_ROW)
            )
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        some |= bool(scaled.ours)
        names = [trigger.metadata.get("metric", "") for trigger in scaled.triggers]
        if scaled.ours and _are_latencies(names):
            yield Finding(scaled.subject, _describe_latencies(names), _BESIDE, scaled.edit)
    if not some:
        raise NotApplicableError("no HPA or ScaledObject uses a metric of the adapter")


_BESIDE: Final = "add the metric inference_requests_running, with the requests of a full replica"


def _are_latencies(names: Sequence[str]) -> bool:
    return bool(names) and all(latency_of(name) is not None for name in names)


def _describe_latencies(names: Sequence[str]) -> str:
    return (
        f"reads {', '.join(names)} and nothing else: without requests there is no value, so it "
        "keeps its replicas"
    )


@check("GMA411", CheckSection.HPAS, "HPAs want no more than their maximum", Severity.WARNING)
def at_maximum(facts: Facts) -> Iterator[Finding]:
    """The HPA wants more replicas than `maxReplicas`. An HPA at its maximum that wants no more is
    fine: a higher one would change nothing. HPAs whose target does not fit its metric (GMA404,
    GMA412, GMA413) are left out.

    Raise `maxReplicas` if there are GPUs for more replicas.
    """
    facts.require_cluster()
    limited = [hpa for hpa in facts.hpas.read() if asks_ours(facts, hpa) and _is_limited(hpa)]
    wrong = {
        target.subject
        for target in (targets(facts) if limited else ())
        if any(misfit.kind.runs_away for misfit in target.misfits)
    }
    right = [hpa for hpa in limited if hpa.subject not in wrong]
    if limited and not right:
        raise NotApplicableError("the target of no HPA at its maximum fits its metric")
    for hpa in right:
        if hpa.high is None:
            continue
        yield Finding(
            hpa.subject,
            f"wants more than its maxReplicas of {hpa.high}",
            "raise spec.maxReplicas if there are GPUs for more",
            patch(hpa, "spec.maxReplicas", hpa.high * 2),
        )


def _is_limited(hpa: Hpa) -> bool:
    reasons = (
        c.reason for c in hpa.conditions if c.type == "ScalingLimited" and c.status == "True"
    )
    return hpa.low != hpa.high and "TooManyReplicas" in reasons

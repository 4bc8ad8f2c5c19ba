"""Replays the HPA controller's decision on the facts of now, and says what blocks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapter.answers.causes import CauseCode
from adapter.hpa import (
    Condition,
    ControllerOptions,
    Decision,
    HpaSpec,
    MetricKind,
    Missing,
    Observation,
    Select,
    decide,
)
from adapter.tools.client.access import Json
from adapter.tools.explain import controllerrights
from adapter.tools.explain.history import Inferred, conditions_of, decided_size, infer
from adapter.tools.explain.hpablocks import blocks_of, status_blocks, waits_of
from adapter.tools.explain.hpafacts import HpaFacts, pod_state
from adapter.tools.explain.hpametric import explain_metric
from adapter.tools.explain.hpaparts import Block
from adapter.tools.explain.hpareport import HpaReport
from adapter.tools.explain.hpastate import judge_facts
from adapter.tools.explain.metricvalues import ReadValues
from adapter.tools.explain.words import one_line, to_milli

AMBIGUOUS = "AmbiguousSelector"


def judge(facts: HpaFacts, controller: ControllerOptions | None = None) -> HpaReport:
    """Return the explanation of an HPA."""
    controller = controller or _controller(facts)
    facts = replace(facts, denied=controllerrights.denied_right(facts.hpa))
    report = _explain_hpa(facts, controller)
    return replace(report, judgement=judge_facts(facts, report.decision))


def _explain_hpa(facts: HpaFacts, controller: ControllerOptions) -> HpaReport:
    report = _frame(facts)
    if facts.scale is None:
        able = Condition("AbleToScale", False, "FailedGetScale", facts.scale_error, facts.now)
        return _report_stop(report, facts, able)
    spec = facts.spec
    if spec is None:
        remark = f"the decision is not replayed: {facts.spec_error}"
        return _report_status(replace(report, remarks=(*report.remarks, remark)), facts)
    inferred = infer(
        facts.hpa, spec, facts.scale.replicas, facts.events.rows, facts.now, controller
    )
    facts, remarks = _with_view(facts)
    report = replace(report, remarks=(*report.remarks, *inferred.remarks, *remarks))
    if problem := _selector_problem(facts, spec):
        return _report_stop(report, facts, problem)
    if any(answer.values is None for answer in facts.values):
        return _report_status(report, facts)
    return _report_decision(report, facts, spec, inferred, controller)


def _controller(facts: HpaFacts) -> ControllerOptions:
    """Only a controller with the gate HPAScaleToZero serves such an HPA."""
    rows = (facts.hpa.get("status") or {}).get("conditions") or ()
    marked = any(row.get("type") == "ScaledToZero" for row in rows)
    zero = facts.spec is not None and facts.spec.min_replicas == 0
    return ControllerOptions(scale_to_zero=marked or zero)


def _frame(facts: HpaFacts) -> HpaReport:
    spec, status = facts.hpa["spec"], facts.hpa.get("status") or {}
    reference = spec["scaleTargetRef"]
    remarks = []
    if facts.events.problem is not None:
        remarks.append(f"events are not shown: {facts.events.problem.brief}")
    if facts.gpu.problem is not None:
        remarks.append(f"reasons are not shown: {facts.gpu.problem.brief}")
    if facts.headroom.problem is not None:
        brief, _, _ = facts.headroom.problem.brief.partition("; ")
        remarks.append(f"headroom of nodepool is not shown: {brief}")
    remarks += [*([facts.past.problem] if facts.past.problem else []), *facts.unread]
    if owner := facts.scaled_object:
        remarks.append(
            f"KEDA made this HPA from ScaledObject {owner}; change that, because KEDA overwrites "
            "the HPA"
        )
    return HpaReport(
        facts.namespace,
        facts.name,
        f"{reference['kind']} {reference['name']}",
        facts.scale.replicas if facts.scale is not None else None,
        1 if spec.get("minReplicas") is None else int(spec["minReplicas"]),
        int(spec["maxReplicas"]),
        verdict="",
        remarks=remarks,
        headroom=facts.headroom.rows,
        past=facts.past,
        status_conditions=[
            {key: row.get(key, "") for key in ("type", "status", "reason", "message")}
            for row in status.get("conditions") or ()
        ],
        status_desired=decided_size(status),
        events=facts.events.last(facts.now, _well_since(status)),
    )


def _well_since(status: Json) -> float | None:
    """Return since when the controller can scale; None if it cannot."""
    rows = [row for row in conditions_of(status) if row.type in ("AbleToScale", "ScalingActive")]
    if not rows or not all(row.status for row in rows):
        return None
    return max(row.since for row in rows)


def _with_view(facts: HpaFacts) -> tuple[HpaFacts, list[str]]:
    """Take values that the caller may not read as metrics from the view API."""
    if facts.spec is None or not facts.gpu.pods:
        return facts, []
    answers, remarks = [], []
    for metric, answer in zip(facts.spec.metrics, facts.values, strict=False):
        values = _viewed_values(facts, metric.name) if metric.kind is MetricKind.PODS else {}
        if answer.values is None and values and answer.problem is not None:
            remarks.append(
                f"{metric.name} is read from the view API: {one_line(answer.problem.brief, 2000)}"
            )
            answer = ReadValues(values)  # noqa: PLW2901 - the same metric from elsewhere
        answers.append(answer)
    return replace(facts, values=answers), remarks


def _viewed_values(facts: HpaFacts, metric: str) -> Mapping[str, int]:
    rows = {name: pod.value(metric) for name, pod in facts.gpu.pods.items()}
    values = {name: to_milli(row.get("value")) for name, row in rows.items() if row is not None}
    return {name: value for name, value in values.items() if value is not None}


def _selector_problem(facts: HpaFacts, spec: HpaSpec) -> Condition | None:
    """Return the condition for a selector that the controller rejects before any metric."""
    scale = facts.scale
    if scale is None or not 0 < scale.replicas <= spec.max_replicas:
        return None
    if scale.replicas < spec.min_replicas:
        return None
    if not scale.selector:
        text = "the HPA target's scale is missing a selector"
        return Condition("ScalingActive", False, "InvalidSelector", text, facts.now)
    if facts.rivals:
        names = ", ".join([facts.name, *facts.rivals])
        text = f"pods by selector {scale.selector} are controlled by more than one HPA: {names}"
        return Condition("ScalingActive", False, AMBIGUOUS, text, facts.now)
    return None


def _report_stop(report: HpaReport, facts: HpaFacts, problem: Condition) -> HpaReport:
    """The controller stops before it looks at metrics."""
    current = facts.scale.replicas if facts.scale is not None else 0
    rows = {row.type: row for row in conditions_of(facts.hpa.get("status") or {})}
    if facts.scale is not None:
        rows["AbleToScale"] = Condition("AbleToScale", True, "SucceededGetScale", "", facts.now)
    rows[problem.type] = problem
    decision = Decision(current, current, "", tuple(rows.values()), (), problem.message)
    verdict = f"KEEPS {current}" if facts.scale is not None else "NO SCALE"
    return replace(
        report,
        verdict=verdict,
        decision=decision,
        why=f"the controller stops before it reads metrics: {problem.reason}",
        blocks=blocks_of(facts, decision, ()),
    )


def _report_status(report: HpaReport, facts: HpaFacts) -> HpaReport:
    """Follow the HPA's own status, where values cannot be read."""
    metrics = (
        [
            explain_metric(metric, answer, None, facts)
            for metric, answer in zip(facts.spec.metrics, facts.values, strict=False)
        ]
        if facts.spec is not None
        else []
    )
    desired, current = report.status_desired, report.replicas
    unknown = desired is None or current is None
    verdict = "NO DECISION" if unknown else _verdict(current or 0, desired or 0)
    return replace(
        report,
        verdict=f"{verdict} by its status",
        why="not every value can be read, so this follows the HPA's status of its last sync",
        metrics=metrics,
        blocks=status_blocks(facts, report.status_conditions),
        unseen=True,
    )


def _report_decision(
    report: HpaReport,
    facts: HpaFacts,
    spec: HpaSpec,
    inferred: Inferred,
    controller: ControllerOptions,
) -> HpaReport:
    assert facts.scale is not None  # noqa: S101 - judge() has checked
    read = controllerrights.values_of(facts, spec) or [Missing("not read")] * len(spec.metrics)
    observation = Observation(
        facts.scale.replicas,
        [pod_state(pod) for pod in facts.pods],
        [values for values in read if values is not None],
        facts.scale.status_replicas,
    )
    decision, _ = decide(spec, inferred.state, observation, facts.now, controller)
    proposals = decision.proposals or (None,) * len(spec.metrics)
    answers = facts.values or [ReadValues(None)] * len(spec.metrics)
    metrics = [
        explain_metric(metric, answer, proposal, facts)
        for metric, answer, proposal in zip(spec.metrics, answers, proposals, strict=True)
    ]
    zero_by_keda = decision.current == 0 and bool(facts.scaled_object)
    blocks: Sequence[Block] = (
        () if zero_by_keda and not facts.causes else blocks_of(facts, decision, metrics)
    )
    verdict = _verdict(decision.current, decision.desired)
    if decision.current == 0 == decision.desired:
        # A person who sets 0 stops the HPA, also one that may scale to zero itself.
        stopped = any(row.reason == "ScalingDisabled" for row in decision.conditions)
        verdict = "PAUSED" if stopped and not zero_by_keda else "AT ZERO"
    remarks = [*report.remarks, *controllerrights.earlier_failure(facts, decision)]
    if spec.behavior is not None and spec.behavior.scale_down.select is Select.DISABLED:
        remarks.append("behavior.scaleDown.selectPolicy is Disabled: the HPA never scales in")
    if inferred.synced and report.status_desired not in (None, decision.desired):
        remarks.append(
            f"at its last sync the controller wanted {report.status_desired}; by default it syncs "
            "every 15 s"
        )
    return replace(
        report,
        verdict=verdict,
        decision=decision,
        why=_why_at_zero(facts) if zero_by_keda else _why(decision, spec),
        metrics=metrics,
        blocks=blocks,
        waits=waits_of(facts, spec, decision),
        remarks=remarks,
    )


def _verdict(current: int, desired: int) -> str:
    if desired == current:
        return f"KEEPS {current}"
    return f"SCALES {'OUT' if desired > current else 'IN'} {current} → {desired}"


def _why_at_zero(facts: HpaFacts) -> str:
    """Return what scales a target from the zero to which KEDA has scaled it."""
    done = "KEDA scaled the target to zero"
    wrong = (CauseCode.SCALED_OBJECT, CauseCode.NEVER_WAKES)
    if any(cause.code in wrong for cause in facts.causes):
        return done
    if not facts.triggers:
        return f"{done}; its ScaledObject could not be read, so what can wake it is not known"
    return f"{done}, and scales it from zero when a trigger is active"


def _why(decision: Decision, spec: HpaSpec) -> str:
    """Return which rules decided, in the order in which the controller applies them."""
    if decision.asked is None:
        if decision.error:
            return "no metric decides: the controller keeps the size when values are missing"
        return f"{decision.reason or 'scaling is disabled: the target has 0 replicas'}"
    highest = max(
        (proposal for proposal in decision.proposals if proposal.replicas is not None),
        key=lambda proposal: proposal.replicas or 0,
    )
    more = ", the most of all metrics" if len(decision.proposals) > 1 else ""
    same = ", the current size" if decision.asked == decision.current else ""
    parts = [f"{highest.metric.partition(' (')[0]} asks for {decision.asked}{same}{more}"]
    rows = {row.type: row for row in decision.conditions}
    if decision.stable != decision.asked:
        kept = f" it at {decision.desired}" if decision.desired == decision.stable else " more"
        parts.append(f"the stabilization window keeps{kept}")
    if decision.desired != decision.stable:
        limit = rows["ScalingLimited"].reason
        bound = {
            "TooManyReplicas": f"maxReplicas {spec.max_replicas}",
            "TooFewReplicas": f"minReplicas {spec.min_replicas}",
        }
        bound |= {"ScaleUpLimit": "behavior.scaleUp", "ScaleDownLimit": "behavior.scaleDown"}
        rate = "the scale rate (double, or 4)" if spec.behavior is None else bound[limit]
        by = rate if limit.startswith("Scale") else bound[limit]
        parts.append(f"{by} makes it {decision.desired}")
    return "; ".join(parts)

"""What keeps an HPA from scaling, each with its fix; and what only waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Final

from adapter.answers.causes import Cause, CauseCode
from adapter.answers.causes.metricsapis import OF_TYPES
from adapter.answers.judgement.judge import START
from adapter.figures import count
from adapter.hpa import Decision, HpaSpec, MetricKind, MetricSpec, Missing, Select
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.tools.client.access import Json
from adapter.tools.client.errors import MissingRight
from adapter.tools.client.hpacommands import grant_controller
from adapter.tools.explain import hpafixes
from adapter.tools.explain.controllerrights import concerns
from adapter.tools.explain.gpupod import why_of_several
from adapter.tools.explain.hpafacts import HpaFacts, pod_state
from adapter.tools.explain.hpaholds import holds_of
from adapter.tools.explain.hpamisfits import flaws, target_blocks
from adapter.tools.explain.hpaparts import Block, MetricLines, PodLine
from adapter.tools.explain.words import one_line

CATALOG: Final = built_in()
_BEFORE: Final = "correct this first: the HPA goes to its maximum as soon as it gets values"
_ENDS = ("Failed", "Succeeded")
_DISABLED = "ScalingDisabled"
_STOPS = ("FailedGetScale", "InvalidSelector", "AmbiguousSelector", _DISABLED)


def blocks_of(facts: HpaFacts, decision: Decision, metrics: Sequence[MetricLines]) -> list[Block]:
    """Return what blocks, the most important first."""
    blocks = [
        Block(f"{row.reason}: {one_line(row.message)}", hpafixes.stop_fix(facts, row.reason))
        for row in decision.conditions
        # KEDA scales from zero, and again to zero: a size that somebody sets does not last.
        if row.reason in _STOPS and not (row.reason == _DISABLED and facts.scaled_object)
    ]
    blocks += _of_causes(facts)
    if facts.spec is None:
        return blocks + _of_rights(facts)
    blocks += _of_names(facts, facts.spec)
    silent = _of_rights(facts)
    for metric, lines in zip(facts.spec.metrics, metrics, strict=False):
        silent += _of_metric(facts, metric, lines)
    wrong = list(target_blocks(facts, facts.spec, runaway=True))
    # As doctor has it: a target that runs away is the cause once the HPA is at its maximum.
    at_maximum = any(row.reason == "TooManyReplicas" for row in decision.conditions)
    if silent and not at_maximum:
        wrong = [replace(row, text=f"{row.text}; {_BEFORE}") for row in wrong]
    blocks += [*wrong, *silent] if at_maximum else [*silent, *wrong]
    return [*blocks, *_of_limits(facts, facts.spec, decision)]


def _of_rights(facts: HpaFacts) -> list[Block]:
    """Return that the controller may not read the metrics, and that they do not answer either."""
    return [] if facts.denied is None else [_denied_block(facts.denied), *_silent_api_block(facts)]


def _of_causes(facts: HpaFacts) -> Iterator[Block]:
    """Yield why pods that the HPA wants do not exist, or do not serve."""
    for cause in facts.causes:
        if cause.command:
            yield Block(f"{one_line(cause.text, 900)}; {cause.fix}", cause.command)
        else:
            yield Block(one_line(cause.text, 900), cause.fix)


def status_blocks(facts: HpaFacts, conditions: Sequence[Json]) -> list[Block]:
    """Return what the HPA's own status says that blocks, and the faults of its manifest."""
    spec = facts.spec
    of_names = [] if spec is None else list(_of_names(facts, spec))
    wrong = [] if spec is None else list(target_blocks(facts, spec, runaway=True))
    of_status = [
        _denied_block(facts.denied)
        if facts.denied is not None and row["type"] == "ScalingActive"
        else Block(
            f"{row['reason']}: {one_line(row['message'])}", hpafixes.stop_fix(facts, row["reason"])
        )
        for row in conditions
        if row["type"] in ("AbleToScale", "ScalingActive") and row["status"] != "True"
    ]
    return [*_of_causes(facts), *of_names, *of_status, *wrong]


def _denied_block(right: MissingRight) -> Block:
    return Block(
        f"the HPA controller may not read the metrics (forbidden): {right.user} may not "
        f"{right.verb} {right.full}",
        grant_controller(right.group),
    )


def _silent_api_block(facts: HpaFacts) -> Iterator[Block]:
    """Yield that the metrics API fails too, so the right alone does not help."""
    for answer in facts.values:
        if answer.problem is not None and answer.problem.status >= 500:
            text = f"the metrics API does not answer either: {answer.problem.brief}"
            yield Block(text, hpafixes.API_DOWN)
            return


def _of_metric(facts: HpaFacts, metric: MetricSpec, lines: MetricLines) -> Iterator[Block]:
    denied = concerns(facts.denied, metric.kind)
    starts = starting_pods(facts)
    missing = [pod for pod in lines.pods if pod.state == "missing" and pod.name not in starts]
    reasons: dict[str, list[PodLine]] = {}
    for pod in missing:
        reasons.setdefault(pod.why.reason if pod.why is not None else "", []).append(pod)
    invalid = lines.asks is None and bool(lines.error)
    if _has_cause(facts, metric, {pod.name for pod in missing}):
        return  # the cause says so, for every metric of the API
    if denied:
        reasons.pop("", None)
    elif invalid and not any(reasons):
        yield Block(
            f"{lines.name}: {lines.error}", hpafixes.failure_fix(facts, metric, lines.error)
        )
        return
    effect = "" if invalid else f"; {_effect(metric)}"
    for _, pods in sorted(reasons.items()):
        why = why_of_several([(pod.name, pod.why) for pod in pods])
        names = ", ".join(pod.name for pod in pods[:3]) + (", …" if len(pods) > 3 else "")
        text = why.text if why is not None else pods[0].note
        yield Block(
            f"{count(len(pods), 'pod')} without {metric.name} ({names}): {text}{effect}",
            why.fix if why is not None else "",
            why.then if why is not None else "",
        )


def _has_cause(facts: HpaFacts, metric: MetricSpec, missing: Set[str]) -> bool:
    """Return whether a cause says why a metric has no value: its API does not answer, its trigger
    reaches no scaler, or no pod serves that could have one.
    """
    external = metric.kind is MetricKind.EXTERNAL
    group = OF_TYPES[metric.kind.value].group
    if any(_group_of(cause) == group for cause in facts.causes):
        return True
    if external and any(cause.code.of_keda for cause in facts.causes):
        return True
    if metric.kind in (MetricKind.EXTERNAL, MetricKind.OBJECT) or not facts.causes:
        return False
    explained = {name for cause in facts.causes for name in cause.pods}
    serving = {state.name for state in map(pod_state, facts.pods) if state.ready}
    return not (serving - explained) and missing <= explained


def starting_pods(facts: HpaFacts) -> list[str]:
    """Return the pods that have not been ready for no longer than a start takes."""
    names = []
    for state in map(pod_state, facts.pods):
        since = state.ready_since or state.started
        if not state.ready and since is not None and facts.now - since <= START:
            names.append(state.name)
    return names


def _group_of(cause: Cause) -> str:
    """Return the API group of metrics that a cause is about; empty for another cause."""
    kind, _, name = cause.subject.rpartition(" ")
    if kind == "apiservice":
        return name.partition(".")[2]
    return name if cause.code is CauseCode.METRICS_API_MISSING else ""


def _effect(metric: MetricSpec) -> str:
    down = "as its target" if metric.kind is MetricKind.PODS else "as its request"
    return f"counted {down} on the way down and as 0 on the way up"


def _of_limits(facts: HpaFacts, spec: HpaSpec, decision: Decision) -> Iterator[Block]:
    if decision.current == 0:
        return
    reasons = {row.type: row.reason for row in decision.conditions}
    asked, current = decision.asked, decision.current
    if spec.min_replicas == spec.max_replicas:
        yield Block(
            f"minReplicas equals maxReplicas ({spec.max_replicas}), so the HPA never scales",
            hpafixes.raise_max(facts, spec.max_replicas + 1),
        )
    elif asked is not None and reasons.get("ScalingLimited") == "TooManyReplicas":
        if any(flaw.runs_away for flaw in flaws(facts)):
            return
        text = f"maxReplicas {spec.max_replicas} holds it; the metrics ask for {asked}"
        yield Block(text, hpafixes.raise_max(facts, asked))
    if spec.behavior is None or asked is None or not current == decision.desired < asked:
        return
    if spec.behavior.scale_up.select is Select.DISABLED:
        yield Block(
            f"behavior.scaleUp.selectPolicy is Disabled; the metrics ask for {asked}",
            hpafixes.open_policy(facts, "scaleUp"),
        )


def _why_unscheduled(pod: Json) -> str | None:
    """Return why a pending pod has no node; None if it has one or is not pending."""
    status = pod.get("status") or {}
    if status.get("phase") != "Pending":
        return None
    for row in status.get("conditions") or ():
        if row.get("type") == "PodScheduled" and row.get("status") == "False":
            text = one_line(row.get("message") or row.get("reason") or "unschedulable", 160)
            return text.rstrip(".")
    return None


def _of_names(facts: HpaFacts, spec: HpaSpec) -> Iterator[Block]:
    """Yield the names and selectors of the manifest that never have a value."""
    for metric, answer in zip(spec.metrics, facts.values, strict=False):
        if metric.kind is MetricKind.PODS and isinstance(answer.values, Missing):
            yield from _unknown_metric_block(facts, metric)
    yield from target_blocks(facts, spec, runaway=False)


def _unknown_metric_block(facts: HpaFacts, metric: MetricSpec) -> Iterator[Block]:
    """Yield that a metric does not exist, where the controller's own failure hides it."""
    fix = hpafixes.unknown_metric_fix(facts, metric)
    if facts.known:
        if metric.name not in facts.known and concerns(facts.denied, metric.kind):
            yield Block(f"the metrics API has no metric {metric.name}", fix)
    elif metric.name not in CATALOG.metrics and nearest_metrics(metric.name, CATALOG.metrics).exist:
        yield Block(f"{metric.name} is not a metric of the adapter", fix)


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def waits_of(facts: HpaFacts, spec: HpaSpec, decision: Decision) -> list[Block]:
    """Return what holds for now and passes without anybody."""
    waits = list(holds_of(facts, spec, decision))
    explained = {name for cause in facts.causes for name in cause.pods}
    homeless = [pod for pod in facts.pods if _why_unscheduled(pod) and _name(pod) not in explained]
    if homeless:
        verb = "waits" if len(homeless) == 1 else "wait"
        why = _why_unscheduled(homeless[0])
        waits.append(Block(f"{count(len(homeless), 'pod')} {verb} for a node: {why}"))
    pending = [pod for pod in facts.pods if (pod.get("status") or {}).get("phase") == "Pending"]
    pulled = [
        pod for pod in pending if _why_unscheduled(pod) is None and _name(pod) not in explained
    ]
    if pulled:
        waits.append(
            Block(f"{count(len(pulled), 'pod')} pending: images are pulled or volumes mounted")
        )
    ended = [pod for pod in facts.pods if (pod.get("status") or {}).get("phase") in _ENDS]
    names = explained | {_name(pod) for pod in (*pending, *ended)}
    if loading := [name for name in starting_pods(facts) if name not in names]:
        verb = "starts, and has" if len(loading) == 1 else "start, and have"
        waits.append(Block(f"{count(len(loading), 'pod')} {verb} no value before readiness"))
    return waits

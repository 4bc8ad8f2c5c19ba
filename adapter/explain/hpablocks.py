"""What keeps an HPA from scaling, each with its fix; and what only waits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from adapter.client.access import Json
from adapter.client.naming import nearest
from adapter.explain.gpupod import Why
from adapter.explain.hpafacts import HpaFacts
from adapter.explain.hpareport import Block, MetricLines, PodLine
from adapter.explain.words import count, one_line
from adapter.hpa import Decision, HpaSpec, MetricKind, MetricSpec, Select

_STOPS = ("FailedGetScale", "InvalidSelector", "AmbiguousSelector", "ScalingDisabled")


def blocks_of(facts: HpaFacts, decision: Decision, metrics: Sequence[MetricLines]) -> list[Block]:
    """Return what blocks, the most important first."""
    found = [
        Block(f"{row.reason}: {one_line(row.message)}", _stop_fix(facts, row.reason))
        for row in decision.conditions
        if row.reason in _STOPS
    ]
    if facts.spec is not None:
        for metric, lines in zip(facts.spec.metrics, metrics, strict=False):
            found += _of_metric(facts, metric, lines)
        found += _of_limits(facts, facts.spec, decision)
    return [*found, *_unschedulable(facts)]


def status_blocks(facts: HpaFacts, conditions: Sequence[Json]) -> list[Block]:
    """Return what the HPA's own status says that blocks."""
    return [
        Block(f"{row['reason']}: {one_line(row['message'])}", _stop_fix(facts, row["reason"]))
        for row in conditions
        if row["type"] in ("AbleToScale", "ScalingActive") and row["status"] != "True"
    ]


def _stop_fix(facts: HpaFacts, reason: str) -> str:
    namespace, reference = shlex.quote(facts.namespace), facts.hpa["spec"]["scaleTargetRef"]
    target = shlex.quote(f"{reference['kind'].lower()}/{reference['name']}")
    if reason == "FailedGetScale":
        return f"kubectl -n {namespace} get {target}, and correct spec.scaleTargetRef of the HPA"
    if reason == "AmbiguousSelector" and facts.rivals:
        return f"kubectl -n {namespace} delete hpa {shlex.quote(facts.rivals[0])}"
    if reason == "ScalingDisabled":
        return f"kubectl -n {namespace} scale {target} --replicas=1"
    if reason == "InvalidSelector":
        return "give the scale subresource of the target a selector (status.selector)"
    return ""


def _of_metric(facts: HpaFacts, metric: MetricSpec, lines: MetricLines) -> Iterator[Block]:
    missing = [pod for pod in lines.pods if pod.state == "missing"]
    reasons: dict[str, list[PodLine]] = {}
    for pod in missing:
        reasons.setdefault(pod.why.reason if pod.why is not None else "", []).append(pod)
    invalid = lines.asks is None and bool(lines.error)
    if invalid and not any(reasons):
        yield Block(f"{lines.name}: {lines.error}", _invalid_fix(facts, metric, lines.error))
        return
    effect = "" if invalid else f"; {_effect(metric)}"
    for reason, pods in sorted(reasons.items()):
        why = pods[0].why
        names = ", ".join(pod.name for pod in pods[:3]) + (", …" if len(pods) > 3 else "")
        text = why.text if why is not None else pods[0].note
        yield Block(
            f"{count(len(pods), 'pod')} without {metric.name} ({names}): {text}{effect}",
            _reason_fix(why) if reason else "",
        )


def _effect(metric: MetricSpec) -> str:
    down = "as its target" if metric.kind is MetricKind.PODS else "as its request"
    return f"counted {down} on the way down and as 0 on the way up"


def _reason_fix(why: Why | None) -> str:
    if why is None:
        return ""
    return why.hint or (f"see {why.docs}" if why.docs else "")


def _invalid_fix(facts: HpaFacts, metric: MetricSpec, error: str) -> str:
    namespace = shlex.quote(facts.namespace)
    if metric.kind is MetricKind.PODS and facts.known and metric.name not in facts.known:
        near = nearest(metric.name, facts.known)
        return f"did you mean {' or '.join(near)}?" if near else "name a metric that the API lists"
    if "missing request for" in error:
        return f"set requests.{metric.name} of every container in the pod template"
    if metric.kind.of_resources:
        return "kubectl get apiservice v1beta1.metrics.k8s.io"
    if metric.kind is MetricKind.EXTERNAL:
        raw = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{facts.namespace}/{metric.name}"
        return f"kubectl get --raw {shlex.quote(raw)}"
    if "pods might be unready" in error or "no pods returned" in error:
        return f"kubectl -n {namespace} get pods -l {shlex.quote(_selector(facts))}"
    return "kubectl get apiservice v1beta2.custom.metrics.k8s.io"


def _selector(facts: HpaFacts) -> str:
    return facts.scale.selector if facts.scale is not None else ""


def _of_limits(facts: HpaFacts, spec: HpaSpec, decision: Decision) -> Iterator[Block]:
    if decision.current == 0:
        return
    reasons = {row.type: row.reason for row in decision.conditions}
    asked, current = decision.asked, decision.current
    if spec.min_replicas == spec.max_replicas:
        yield Block(
            f"minReplicas equals maxReplicas ({spec.max_replicas}), so the HPA never scales",
            _raise_max(facts, spec.max_replicas + 1),
        )
    elif asked is not None and reasons.get("ScalingLimited") == "TooManyReplicas":
        text = f"maxReplicas {spec.max_replicas} holds it; the metrics ask for {asked}"
        yield Block(text, _raise_max(facts, asked))
    if spec.behavior is None or asked is None or decision.desired != current:
        return
    for key, rules, wanted in (
        ("scaleUp", spec.behavior.scale_up, asked > current),
        ("scaleDown", spec.behavior.scale_down, asked < current),
    ):
        if wanted and rules.select is Select.DISABLED:
            yield Block(
                f"behavior.{key}.selectPolicy is Disabled; the metrics ask for {asked}",
                _patch(facts, f'{{"spec":{{"behavior":{{"{key}":{{"selectPolicy":"Max"}}}}}}}}'),
            )


def _raise_max(facts: HpaFacts, replicas: int) -> str:
    owners = facts.hpa["metadata"].get("ownerReferences") or ()
    for row in owners:
        if row.get("kind") == "ScaledObject":
            body = f'{{"spec":{{"maxReplicaCount":{replicas}}}}}'
            name = f"scaledobject {shlex.quote(str(row['name']))}"
            return (
                f"kubectl -n {shlex.quote(facts.namespace)} patch {name} --type=merge -p '{body}'"
            )
    return _patch(facts, f'{{"spec":{{"maxReplicas":{replicas}}}}}')


def _patch(facts: HpaFacts, body: str) -> str:
    name = f"-n {shlex.quote(facts.namespace)} patch hpa {shlex.quote(facts.name)}"
    return f"kubectl {name} --type=merge -p '{body}'"


def _unscheduled(pod: Json) -> str | None:
    """Return why a pending pod has no node; None if it has one or is not pending."""
    status = pod.get("status") or {}
    if status.get("phase") != "Pending":
        return None
    for row in status.get("conditions") or ():
        if row.get("type") == "PodScheduled" and row.get("status") == "False":
            return one_line(row.get("message") or row.get("reason") or "unschedulable", 160)
    return None


def _unschedulable(facts: HpaFacts) -> Iterator[Block]:
    waiting = [(pod, why) for pod in facts.pods if (why := _unscheduled(pod)) is not None]
    if waiting:
        pod, why = waiting[0]
        name = str(pod["metadata"]["name"])
        namespace = shlex.quote(facts.namespace)
        yield Block(
            f"{count(len(waiting), 'pod')} without a node ({name}): {why}",
            f"kubectl -n {namespace} describe pod {shlex.quote(name)}",
        )


def waits_of(facts: HpaFacts, spec: HpaSpec, decision: Decision) -> list[str]:
    """Return what holds for now and passes without anybody."""
    found = []
    reasons = {row.type: row.reason for row in decision.conditions}
    if decision.asked is not None and decision.stable != decision.asked:
        way = "out" if decision.asked > decision.current else "in"
        found.append(
            f"scaling {way} to {decision.asked} waits until the stabilization window has no "
            "other recommendation"
        )
    limited = reasons.get("ScalingLimited", "")
    disabled = spec.behavior is not None and Select.DISABLED in (
        spec.behavior.scale_up.select if limited == "ScaleUpLimit" else None,
        spec.behavior.scale_down.select if limited == "ScaleDownLimit" else None,
    )
    if limited in ("ScaleUpLimit", "ScaleDownLimit") and not disabled:
        found.append(
            f"the scale rate allows {decision.desired} now; the rest follows at later syncs"
        )
    starting = [
        pod
        for pod in facts.pods
        if (pod.get("status") or {}).get("phase") == "Pending" and _unscheduled(pod) is None
    ]
    if starting:
        found.append(f"{count(len(starting), 'pod')} pending: images are pulled or volumes mounted")
    return found

"""What keeps an HPA from scaling, each with its fix; and what only waits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.catalog import Catalog
from adapter.catalog.nearest import nearest_metric
from adapter.client.access import Json
from adapter.client.errors import MissingRight
from adapter.client.hpacommands import grant_controller
from adapter.explain import hpafixes
from adapter.explain.controllerrights import concerns
from adapter.explain.hpafacts import HpaFacts
from adapter.explain.hpamisfits import runs_away, target_blocks
from adapter.explain.hpareport import Block, MetricLines, PodLine
from adapter.explain.words import one_line
from adapter.figures import count
from adapter.hpa import Decision, HpaSpec, MetricKind, MetricSpec, Missing, Select

CATALOG: Final = Catalog()
_STOPS = ("FailedGetScale", "InvalidSelector", "AmbiguousSelector", "ScalingDisabled")


def blocks_of(facts: HpaFacts, decision: Decision, metrics: Sequence[MetricLines]) -> list[Block]:
    """Return what blocks, the most important first."""
    found = [
        Block(f"{row.reason}: {one_line(row.message)}", hpafixes.stopped(facts, row.reason))
        for row in decision.conditions
        if row.reason in _STOPS
    ]
    if facts.spec is not None:
        # First: with a wrong target, the HPA runs away as soon as it may read its metrics.
        found += _of_manifest(facts, facts.spec)
    if facts.denied is not None:
        found.append(_denied(facts.denied))
        found += _silent(facts)
    if facts.spec is not None:
        for metric, lines in zip(facts.spec.metrics, metrics, strict=False):
            found += _of_metric(facts, metric, lines)
        found += _of_limits(facts, facts.spec, decision)
    return [*found, *_unschedulable(facts)]


def status_blocks(facts: HpaFacts, conditions: Sequence[Json]) -> list[Block]:
    """Return what the HPA's own status says that blocks, and the faults of its manifest."""
    found = [] if facts.spec is None else list(_of_manifest(facts, facts.spec))
    return found + [
        _denied(facts.denied)
        if facts.denied is not None and row["type"] == "ScalingActive"
        else Block(
            f"{row['reason']}: {one_line(row['message'])}", hpafixes.stopped(facts, row["reason"])
        )
        for row in conditions
        if row["type"] in ("AbleToScale", "ScalingActive") and row["status"] != "True"
    ]


def _denied(right: MissingRight) -> Block:
    return Block(
        f"the HPA controller may not read the metrics (forbidden): {right.user} may not "
        f"{right.verb} {right.full}",
        grant_controller(right.group),
    )


def _silent(facts: HpaFacts) -> Iterator[Block]:
    """Yield that the metrics API fails too, so the right alone does not help."""
    for found in facts.values:
        if found.problem is not None and found.problem.status >= 500:
            text = f"the metrics API does not answer either: {found.problem.brief}"
            yield Block(text, "gpu-metrics-adapter doctor")
            return


def _of_metric(facts: HpaFacts, metric: MetricSpec, lines: MetricLines) -> Iterator[Block]:
    denied = concerns(facts.denied, metric.kind)
    missing = [pod for pod in lines.pods if pod.state == "missing"]
    reasons: dict[str, list[PodLine]] = {}
    for pod in missing:
        reasons.setdefault(pod.why.reason if pod.why is not None else "", []).append(pod)
    invalid = lines.asks is None and bool(lines.error)
    if denied:
        reasons.pop("", None)
    elif invalid and not any(reasons):
        yield Block(f"{lines.name}: {lines.error}", hpafixes.of_failure(facts, metric, lines.error))
        return
    effect = "" if invalid else f"; {_effect(metric)}"
    for _, pods in sorted(reasons.items()):
        why = pods[0].why
        names = ", ".join(pod.name for pod in pods[:3]) + (", …" if len(pods) > 3 else "")
        text = why.text if why is not None else pods[0].note
        yield Block(
            f"{count(len(pods), 'pod')} without {metric.name} ({names}): {text}{effect}",
            why.fix if why is not None else "",
            why.then if why is not None else "",
        )


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
        if runs_away(facts, spec):
            return
        text = f"maxReplicas {spec.max_replicas} holds it; the metrics ask for {asked}"
        yield Block(text, hpafixes.raise_max(facts, asked))
    if spec.behavior is None or asked is None or decision.desired != current:
        return
    for key, rules, wanted in (
        ("scaleUp", spec.behavior.scale_up, asked > current),
        ("scaleDown", spec.behavior.scale_down, asked < current),
    ):
        if wanted and rules.select is Select.DISABLED:
            yield Block(
                f"behavior.{key}.selectPolicy is Disabled; the metrics ask for {asked}",
                hpafixes.merge(
                    facts, f'{{"spec":{{"behavior":{{"{key}":{{"selectPolicy":"Max"}}}}}}}}'
                ),
            )


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


def _of_manifest(facts: HpaFacts, spec: HpaSpec) -> Iterator[Block]:
    """Yield the faults of the manifest, which hold whether or not a value can be read."""
    for metric, found in zip(spec.metrics, facts.values, strict=False):
        if metric.kind is MetricKind.PODS and isinstance(found.values, Missing):
            yield from _unknown(facts, metric)
    yield from target_blocks(facts, spec)


def _unknown(facts: HpaFacts, metric: MetricSpec) -> Iterator[Block]:
    """Yield that a metric does not exist, where the controller's own failure hides it."""
    fix = hpafixes.of_unknown(facts, metric)
    if facts.known:
        if metric.name not in facts.known and concerns(facts.denied, metric.kind):
            yield Block(f"the metrics API has no metric {metric.name}", fix)
    elif metric.name not in CATALOG.metrics and nearest_metric(metric.name, CATALOG.metrics):
        yield Block(f"{metric.name} is not a metric of the adapter", fix)


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

"""The state of an explained HPA: what the controller decides now, judged as every list is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adapter.answers.judgement.evidence import HpaEvidence, TargetPods, pods_of
from adapter.answers.judgement.judge import SYNC, judge
from adapter.answers.judgement.states import HpaJudgement
from adapter.hpa import Decision, HpaSpec, MetricKind, Proposal
from adapter.hpa.spec import TargetKind
from adapter.pipeline.cluster.hpamanifest import HpaManifest, reduce
from adapter.pipeline.cluster.hpas import ShownCondition, ShownHpa, ShownMetric
from adapter.pipeline.cluster.manifest import PodDecoder, PodManifest
from adapter.pipeline.cluster.pod import Pod
from adapter.tools.client.access import Json
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpamisfits import flaws
from apiservice.wire import instant

_decoder: Final = PodDecoder()


def judge_facts(facts: HpaFacts, decision: Decision | None) -> HpaJudgement:
    """Return the state of an HPA.

    Args:
        facts: what was read.
        decision: the replayed one; None to follow the HPA's own status.
    """
    shown = reduce(msgspec.convert(facts.hpa, HpaManifest, strict=False))
    pods = _pods(facts.pods)
    if decision is not None and shown.conditions:
        shown = _apply_decision(shown, facts, decision)
    return judge(
        HpaEvidence(
            shown,
            facts.now,
            pods=_target(pods, decision, facts.spec) if facts.pods else None,
            causes=facts.causes,
            triggers_read=bool(facts.triggers),
            flaws=[flaw.text for flaw in flaws(facts)],
            frozen_since=_frozen_since(facts, pods),
        )
    )


def _pods(rows: Iterable[Json]) -> list[Pod]:
    return [_decoder.reduce(msgspec.convert(row, PodManifest)) for row in rows]


def _target(pods: Sequence[Pod], decision: Decision | None, spec: HpaSpec | None) -> TargetPods:
    missing: set[str] = set()
    if decision is not None and spec is not None:
        for metric, proposal in zip(spec.metrics, decision.proposals, strict=False):
            if metric.kind is MetricKind.PODS and proposal.working is not None:
                missing |= proposal.working.missing
    lost = sum(pod.ready and pod.ref.name in missing for pod in pods)
    return pods_of(pods, lost, complete=True)


def _apply_decision(shown: ShownHpa, facts: HpaFacts, decision: Decision) -> ShownHpa:
    """Return the HPA with the status that the controller would write now."""
    spec = facts.spec
    moved = decision.desired != decision.current
    metrics = shown.metrics
    if spec is not None and decision.proposals:
        kinds = (metric.target.kind for metric in spec.metrics)
        rows = zip(shown.metrics, decision.proposals, kinds, strict=True)
        metrics = tuple(_metric(*row) for row in rows)
    conditions = tuple(
        ShownCondition(row.type, str(row.status), row.reason, row.message, row.since)
        for row in decision.conditions
    )
    return shown._replace(
        current=decision.current,
        desired=decision.desired,
        metrics=metrics,
        conditions=conditions,
        last_scale=facts.now if moved else shown.last_scale,
    )


def _metric(shown: ShownMetric, proposal: Proposal, kind: TargetKind) -> ShownMetric:
    usage = proposal.usage
    if proposal.replicas is None:
        return shown._replace(current="")
    if usage is None:
        return shown  # an average over no replicas
    share = kind is TargetKind.UTILIZATION
    return shown._replace(current=f"{usage // 1000}%" if share else f"{usage}m")


def _frozen_since(facts: HpaFacts, pods: Sequence[Pod]) -> float | None:
    """Return since when the controller's status is of another time than the target.

    The controller writes ``spec.replicas`` of the target into the status at each sync. A size that
    it has not written, of pods that have existed for minutes, shows that it does not sync.
    """
    status, scale = facts.hpa.get("status") or {}, facts.scale
    if scale is None or status.get("currentReplicas") in (None, scale.replicas):
        return None
    writes = [
        moment
        for row in facts.hpa["metadata"].get("managedFields") or ()
        if row.get("subresource") == "status"
        and (moment := instant.read(row.get("time"))) is not None
    ]
    young = any(facts.now - pod.born <= SYNC for pod in pods)
    return max(writes, default=None) if not young else None

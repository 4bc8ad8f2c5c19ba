"""The causes of every HPA that concerns GPUs, from the facts of the whole cluster."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TypeVar

from adapter.answers.causes import Cause, CauseCode, ClusterFacts, KubeKey, causes_of, scaler_of
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.podselection import selector_of
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import Fact, Facts, Hpa
from adapter.tools.doctor.scaletargets import target_of

T = TypeVar("T")


def hpa_causes(facts: Facts) -> list[tuple[Hpa, Cause]]:
    """Return the causes of the HPAs that read the adapter's metrics, or whose pods have GPUs.

    Raises:
        UnreadError: HPAs, workloads or pods were not read, or there is no cluster.
    """
    facts.require_cluster()
    if facts.found_causes is None:
        facts.found_causes = list(_find_causes(facts))
    return facts.found_causes


def _find_causes(facts: Facts) -> Iterator[tuple[Hpa, Cause]]:
    around = cluster(facts)
    names = servedmetrics.metrics(facts.settings)
    elsewhere: dict[tuple[str, str], list[KubeKey]] = {}
    for workload in facts.workloads.read():
        meta = workload.metadata
        place = KubeKey(meta.namespace, workload.kind, meta.name)
        elsewhere.setdefault((workload.kind, meta.name), []).append(place)
    for hpa in facts.hpas.read():
        target = target_of(facts, hpa)
        if not concerns(hpa, target, names, facts.gpu_resources):
            continue
        lost = target is None and hpa.kind in _READ
        others = elsewhere.get((hpa.kind, hpa.target), []) if lost else []
        hpa_facts = around.with_elsewhere(others)
        selector = selector_of(target) if target is not None else None
        replicas = target.spec.replicas if target is not None else None
        scaled = scaler_of(hpa.manifest)
        for cause in causes_of(hpa_facts, scaled, replicas=replicas, selector=selector):
            yield hpa, cause


_READ = ("Deployment", "StatefulSet")
"""Kinds of targets of which all were read."""


def cluster(facts: Facts) -> ClusterFacts:
    """Return the facts of the cluster as causes need them; raises UnreadError."""
    rows = _known_objects(facts.apiservices)
    return ClusterFacts(
        facts.now,
        workloads=[*facts.workloads.read(), *_known_objects(facts.replicasets)],
        pods=facts.pods.read(),
        events=_known_objects(facts.events) + _known_objects(facts.node_events),
        claims=_known_objects(facts.node_claims),
        nodes=facts.nodes.value if facts.nodes.known else None,
        slices=facts.slices.value if facts.slices.known else None,
        resources=facts.gpu_resources,
        apiservices={apiservice.metadata.name: apiservice for apiservice in rows} or None,
        controller_seen=facts.controller_seen.value if facts.controller_seen.known else None,
    )


def _known_objects(fact: Fact[Sequence[T]]) -> list[T]:
    return list(fact.value or ()) if fact.known else []


def concerns(
    hpa: Hpa, target: SeenWorkload | None, names: Container[str], resources: GpuResources
) -> bool:
    """Return whether an HPA reads one of the adapter's metrics, or scales pods with GPUs."""
    if any(metric.name in names for metric in hpa.metrics):
        return True
    return target is not None and asks_gpu(target, resources)


def asks_gpu(workload: SeenWorkload, resources: GpuResources) -> bool:
    """Return whether one of a workload's templates asks for a GPU, or claims devices."""
    specs = [template.spec for template in (workload.spec.template, *workload.members)]
    if any(spec.resource_claims for spec in specs):
        return True
    return any(
        resources.is_gpu(resource)
        for spec in specs
        for container in spec.containers
        for amounts in (container.resources.limits, container.resources.requests)
        for resource in amounts
    )


def of_codes(facts: Facts, *codes: CauseCode) -> list[tuple[Hpa, Cause]]:
    """Return the causes of some kinds, each with its HPA; raises UnreadError."""
    return [(hpa, cause) for hpa, cause in hpa_causes(facts) if cause.code in codes]

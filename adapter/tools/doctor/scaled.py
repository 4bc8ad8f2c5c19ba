"""What an HPA or a ScaledObject scales: the workload and its pods."""

from __future__ import annotations

from adapter.answers.keda.manifest import SeenScaledObject
from adapter.pipeline.cluster.podobjects import SeenPod, SeenWorkload, selected
from adapter.tools.doctor.facts import Facts, Hpa


def target_of(facts: Facts, scaler: Hpa | SeenScaledObject) -> SeenWorkload | None:
    """Return what an HPA or a ScaledObject scales, if it was read; raises UnreadError."""
    return next(
        (
            each
            for each in facts.workloads.read()
            if each.kind == scaler.kind
            and each.metadata.namespace == scaler.namespace
            and each.metadata.name == scaler.target
        ),
        None,
    )


def workload_of(facts: Facts, scaler: Hpa | SeenScaledObject) -> SeenWorkload | None:
    """Return the same; also None if no workload could be read."""
    return target_of(facts, scaler) if facts.workloads.known else None


def pods_of(facts: Facts, workload: SeenWorkload) -> list[SeenPod]:
    """Return the unfinished pods that a workload selects."""
    return selected(workload, facts.pods.read())

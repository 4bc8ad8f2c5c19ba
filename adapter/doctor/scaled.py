"""What an HPA scales: the workload and its pods."""

from __future__ import annotations

from adapter.cluster.podobjects import SeenPod, SeenWorkload, selected
from adapter.doctor.facts import Facts, Hpa


def target_of(facts: Facts, hpa: Hpa) -> SeenWorkload | None:
    """Return what an HPA scales, if it was read."""
    return next(
        (
            each
            for each in facts.workloads.read()
            if each.kind == hpa.kind
            and each.metadata.namespace == hpa.namespace
            and each.metadata.name == hpa.target
        ),
        None,
    )


def pods_of(facts: Facts, workload: SeenWorkload) -> list[SeenPod]:
    """Return the unfinished pods that a workload selects."""
    return selected(workload, facts.pods.read())

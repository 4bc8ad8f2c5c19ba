"""What an HPA or a ScaledObject scales: the workload and its pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from adapter.answers.keda.manifest import SeenScaledObject
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.podselection import PodSelection
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor.copies import nearest_copies
from adapter.tools.doctor.facts import Facts, Hpa


def target_of(facts: Facts, scaler: Hpa | SeenScaledObject) -> SeenWorkload | None:
    """Return what an HPA or a ScaledObject scales, if it was read; raises UnreadError."""
    copies = nearest_copies(scaler.origin, copies_of_target(facts, scaler))
    return copies[0] if copies else None


def copies_of_target(facts: Facts, scaler: Hpa | SeenScaledObject) -> Sequence[SeenWorkload]:
    """Return what an HPA or a ScaledObject scales, of each file that has it; raises UnreadError."""
    facts.workloads.read()
    workloads = facts.once(_workloads, facts.workloads)
    return workloads.get((scaler.kind, scaler.namespace, scaler.target), ())


def _workloads(facts: Facts) -> Mapping[tuple[str, str, str], Sequence[SeenWorkload]]:
    copies: dict[tuple[str, str, str], list[SeenWorkload]] = defaultdict(list)
    for row in facts.workloads.read():
        copies[row.kind, row.metadata.namespace, row.metadata.name].append(row)
    return copies


def workload_of(facts: Facts, scaler: Hpa | SeenScaledObject) -> SeenWorkload | None:
    """Return the same; also None if no workload could be read."""
    return target_of(facts, scaler) if facts.workloads.known else None


def pods_of(facts: Facts, workload: SeenWorkload) -> list[SeenPod]:
    """Return the unfinished pods that a workload selects; raises UnreadError."""
    return selection(facts).of_workload(workload)


def selection(facts: Facts) -> PodSelection:
    """Return the pods that were read, by namespace and labels; raises UnreadError."""
    facts.pods.read()
    return facts.once(_selection, facts.pods)


def _selection(facts: Facts) -> PodSelection:
    return PodSelection(facts.pods.read())

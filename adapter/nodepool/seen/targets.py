"""The GPU workloads that HPAs scale, with their pods and shapes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from adapter.hpa import PodState, Values
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.shape import Shape, gpus
from adapter.nodepool.seen.autoscalers import HpaInfo, ReadableHpa
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.workloads import ScalableWorkload
from adapter.pipeline.cluster.workload import DEPLOYMENTS, REPLICASETS, Workload
from apiservice.provider import GroupResource

STATEFULSETS = GroupResource("statefulsets", "apps")


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """A workload with GPU pods that an HPA scales."""

    workload: WorkloadRef
    autoscaler: HpaInfo
    readable: ReadableHpa
    shape: Shape
    replicas: int
    status_replicas: int
    selector: str
    pods: tuple[PodInfo, ...]

    def states(self) -> list[PodState]:
        """Return the pods as the HPA controller sees them."""
        return [PodState(pod.name, pod.phase, pod.ready, pod.deleting) for pod in self.pods]


class RoundValues(NamedTuple):
    """The values that a full round has read. Rounds until the next full round use them."""

    values: Mapping[WorkloadRef, tuple[Values, ...]]
    asked: Mapping[WorkloadRef, ReadableHpa]
    """The HPAs of the values."""

    @classmethod
    def of(
        cls, found: Sequence[ScaleTarget], values: Mapping[WorkloadRef, tuple[Values, ...]]
    ) -> RoundValues:
        """Return the values with their HPAs."""
        return cls(values, {target.workload: target.readable for target in found})

    def still(self, found: Sequence[ScaleTarget]) -> Mapping[WorkloadRef, tuple[Values, ...]]:
        """Return the values of HPAs that have not changed since."""
        return {
            target.workload: self.values[target.workload]
            for target in found
            if target.workload in self.values and self.asked.get(target.workload) == target.readable
        }


class ScaleTargets(NamedTuple):
    """All targets."""

    targets: tuple[ScaleTarget, ...]
    left_out: Counter[str]
    """Reason -> number of HPAs of GPU workloads that are not planned for."""


PodsOf = Callable[[str, Workload], tuple[PodInfo, ...]]


def by_workload(pods: Iterable[PodInfo]) -> PodsOf:
    """Return the pods of each workload, without placeholders."""
    found: dict[tuple[str, Workload], list[PodInfo]] = {}
    for pod in pods:
        if not pod.headroom:
            for workload in pod.workloads:
                found.setdefault((pod.namespace, workload), []).append(pod)
    rows = {key: tuple(sorted(own, key=lambda pod: pod.name)) for key, own in found.items()}
    return lambda namespace, workload: rows.get((namespace, workload), ())


def targets(cluster: ClusterTables, pods_of: PodsOf, within: Collection[str] = ()) -> ScaleTargets:
    """Return the HPAs of GPU workloads, by namespace and name; of two for one workload, the first.

    ``within`` lists the namespaces; empty for all.
    """
    found: dict[WorkloadRef, ScaleTarget] = {}
    left_out: Counter[str] = Counter()
    for scaler in sorted(cluster.autoscalers, key=lambda row: row.key):
        if within and scaler.namespace not in within:
            continue
        scaled = _scaled(cluster, scaler)
        pods = pods_of(scaler.namespace, scaler.target)
        shape = _shape(cluster, scaled, pods)
        if shape is None:
            continue
        shape = with_claims(shape, scaler.namespace, cluster)
        if gpus(shape) == 0:
            continue
        if scaled is None:
            # A Pods metric is requested with the selector of the workload.
            left_out["target_unknown"] += 1
            continue
        if scaler.readable is None:
            left_out["no_metric"] += 1
            continue
        ref = WorkloadRef(scaler.namespace, scaler.kind, scaler.target.name)
        # If its annotation is not a number, plan without a floor.
        left_out["annotation"] += bool(scaler.problem)
        if ref in found:
            left_out["second_hpa"] += 1
            continue
        found[ref] = ScaleTarget(
            workload=ref,
            autoscaler=scaler,
            readable=scaler.readable,
            shape=shape,
            replicas=scaled.replicas,
            status_replicas=scaled.status_replicas,
            selector=scaled.selector,
            pods=pods,
        )
    return ScaleTargets(tuple(found.values()), +left_out)


def with_priority(shape: Shape, priority_class: str, classes: Mapping[str, int]) -> Shape:
    """Return a template's shape with the priority of its pods."""
    name = priority_class or next((key for key in classes if key.startswith("*")), "")
    return replace(shape, priority=classes.get(name, shape.priority))


def priorities(cluster: ClusterTables) -> Mapping[str, int]:
    """Return PriorityClass -> value. A key that starts with ``*`` is the default of all pods."""
    rows = {row.name: row.value for row in cluster.classes}
    return rows | {f"*{row.name}": row.value for row in cluster.classes if row.default}


def with_claims(shape: Shape, namespace: str, cluster: ClusterTables) -> Shape:
    """Return a shape with the devices that its claims request, if their templates are known."""
    if not shape.claims:
        return shape
    rows = [cluster.claim_templates.find((namespace, name)) for name in shape.claims]
    sizes = [row.devices if row is not None else None for row in rows]
    known = [size for size in sizes if size is not None]
    return replace(shape, claim_devices=sum(known) if len(known) == len(sizes) else None)


def _scaled(cluster: ClusterTables, scaler: HpaInfo) -> ScalableWorkload | None:
    tables = {
        DEPLOYMENTS: cluster.deployments,
        STATEFULSETS: cluster.statefulsets,
        REPLICASETS: cluster.replicasets,
    }
    table = tables.get(scaler.target.resource)
    return table.find((scaler.namespace, scaler.target)) if table is not None else None


def _shape(
    cluster: ClusterTables, scaled: ScalableWorkload | None, pods: tuple[PodInfo, ...]
) -> Shape | None:
    """Return the shape of the newest pod, or of the template without pods.

    Admission may add requirements that the template does not have.
    """
    living = [pod for pod in pods if not pod.deleting]
    if living:
        return max(living, key=lambda pod: (pod.created, pod.name)).shape
    if scaled is None:
        return None
    return with_priority(scaled.shape, scaled.priority_class, priorities(cluster))

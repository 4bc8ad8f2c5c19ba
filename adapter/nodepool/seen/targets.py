"""The GPU workloads that HPAs scale, with their pods and shapes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from adapter.hpa import PodState, Values
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.seen.autoscalers import HpaInfo, ReadableHpa
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.workloads import ScalableWorkload, WorkloadTable
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
    group: tuple[tuple[Shape, int], ...] = ()
    """Shapes of the pods of one replica, with their number; empty if a replica is one pod."""

    def states(self) -> list[PodState]:
        """Return the pods as the HPA controller sees them: of some groups, the leaders only."""
        return [
            PodState(pod.name, pod.phase, pod.ready, pod.deleting)
            for pod in self.pods
            if pod.selected
        ]


class RoundValues(NamedTuple):
    """The values that a full round has read. Rounds until the next full round use them."""

    values: Mapping[WorkloadRef, tuple[Values, ...]]
    asked: Mapping[WorkloadRef, ReadableHpa]
    """The HPAs of the values."""

    @classmethod
    def of(
        cls, scale_targets: Sequence[ScaleTarget], values: Mapping[WorkloadRef, tuple[Values, ...]]
    ) -> RoundValues:
        """Return the values with their HPAs."""
        return cls(values, {target.workload: target.readable for target in scale_targets})

    def unchanged_values(
        self, scale_targets: Sequence[ScaleTarget]
    ) -> Mapping[WorkloadRef, tuple[Values, ...]]:
        """Return the values of HPAs that have not changed since."""
        return {
            target.workload: self.values[target.workload]
            for target in scale_targets
            if target.workload in self.values and self.asked.get(target.workload) == target.readable
        }


class ScaleTargets(NamedTuple):
    """All targets."""

    targets: tuple[ScaleTarget, ...]
    left_out: Counter[str]
    """Reason -> number of HPAs of GPU workloads that are not planned for."""


PodsOf = Callable[[str, Workload], tuple[PodInfo, ...]]


def pods_by_workload(pods: Iterable[PodInfo]) -> PodsOf:
    """Return the pods of each workload, without placeholders."""
    by_key: dict[tuple[str, Workload], list[PodInfo]] = {}
    for pod in pods:
        if not pod.headroom:
            for workload in pod.workloads:
                by_key.setdefault((pod.namespace, workload), []).append(pod)
    rows = {key: tuple(sorted(owned, key=lambda pod: pod.name)) for key, owned in by_key.items()}
    return lambda namespace, workload: rows.get((namespace, workload), ())


def targets(cluster: ClusterTables, pods_of: PodsOf, within: Collection[str] = ()) -> ScaleTargets:
    """Return the HPAs of GPU workloads, by namespace and name; of two for one workload, the first.

    ``within`` lists the namespaces; empty for all.
    """
    scale_targets: dict[WorkloadRef, ScaleTarget] = {}
    left_out: Counter[str] = Counter()
    for scaler in sorted(cluster.autoscalers, key=lambda row: row.key):
        if within and scaler.namespace not in within:
            continue
        scaled = _find_workload(cluster, scaler)
        pods = pods_of(scaler.namespace, scaler.target)
        shape = _shape(cluster, scaled, pods)
        if shape is None:
            continue
        shape = with_claims(shape, scaler.namespace, cluster)
        group = _group(cluster, scaler.namespace, pods)
        if gpus(shape) == 0 and not group:
            continue
        if scaled is None:
            # A Pods metric is requested with the selector of the workload.
            left_out["target_unknown"] += 1
            continue
        if scaler.readable is None:
            left_out["no_metric"] += 1
            continue
        if any(pod.topology for pod in pods):
            left_out["exclusive_topology"] += 1
            continue
        ref = WorkloadRef(scaler.namespace, scaler.kind, scaler.target.name)
        # If its annotation is not a number, plan without a floor.
        left_out["annotation"] += bool(scaler.problem)
        if ref in scale_targets:
            left_out["second_hpa"] += 1
            continue
        scale_targets[ref] = ScaleTarget(
            workload=ref,
            autoscaler=scaler,
            readable=scaler.readable,
            shape=shape,
            replicas=scaled.replicas,
            status_replicas=scaled.status_replicas,
            selector=scaled.selector,
            pods=pods,
            group=group,
        )
    return ScaleTargets(tuple(scale_targets.values()), +left_out)


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
    devices = [size for size in sizes if size is not None]
    return replace(shape, claim_devices=sum(devices) if len(devices) == len(sizes) else None)


def unwatched_autoscalers(
    cluster: ClusterTables, pods_of: PodsOf, within: Collection[str] = ()
) -> Iterator[HpaInfo]:
    """Yield the HPAs with GPU pods whose targets are not watched: their scale has to be read."""
    for scaler in cluster.autoscalers:
        if within and scaler.namespace not in within:
            continue
        if scaler.target.resource in _tables(cluster) or scaler.readable is None:
            continue
        pods = pods_of(scaler.namespace, scaler.target)
        if any(gpus(with_claims(pod.shape, pod.namespace, cluster)) != 0 for pod in pods):
            yield scaler


def _group(
    cluster: ClusterTables, namespace: str, pods: Sequence[PodInfo]
) -> tuple[tuple[Shape, int], ...]:
    """Return the shapes of the pods of one replica that hold GPUs, with their number.

    The largest group is taken: the others may lack pods, and a group has no more than its size.
    """
    groups: dict[str, Counter[Shape]] = {}
    for pod in pods:
        if pod.group and not pod.deleting:
            shape = with_claims(pod.shape, namespace, cluster)
            groups.setdefault(pod.group, Counter())[shape] += 1
    if not groups:
        return ()
    largest = max(sorted(groups.items()), key=lambda row: row[1].total())[1]
    return tuple(sorted(((s, n) for s, n in largest.items() if gpus(s) != 0), key=_group_order))


def _group_order(row: tuple[Shape, int]) -> tuple[int, str]:
    shape, number = row
    return -number, key(shape)


def _tables(cluster: ClusterTables) -> Mapping[GroupResource, WorkloadTable]:
    return {
        DEPLOYMENTS: cluster.deployments,
        STATEFULSETS: cluster.statefulsets,
        REPLICASETS: cluster.replicasets,
    }


def _find_workload(cluster: ClusterTables, scaler: HpaInfo) -> ScalableWorkload | None:
    table = _tables(cluster).get(scaler.target.resource, cluster.scales)
    return table.find((scaler.namespace, scaler.target))


def _shape(
    cluster: ClusterTables, scaled: ScalableWorkload | None, pods: tuple[PodInfo, ...]
) -> Shape | None:
    """Return the shape of the newest pod, or of the template without pods.

    Admission may add requirements that the template does not have.
    """
    living = [pod for pod in pods if not pod.deleting]
    if living:
        return max(living, key=lambda pod: (pod.created, pod.name)).shape
    if scaled is None or scaled.shape is None:
        return None
    return with_priority(scaled.shape, scaled.priority_class, priorities(cluster))

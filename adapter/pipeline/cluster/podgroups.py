"""Groups of pods: kinds of which one replica is several pods. One declaration for each kind.

An HPA of such a kind counts groups, and its controller reads the pods that the selector of the
scale subresource matches:

- a LeaderWorkerSet's and a DisaggregatedSetRoleScaler's matches the leaders only
  (kubernetes-sigs/lws ``api/leaderworkerset/v1/leaderworkerset_types.go``, ``hpaPodSelector``;
  ``disaggregatedsetrolescaler_types.go``, ``selector``). The workers have no part in a Pods metric;
- a PodCliqueScalingGroup's matches every pod of its groups (ai-dynamo/grove
  ``podcliquescalinggroup/reconcilestatus.go``). The controller multiplies the number of these pods,
  not of the groups, by value / target (``replica_calculator.go``, ``getReadyPodsCount``).

JobSet and RayCluster have no scale subresource. Their declarations say which pods have one
template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.catalog.targetfit import Selects
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import Workload, plural, workloads
from apiservice.provider import GroupResource

_LWS: Final = "leaderworkerset.sigs.k8s.io"


class Grouping(NamedTuple):
    """How a kind groups its pods."""

    selects: Selects = Selects.ALL
    number: str = ""
    """Label that numbers the groups of one object; empty if its pods form no groups."""
    role: str = ""
    """Label that distinguishes the pods of a group."""
    leader: str = ""
    """Value of ``role`` at the leader; empty if the value names a pod template."""
    size: str = ""
    """Annotation of the pods with the number of pods of a group; empty without one."""
    topology: str = ""
    """Annotation of the pods with the key of the topology domain that a group has for itself."""

    def reads(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector of the scale matches a pod."""
        return self.selects is not Selects.LEADERS or labels.get(self.role) == self.leader

    def part(self, labels: Mapping[str, str]) -> str:
        """Return what a pod has in common with the pods of the same template."""
        value = labels.get(self.role, "")
        return str(value == self.leader) if self.leader else value


_OF_LEADERS: Final = Grouping(
    Selects.LEADERS,
    f"{_LWS}/group-index",
    f"{_LWS}/worker-index",
    "0",
    f"{_LWS}/size",
    f"{_LWS}/exclusive-topology",
)
GROUPINGS: Final[Mapping[GroupResource, Grouping]] = {
    GroupResource("leaderworkersets", "leaderworkerset.x-k8s.io"): _OF_LEADERS,
    GroupResource("disaggregatedsetrolescalers", "disaggregatedset.x-k8s.io"): Grouping(
        Selects.LEADERS
    ),
    GroupResource("podcliquescalinggroups", "grove.io"): Grouping(
        Selects.MEMBERS, "grove.io/podcliquescalinggroup-replica-index"
    ),
    GroupResource("jobsets", "jobset.x-k8s.io"): Grouping(
        role="jobset.sigs.k8s.io/replicatedjob-name"
    ),
    GroupResource("rayclusters", "ray.io"): Grouping(role="ray.io/group"),
}
ANNOTATIONS: Final = tuple(row.size for row in GROUPINGS.values() if row.size)
"""Annotations of pods that this module reads."""
_SIZE: Final = re.compile(r"[0-9]{1,9}")
"""The form of a size: an int32. Python reads no number of more than 4,300 digits."""
_SINGLE: Final = Grouping()
_BY_PLURAL: Final = {resource.resource: row for resource, row in GROUPINGS.items()}
_LEADERS: Final = {row.role: row.leader for row in GROUPINGS.values() if row.number and row.leader}
"""Label -> its value at a leader."""


class ReplicaGroup(NamedTuple):
    """A group of pods: one replica of a workload."""

    workload: Workload
    number: str


def grouping_of(resource: GroupResource) -> Grouping:
    """Return how a kind groups its pods; one pod a group for a kind without a declaration."""
    return GROUPINGS.get(resource, _SINGLE)


def selects_of(kind: str, labels: Mapping[str, str] | None, size: int | None = None) -> Selects:
    """Return which pods of a replica the scale's selector matches, of a kind and its pods.

    Args:
        kind: of what is scaled. No two kinds that own pods share a name.
        labels: those that all pods of the groups have; None if they are not known. If all pods are
            leaders, each group is a single pod.
        size: pods of a group, by annotation or manifest; None if it is not known.
    """
    single = size == 1 or any(
        (labels or {}).get(role) == leader for role, leader in _LEADERS.items()
    )
    return Selects.ALL if single else _BY_PLURAL.get(plural(kind), _SINGLE).selects


def grouping_within(above: Sequence[Workload], labels: Mapping[str, str]) -> Grouping:
    """Return how the workloads of a pod group it; one pod a group if none of them does."""
    groupings = (grouping_of(workload.resource) for workload in above)
    return next((row for row in groupings if row.number and labels.get(row.number)), _SINGLE)


def group_of(pod: Pod) -> ReplicaGroup | None:
    """Return the group that a pod belongs to; None if it is a replica of its own."""
    for workload in workloads(pod):
        label = grouping_of(workload.resource).number
        if label and (number := pod.labels.get(label)):
            return ReplicaGroup(workload, number)
    return None


def stated_size(annotations: Mapping[str, str]) -> int | None:
    """Return the number of pods of a group that the annotations of its pods state; None without
    one."""
    texts = (annotations.get(key, "") for key in ANNOTATIONS)
    return next((int(text) for text in texts if _SIZE.fullmatch(text)), None)


def family_of(pod: Pod) -> object:
    """Return what pods of one pod template have in common, the pod itself without an owner.

    The topmost workload, because pods of a new ReplicaSet have the template of the old one, or
    nearly. In a group, a leader and a worker have different templates.
    """
    above = workloads(pod)
    if not above:
        return pod.ref
    for workload in above:
        grouping = grouping_of(workload.resource)
        if grouping.role:
            return (pod.namespace, workload, grouping.part(pod.labels))
    return (pod.namespace, above[-1])

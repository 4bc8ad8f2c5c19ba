"""The workload above a pod, as far as the pod's own manifest shows it.

A pod names its controller. Labels that controllers set name two more: the LeaderWorkerSet above a
StatefulSet, and the JobSet above a Job. What stands above that, such as the operator's object of a
Deployment, is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.pipeline.cluster.lookup import workload_kind
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import Workload, plural, workloads
from apiservice.provider import GroupResource

_BY_LABEL: Final[Mapping[str, tuple[str, str, str]]] = {
    "StatefulSet": (
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
    ),
    "Job": ("jobset.sigs.k8s.io/jobset-name", "jobset.x-k8s.io/v1alpha2", "JobSet"),
}
"""Kind of a controller -> the label that names what is above it, its apiVersion and its kind."""
_STATIC: Final = "Node"
"""Owner of a static pod, which is not a workload."""


class Above(NamedTuple):
    """The topmost workload that a pod is known to belong to."""

    api_version: str
    kind: str
    name: str

    @property
    def workload(self) -> Workload:
        """The same as other modules name it."""
        group, _, _ = self.api_version.rpartition("/")
        return Workload(GroupResource(plural(self.kind), group), self.name)


def topmost(pod: Pod) -> Above | None:
    """Return the topmost workload of a pod; None for a bare pod."""
    owner = pod.owner
    if owner is None or owner.kind == _STATIC:
        return None
    above = workloads(pod)[-1]
    version, kind = workload_kind(above.resource, pod)
    label, higher, name = _BY_LABEL.get(kind, ("", "", ""))
    if label and pod.labels.get(label):
        return Above(higher, name, pod.labels[label])
    return Above(version, kind, above.name)


def scaled(pod: Pod) -> tuple[Workload, ...]:
    """Return every workload of a pod that an HPA may scale."""
    above = topmost(pod)
    if above is None:
        return ()
    known = workloads(pod)
    return known if above.workload in known else (*known, above.workload)

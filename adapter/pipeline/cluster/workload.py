"""The workloads that a pod belongs to, derived from the pod alone.

A Deployment's pods name only their ReplicaSet, a CronJob's only their Job. Watching those kinds
would need more rights and memory. Their names follow from the pod's:

- ReplicaSet ``NAME-HASH`` with the pod label ``pod-template-hash: HASH`` belongs to Deployment
  ``NAME`` (kube-controller-manager ``deployment/sync.go``). Argo Rollouts do the same
  with ``rollouts-pod-template-hash``.
- Job ``NAME-MINUTES`` belongs to CronJob ``NAME`` (``cronjob/utils.go``: minutes since the epoch,
  at least eight digits). A Job that a person named so counts as a CronJob's.
- Controllers of groups of pods label the pods with the objects above their controller:
  LeaderWorkerSet and DisaggregatedSet (kubernetes-sigs/lws, "Labels, Annotations and Environment
  Variables"), JobSet (kubernetes-sigs/jobset ``api/jobset/v1alpha2``), Grove's
  PodCliqueScalingGroup (ai-dynamo/grove ``operator/api/common/labels.go``). A
  DisaggregatedSetRoleScaler scales a role, and has the name ``SET-ROLE``
  (``api/disaggregatedset/v1/disaggregatedsetrolescaler_types.go``).

What stands above that, such as the operator's object of a Deployment, is not known. KubeRay labels
a RayCluster with its RayService, and not the pods (``ray-operator/controllers/ray/common/pod.go``).
How these kinds group their pods is for :mod:`adapter.pipeline.cluster.podgroups` to say.

Kinds become resources by the rule of English that controller-gen follows for custom resources
(``gateways``, ``meshes``). The guess of apimachinery's ``meta.UnsafeGuessKindToResource`` would be
``gatewaies``, and the HPA controller does not guess: it asks the API's discovery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.cluster.pod import Pod
from apiservice.provider import GroupResource

DEPLOYMENTS = GroupResource("deployments", "apps")
REPLICASETS = GroupResource("replicasets", "apps")
ROLLOUTS = GroupResource("rollouts", "argoproj.io")
JOBS = GroupResource("jobs", "batch")
CRONJOBS = GroupResource("cronjobs", "batch")


class Labelled(NamedTuple):
    """A workload that labels of its pods name."""

    labels: tuple[str, ...]
    """Their values, joined by hyphens, are its name."""
    api_version: str
    kind: str

    def name(self, labels: Mapping[str, str]) -> str:
        """Return the name that a pod's labels give it; empty if they do not."""
        values = [labels.get(label, "") for label in self.labels]
        return "-".join(values) if all(values) else ""

    @property
    def resource(self) -> GroupResource:
        """Its resource."""
        return GroupResource(plural(self.kind), self.api_version.partition("/")[0])


def plural(kind: str) -> str:
    """Return the resource of a kind, by the rule of English."""
    lower = kind.lower()
    if lower == "endpoints":
        return lower
    if lower.endswith(("s", "x", "ch", "sh")):
        return lower + "es"
    if lower.endswith("y") and not lower.endswith(("ay", "ey", "oy", "uy")):
        return lower[:-1] + "ies"
    return lower + "s"


_DISAGGREGATED: Final = "disaggregatedset.x-k8s.io/name"
_LABELLED: Final[Mapping[str, Sequence[Labelled]]] = {
    "StatefulSet": (
        Labelled(
            ("leaderworkerset.sigs.k8s.io/name",), "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
        ),
        Labelled(
            (_DISAGGREGATED, "disaggregatedset.x-k8s.io/role"),
            "disaggregatedset.x-k8s.io/v1",
            "DisaggregatedSetRoleScaler",
        ),
        Labelled((_DISAGGREGATED,), "disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"),
    ),
    "Job": (Labelled(("jobset.sigs.k8s.io/jobset-name",), "jobset.x-k8s.io/v1alpha2", "JobSet"),),
    "PodClique": (
        Labelled(("grove.io/podcliquescalinggroup",), "grove.io/v1alpha1", "PodCliqueScalingGroup"),
    ),
}
"""Kind of a controller -> what labels of its pods name above it, from the lowest."""
KINDS: Final[Mapping[GroupResource, tuple[str, str]]] = {
    DEPLOYMENTS: ("apps/v1", "Deployment"),
    ROLLOUTS: ("argoproj.io/v1alpha1", "Rollout"),
    CRONJOBS: ("batch/v1", "CronJob"),
    **{row.resource: (row.api_version, row.kind) for rows in _LABELLED.values() for row in rows},
}
"""Workloads that no pod names as its controller -> apiVersion and kind."""
_RESOURCES: Final = {plural(kind): rows for kind, rows in _LABELLED.items()}

_HASHES = (("pod-template-hash", DEPLOYMENTS), ("rollouts-pod-template-hash", ROLLOUTS))
_CRON_JOB = re.compile(r"(.+)-\d{8,}")


class Workload(NamedTuple):
    """An object that owns pods of its namespace."""

    resource: GroupResource
    name: str


def workloads(pod: Pod) -> tuple[Workload, ...]:
    """Return the pod's controller and what is known to be above it, the topmost last."""
    owner = pod.owner
    if owner is None:
        return ()
    group, _, _ = owner.api_version.rpartition("/")
    return workloads_of(Workload(GroupResource(plural(owner.kind), group), owner.name), pod.labels)


def workloads_of(direct: Workload | None, labels: Mapping[str, str]) -> tuple[Workload, ...]:
    """Return a pod's controller and what the labels name above it, the topmost last."""
    if direct is None:
        return ()
    above = _workload_above(labels, direct)
    labeled = (
        Workload(row.resource, name)
        for row in _RESOURCES.get(direct.resource.resource, ())
        if (name := row.name(labels))
    )
    return (direct, *((above,) if above else ()), *labeled)


def _workload_above(labels: Mapping[str, str], direct: Workload) -> Workload | None:
    if direct.resource == REPLICASETS:
        for label, resource in _HASHES:
            suffix = "-" + labels.get(label, "")
            if len(suffix) > 1 and direct.name.endswith(suffix):
                return Workload(resource, direct.name.removesuffix(suffix))
    if direct.resource == JOBS and (match := _CRON_JOB.fullmatch(direct.name)):
        return Workload(CRONJOBS, match[1])
    return None

"""The facts from which causes follow: an HPA, its target, and the objects around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from adapter.figures import age
from adapter.pipeline.cluster.changes import ChangedObject
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.managers import Manager, manager_of
from adapter.pipeline.cluster.objects import (
    ApiService,
    ResourceSlice,
    SeenEvent,
    SeenNode,
    SeenNodeClaim,
)
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.podselection import PodSelection
from adapter.pipeline.cluster.workload import workloads
from adapter.pipeline.cluster.workloadobjects import SeenCronJob, SeenWorkload
from apiservice.labels.selector import Selector
from apiservice.wire import instant

_KINDS: Final = {"deployments": "Deployment", "rollouts": "Rollout", "cronjobs": "CronJob"}
"""Kinds of the workloads that :mod:`adapter.pipeline.cluster.workload` derives from names."""


class KubeKey(NamedTuple):
    """An object of a namespace. The API group is left out: no two kinds that own pods share a
    name."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """As a user names it: ``Deployment chat/llm``."""
        return f"{self.kind} {self.namespace}/{self.name}"


class ScalerFacts(NamedTuple):
    """An HPA, reduced to what causes need."""

    namespace: str
    name: str
    kind: str
    """Of the target."""
    target: str
    api_version: str
    """Of the target."""
    low: int
    high: int
    created: float | None
    """Epoch seconds."""
    synced: bool
    """The HPA controller has written its conditions."""
    spec_written: float | None
    """Epoch seconds of the last change of the spec, by ``managedFields``; None if not known."""
    metrics: tuple[tuple[str, str], ...] = ()
    """Type and name of each metric."""
    spec: Mapping[str, Any] = {}
    """As the manifest has it."""
    manager: Manager | None = None
    """What writes the HPA again."""

    @property
    def of(self) -> KubeKey:
        """The target."""
        return KubeKey(self.namespace, self.kind, self.target)

    @property
    def changed(self) -> ChangedObject:
        """The HPA as an object to change."""
        return ChangedObject("hpa", self.namespace, self.name, self.manager)

    @property
    def subject(self) -> str:
        """As a user names it."""
        return f"hpa {self.namespace}/{self.name}"


def scaler_of(manifest: Mapping[str, Any]) -> ScalerFacts:
    """Return an HPA of ``autoscaling/v2`` from a cluster, so the API server has validated it."""
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    reference = spec.get("scaleTargetRef") or {}
    low = spec.get("minReplicas")
    times = (
        instant.read(row.get("time"))
        for row in meta.get("managedFields") or ()
        if not row.get("subresource") and "f:spec" in (row.get("fieldsV1") or {})
    )
    return ScalerFacts(
        str(meta.get("namespace") or "default"),
        str(meta.get("name") or ""),
        str(reference.get("kind") or ""),
        str(reference.get("name") or ""),
        str(reference.get("apiVersion") or ""),
        1 if low is None else int(low),
        int(spec.get("maxReplicas") or 0),
        instant.read(meta.get("creationTimestamp")),
        bool((manifest.get("status") or {}).get("conditions")),
        max((time for time in times if time is not None), default=None),
        tuple(map(_metric, spec.get("metrics") or ())),
        spec,
        manager_of(meta),
    )


def owner_facts(owner: KubeKey) -> ScalerFacts:
    """Return an object as a target that no HPA scales."""
    return ScalerFacts(owner.namespace, "", owner.kind, owner.name, "", 0, 0, None, True, None)


def _metric(row: Mapping[str, Any]) -> tuple[str, str]:
    kind = str(row.get("type") or "")
    source = row.get(kind[:1].lower() + kind[1:]) or {}
    return kind, str((source.get("metric") or source).get("name") or "")


@dataclass(frozen=True)
class ClusterFacts:
    """What was read of a cluster, or of the part around one HPA. Nothing is written to it."""

    now: float
    """Epoch seconds."""
    workloads: Sequence[SeenWorkload] = ()
    """Of every kind that was read, with ReplicaSets."""
    pods: Sequence[SeenPod] = ()
    events: Sequence[SeenEvent] = ()
    """Warnings, the HPAs' ``SuccessfulRescale``, and ``NotTriggerScaleUp`` of pods."""
    nodes: Sequence[SeenNode] | None = None
    """None if they were not read."""
    slices: Sequence[ResourceSlice] | None = None
    """None if they were not read."""
    claims: Sequence[SeenNodeClaim] = ()
    """Karpenter's, if it has named one to a pod without a node."""
    resources: GpuResources = STANDARD
    apiservices: Mapping[str, ApiService] | None = None
    """By name; None if they were not read."""
    unanswered: Mapping[str, str] | None = None
    """API group of metrics -> what came instead of an answer."""
    refused: frozenset[str] = frozenset()
    """API groups of metrics whose server has answered, and had no value."""
    controller_seen: float | None = None
    """Epoch seconds at which kube-controller-manager renewed its lease; None if not known."""
    cronjobs: Sequence[SeenCronJob] = ()
    """Of the HPA's namespace, if the target is at 0 replicas."""
    elsewhere: Sequence[KubeKey] = ()
    """Objects of other namespaces that have the kind and name of a target that does not exist."""

    def with_elsewhere(self, elsewhere: Sequence[KubeKey]) -> ClusterFacts:
        """Return the same facts, and objects of other namespaces; the indexes are kept."""
        if not elsewhere:
            return self
        facts = copy(self)
        object.__setattr__(facts, "elsewhere", elsewhere)
        return facts

    @cached_property
    def _children(self) -> Mapping[KubeKey, list[SeenWorkload | SeenPod]]:
        children: dict[KubeKey, list[SeenWorkload | SeenPod]] = {}
        for workload in self.workloads:
            for owner in workload.metadata.owner_references:
                if owner.controller:
                    key = KubeKey(workload.metadata.namespace, owner.kind, owner.name)
                    children.setdefault(key, []).append(workload)
        for pod in self.pods:
            for key in _owners(pod):
                children.setdefault(key, []).append(pod)
        return children

    @cached_property
    def _events(self) -> Mapping[KubeKey, list[SeenEvent]]:
        by_object: dict[KubeKey, list[SeenEvent]] = {}
        for event in self.events:
            about = event.involved_object
            namespace = about.namespace or event.metadata.namespace
            by_object.setdefault(KubeKey(namespace, about.kind, about.name), []).append(event)
        return by_object

    @cached_property
    def _pods(self) -> PodSelection:
        return PodSelection(self.pods)

    @cached_property
    def _workloads(self) -> Mapping[KubeKey, SeenWorkload]:
        return {key_of(workload): workload for workload in self.workloads}

    def workload(self, key: KubeKey) -> SeenWorkload | None:
        """Return a workload; None if it was not read, or does not exist."""
        return self._workloads.get(key)

    def select_pods(self, namespace: str, selector: Selector) -> list[SeenPod]:
        """Return the unfinished pods of a namespace that a selector matches; none if it is empty,
        as the HPA controller has it.
        """
        return self._pods.select(namespace, selector)

    def about(self, key: KubeKey) -> Sequence[SeenEvent]:
        """Return the events about an object."""
        return self._events.get(key, ())

    def events_of(self, key: KubeKey, *reasons: str) -> list[SeenEvent]:
        """Return the events about an object with one of these reasons."""
        return [event for event in self.about(key) if event.reason in reasons]

    def below(self, key: KubeKey) -> tuple[list[SeenWorkload], list[SeenPod]]:
        """Return the workloads and the unfinished pods that an object owns, through any chain.

        A LeaderWorkerSet owns a StatefulSet, whose pods own the StatefulSets of their workers.
        """
        workloads: dict[KubeKey, SeenWorkload] = {}
        pods: dict[str, SeenPod] = {}
        waiting, seen_keys = [key], {key}
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if isinstance(child, SeenWorkload):
                    next_key = key_of(child)
                    workloads[next_key] = child
                else:
                    next_key = pod_key(child)
                    if not child.pod.finished:
                        pods[child.key] = child
                if next_key not in seen_keys:
                    seen_keys.add(next_key)
                    waiting.append(next_key)
        return list(workloads.values()), list(pods.values())

    def failed_pods(self, key: KubeKey, inner: Sequence[SeenWorkload]) -> list[SeenPod]:
        """Return the failed pods of an object, and of the workloads that it owns."""
        children = (
            row for owner in (key, *map(key_of, inner)) for row in self._children.get(owner, ())
        )
        rows = {row.key: row for row in children if isinstance(row, SeenPod)}
        return [row for row in rows.values() if row.pod.phase == "Failed"]

    def on_node(self, name: str) -> list[SeenPod]:
        """Return the unfinished pods of a node, as far as they were read."""
        return [pod for pod in self._placed.get(name, ()) if not pod.pod.finished]

    @cached_property
    def _placed(self) -> Mapping[str, list[SeenPod]]:
        by_node: dict[str, list[SeenPod]] = {}
        for pod in self.pods:
            by_node.setdefault(pod.pod.node, []).append(pod)
        return by_node

    def top(self, pod: SeenPod) -> KubeKey | None:
        """Return the highest known owner of a pod; None for a pod without one."""
        owners = list(_owners(pod))
        if not owners:
            return None
        key, seen_keys = owners[-1], set[KubeKey]()
        while key not in seen_keys and (above := self.workload(key)) is not None:
            seen_keys.add(key)
            owner = above.metadata.controller
            if owner is None:
                return key
            key = KubeKey(key.namespace, owner.kind, owner.name)
        return key

    def ago(self, since: float | None) -> str:
        """Return ``for 12m``, with a blank before it; empty if the time is not known."""
        return "" if since is None else f" for {age(self.now - since)}"

    def past(self, since: float | None, seconds: float) -> bool:
        """Return whether a time is this long ago. One that is not known counts as long ago."""
        return since is None or self.now - since >= seconds


def key_of(workload: SeenWorkload) -> KubeKey:
    """Return the key of a workload."""
    return KubeKey(workload.metadata.namespace, workload.kind, workload.metadata.name)


def pod_key(pod: SeenPod) -> KubeKey:
    """Return the key of a pod."""
    return KubeKey(pod.pod.ref.namespace, "Pod", pod.pod.ref.name)


def _owners(pod: SeenPod) -> Iterator[KubeKey]:
    """Yield the pod's controller, and the controller's own if the pod's labels show it."""
    owner = pod.pod.owner
    if owner is None:
        return
    yield KubeKey(pod.pod.ref.namespace, owner.kind, owner.name)
    for above in workloads(pod.pod)[1:]:
        yield KubeKey(pod.pod.ref.namespace, _KINDS[above.resource.resource], above.name)

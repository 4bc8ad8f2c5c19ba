"""Pods, each reduced to its owner, its node and its requirements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.nodepool.model.names import DELETION_COST, HEADROOM
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.seen.meta import NamespacedObject, resource_of
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.devicehealth import unhealthy_devices
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.manifest import MetaManifest, StatusManifest
from adapter.pipeline.cluster.placeholder import is_placeholder
from adapter.pipeline.cluster.podgroups import grouping_within
from adapter.pipeline.cluster.sharedvalues import SharedValues
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import Workload, workloads_of
from apiservice.wire import instant

PATH = "/api/v1/pods"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector that excludes ended pods: they hold no resources, and Jobs leave many of them."""


@dataclass(frozen=True, slots=True)
class PodInfo(NamespacedObject):
    """A pod that has not ended."""

    namespace: str
    name: str
    uid: str
    node: str
    """Empty until it is bound."""
    phase: str
    ready: bool
    deleting: bool
    workloads: tuple[Workload, ...]
    """Its controller, and the controller of that one if the names show it."""
    shape: Shape
    daemon: bool
    """Whether it belongs to a DaemonSet: every node has its own pod."""
    headroom: bool
    """Whether it is a placeholder, which every other pod may preempt. The PriorityClass decides,
    because anyone can set the label."""
    created: float
    deletion_cost: str | None = None
    cost_writer: str = ""
    """Field manager of ``deletion_cost``, from managedFields."""
    group: str = ""
    """Number of its group, where a replica is a group of pods; empty otherwise."""
    selected: bool = True
    """Whether the selector of the scale matches it: of some groups, the leader only."""
    unhealthy: bool = False
    """Whether the kubelet reports one of its devices unhealthy."""
    topology: str = ""
    """Key of the topology domain that its group has for itself; empty without one."""
    placeholder: bool = False
    """Whether it only holds room: nodepool's own, or another overprovisioner's."""


PodInfoTable = Table[tuple[str, str], PodInfo]


class _Managed(msgspec.Struct):
    manager: str = ""
    fieldsV1: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815 - as the API spells it


class _PodMeta(MetaManifest):
    managedFields: list[_Managed] | None = None  # noqa: N815 - as the API spells it


class _Manifest(msgspec.Struct):
    metadata: _PodMeta
    spec: dict[str, Any]
    status: StatusManifest = msgspec.field(default_factory=StatusManifest)


_manifest = msgspec.json.Decoder(_Manifest)


class PodInfoDecoder:
    """Decodes the pods of one collection, and shares equal parts among them."""

    def __init__(self, priority_class: str, resources: GpuResources = STANDARD) -> None:
        """``priority_class`` is the PriorityClass of placeholders."""
        self._once = SharedValues().once
        self._class = priority_class
        self._resources = resources

    def decode(self, raw: msgspec.Raw | bytes) -> PodInfo:
        """Decode a pod.

        Raises:
            msgspec.DecodeError: the text is not a Pod.
            ValueError: an amount of its resources is not a quantity.
        """
        manifest = _manifest.decode(raw)
        meta, spec, status = manifest.metadata, manifest.spec, manifest.status
        owner = next((row for row in meta.ownerReferences or () if row.controller), None)
        labels, notes = meta.labels or {}, meta.annotations or {}
        states = {row.type: row.status for row in status.conditions or ()}
        cost = notes.get(DELETION_COST)
        direct = Workload(resource_of(owner.apiVersion, owner.kind), owner.name) if owner else None
        above = self._once(workloads_of(direct, labels))
        grouping = grouping_within(above, labels)
        return PodInfo(
            namespace=self._once(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=self._once(str(spec.get("nodeName") or "")),
            phase=self._once(status.phase),
            ready=states.get("Ready") == "True",
            deleting=meta.deletionTimestamp is not None,
            workloads=above,
            shape=self._once(shape_of(spec, self._resources)),
            daemon=owner is not None and owner.kind == "DaemonSet",
            headroom=HEADROOM in labels and spec.get("priorityClassName") == self._class,
            placeholder=is_placeholder(labels, _images(spec), spec.get("priority")),
            created=instant.read(meta.creationTimestamp) or 0.0,
            group=self._once(labels.get(grouping.number, "")),
            selected=grouping.reads(labels),
            unhealthy=bool(unhealthy_devices(status.containerStatuses or ())),
            topology=notes.get(grouping.topology, ""),
            deletion_cost=cost,
            cost_writer="" if cost is None else _writer(meta.managedFields or []),
        )


def _images(spec: dict[str, Any]) -> list[str]:
    return [str(row.get("image") or "") for row in spec.get("containers") or ()]


def _writer(managers: list[_Managed]) -> str:
    field = f'"f:{DELETION_COST}"'.encode()
    return next((row.manager for row in managers if field in bytes(row.fieldsV1)), "")

"""Pods, each reduced to its owner, its node and its requirements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.nodepool.model.names import DELETION_COST, HEADROOM
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.seen.meta import (
    ConditionRow,
    NamespacedObject,
    ObjectMeta,
    conditions,
    resource_of,
)
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.devicehealth import ContainerHealth, unhealthy
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.placeholder import is_placeholder
from adapter.pipeline.cluster.podgroups import grouping_within
from adapter.pipeline.cluster.sharedvalues import SharedValues
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import Workload, workloads_of

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


class _Managed(msgspec.Struct, rename="camel"):
    manager: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"")


class _PodMeta(ObjectMeta, rename="camel"):
    managed_fields: list[_Managed] | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[ContainerHealth] | None = None
    conditions: list[ConditionRow] | None = None


class _Manifest(msgspec.Struct):
    metadata: _PodMeta
    spec: dict[str, Any]
    status: _Status = msgspec.field(default_factory=_Status)


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
        rows = conditions(status.conditions)
        owner = meta.controller
        cost = (meta.annotations or {}).get(DELETION_COST)
        labels = meta.labels or {}
        direct = Workload(resource_of(owner.api_version, owner.kind), owner.name) if owner else None
        above = self._once(workloads_of(direct, labels))
        grouping = grouping_within(above, labels)
        return PodInfo(
            namespace=self._once(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=self._once(str(spec.get("nodeName") or "")),
            phase=self._once(status.phase),
            ready="Ready" in rows and rows["Ready"].status == "True",
            deleting=meta.deletion_timestamp is not None,
            workloads=above,
            shape=self._once(shape_of(spec, self._resources)),
            daemon=owner is not None and owner.kind == "DaemonSet",
            headroom=HEADROOM in labels and spec.get("priorityClassName") == self._class,
            placeholder=is_placeholder(labels, _images(spec), spec.get("priority")),
            created=meta.created,
            group=self._once(labels.get(grouping.number, "")),
            selected=grouping.reads(labels),
            unhealthy=bool(unhealthy(status.container_statuses or ())),
            topology=(meta.annotations or {}).get(grouping.topology, ""),
            deletion_cost=cost,
            cost_writer="" if cost is None else _writer(meta.managed_fields or []),
        )


def _images(spec: dict[str, Any]) -> list[str]:
    return [str(row.get("image") or "") for row in spec.get("containers") or ()]


def _writer(managers: list[_Managed]) -> str:
    field = f'"f:{DELETION_COST}"'.encode()
    return next((row.manager for row in managers if field in bytes(row.fields_v1)), "")

"""Deployments, StatefulSets and ReplicaSets, with replicas, selector and shape of their pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.nodepool.model.shape import Shape
from adapter.nodepool.seen.meta import ObjectMeta, resource_of
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import Workload
from apiservice.labels.manifest import selector_text

PATHS = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "ReplicaSet": "/apis/apps/v1/replicasets",
}
UNOWNED_REPLICASETS = "!pod-template-hash,!rollouts-pod-template-hash"
"""Label selector that excludes ReplicaSets of Deployments: HPAs do not scale them."""


@dataclass(frozen=True, slots=True)
class ScalableWorkload:
    """A workload that an HPA may scale."""

    namespace: str
    workload: Workload
    replicas: int
    status_replicas: int
    selector: str
    """Label selector of its pods, as text for a query."""
    shape: Shape | None
    """Of its template; None if only its scale was read."""
    priority_class: str
    """PriorityClass of the pods; empty without one."""

    @property
    def key(self) -> tuple[str, Workload]:
        """Namespace, resource and name."""
        return (self.namespace, self.workload)


WorkloadTable = Table[tuple[str, Workload], ScalableWorkload]


class _Template(msgspec.Struct):
    spec: dict[str, Any]


class _Spec(msgspec.Struct):
    template: _Template
    selector: dict[str, Any]
    replicas: int = 1


class _Status(msgspec.Struct):
    replicas: int = 0


class _Manifest(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


_manifest = msgspec.json.Decoder(_Manifest)


def decoder(
    kind: str, resources: GpuResources = STANDARD
) -> Callable[[msgspec.Raw | bytes], ScalableWorkload]:
    """Return a decoder of objects of this kind, one of :data:`PATHS`.

    It raises msgspec.DecodeError, or ValueError for an invalid amount or selector.
    """
    above = resource_of("apps/v1", kind)

    def decode(raw: msgspec.Raw | bytes) -> ScalableWorkload:
        manifest = _manifest.decode(raw)
        meta, spec = manifest.metadata, manifest.spec
        return ScalableWorkload(
            namespace=meta.namespace,
            workload=Workload(above, meta.name),
            replicas=spec.replicas,
            status_replicas=manifest.status.replicas,
            selector=selector_text(spec.selector),
            shape=shape_of(spec.template.spec, resources),
            priority_class=str(spec.template.spec.get("priorityClassName") or ""),
        )

    return decode

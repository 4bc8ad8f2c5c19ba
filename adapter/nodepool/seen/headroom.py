"""Existing headroom objects: CapacityBuffers and Deployments of placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec

from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.home import Home
from adapter.nodepool.model.names import (
    BUFFER_GROUP,
    HEADROOM,
    LIFELINE,
    MANAGER,
    NEEDED_AT,
    NUDGED_AT,
    PODS,
    POOL,
    PROBE,
    REPLICAS,
    SERVES,
    SHAPE,
    TIED,
    headroom_key,
    headroom_name,
)
from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.seen.meta import NamespacedObject, ObjectMeta
from adapter.nodepool.seen.podspec import pod_spec, shape_of
from adapter.pipeline.cluster import objects
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.objects import (
    FieldManager,
    KubeObject,
    SeenCondition,
    SeenConditions,
)
from adapter.pipeline.cluster.table import Table
from apiservice.wire import instant

DEPLOYMENTS = "/apis/apps/v1/deployments"
"""Karpenter implements v1beta1 only; the cluster-autoscaler v1alpha1 from 1.34, both from 1.35."""


@dataclass(frozen=True, slots=True)
class HeadroomObject(NamespacedObject):
    """One headroom object."""

    namespace: str
    name: str
    uid: str
    method: ProvisioningMethod
    replicas: int
    serves: str
    """Namespace of its workloads; empty without a ``shape``."""
    shape: Shape | None
    """None for the probe, and if the object has a ``problem``."""
    pool: str
    pods: int
    needed_at: float
    nudged_at: float | None
    owners: frozenset[str]
    """UIDs of its owners. It is deleted with them."""
    conditions: Mapping[str, SeenCondition]
    tie: tuple[str, int] | None = None
    """The nodes that it is tied to as text, and ``spec.replicas``; None if it is not tied."""
    problem: str = ""
    """Why the object does not count as written by this controller; empty if it does."""


HeadroomTable = Table[tuple[str, str], HeadroomObject]


class _ManagedFields(FieldManager, msgspec.Struct, frozen=True):
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = {}


class _Meta(ObjectMeta, msgspec.Struct, frozen=True):
    managed_fields: Sequence[_ManagedFields] = []


class _Spec(KubeObject, frozen=True):
    replicas: int = 0


class _Manifest(KubeObject, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()
    status: SeenConditions = SeenConditions()


_shape = msgspec.json.Decoder(Shape)


class _NotOursError(Exception):
    """The object does not count as written by this controller. The message has the reason."""


def buffers_path(version: str) -> str:
    """Return the path of the CapacityBuffers of all namespaces."""
    return f"/apis/{BUFFER_GROUP}/{version}/capacitybuffers"


def shape_text(shape: Shape) -> str:
    """Return a shape as the text of the annotation."""
    values = {field.name: getattr(shape, field.name) for field in fields(shape) if field.compare}
    return msgspec.json.encode(values).decode()


def read_shape(text: str, resources: GpuResources = STANDARD) -> Shape:
    """Return the shape from the text of :func:`shape_text`.

    Args:
        text: of the annotation.
        resources: those that stand for a GPU.

    Raises:
        ValueError: no pod can have the shape.
    """
    shape = _shape.decode(text)
    try:
        again = shape_of(pod_spec(shape), resources, priority=shape.priority)
    except Exception as error:  # JSON in JSON: any error
        raise ValueError(f"no pod has this shape: {type(error).__name__}: {error}") from error
    again = replace(again, claim_devices=shape.claim_devices)
    if again != shape:
        raise ValueError("no pod has exactly this shape")
    if (shape.claim_devices or 0) < 0 or (shape.claim_devices != 0 and not shape.claims):
        raise ValueError(f"claim_devices is {shape.claim_devices}")
    if gpus(again) == 0:
        raise ValueError("its pods hold no GPU")
    return again


def decoder(
    method: ProvisioningMethod, home: Home, resources: GpuResources = STANDARD
) -> Callable[[msgspec.Raw | bytes], HeadroomObject]:
    """Return a decoder for the objects of one provisioning method.

    The label does not prove the writer, because anyone with permission to create such objects in a
    namespace can set it. An object that this controller did not write, that was changed since, or
    that is not in its ``home``, becomes a :class:`HeadroomObject` with a ``problem`` and without a
    shape. The decoder raises msgspec.DecodeError if the object is malformed.
    """

    def decode(raw: msgspec.Raw | bytes) -> HeadroomObject:
        manifest = objects.decode(raw, _Manifest)
        meta = manifest.metadata
        bare = HeadroomObject(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            method=method,
            replicas=0,
            serves="",
            shape=None,
            pool="",
            pods=0,
            needed_at=meta.created,
            nudged_at=None,
            owners=frozenset(row.uid for row in meta.owner_references),
            conditions={},
        )
        try:
            _check_ownership(meta)
            probe = meta.name == PROBE
            read = (
                _check_probe(bare, manifest)
                if probe
                else _read_order(bare, manifest, home, resources)
            )
        except (_NotOursError, ValueError) as error:
            return replace(bare, problem=str(error))
        return replace(read, conditions={row.type: row for row in manifest.status.conditions})

    return decode


def _check_ownership(meta: _Meta) -> None:
    """Check that our field manager applied all fields that are read, with the Job as owner."""
    owners = meta.owner_references
    job = PROBE if meta.name == PROBE else LIFELINE
    if [(row.api_version, row.kind, row.name) for row in owners] != [("batch/v1", "Job", job)]:
        raise _NotOursError(f"its only owner must be Job {job}")
    paths = _WRITTEN[meta.name == PROBE]
    if REPLICAS in meta.annotations:
        paths = (*paths, ("metadata", "annotations", REPLICAS))
    for path in paths:
        if not _owns_field(meta.managed_fields, path):
            raise _NotOursError(f"field manager {MANAGER} did not apply {'.'.join(path)}")


def _owns_field(rows: Iterable[_ManagedFields], path: Sequence[str]) -> bool:
    """Return whether the controller owns a field. Another manager that changes it takes it over."""
    ours = (MANAGER, "Apply", "")
    return any(
        _has_path(row.fields_v1, path)
        for row in rows
        if (row.manager, row.operation, row.subresource) == ours
    )


def _has_path(fields: Any, path: Sequence[str]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True


def _check_probe(bare: HeadroomObject, manifest: _Manifest) -> HeadroomObject:
    if manifest.spec.replicas:
        raise _NotOursError("a probe must have 0 replicas")
    return bare


def _read_order(
    bare: HeadroomObject, manifest: _Manifest, home: Home, resources: GpuResources
) -> HeadroomObject:
    meta, notes = manifest.metadata, manifest.metadata.annotations
    labels = meta.labels
    shape = read_shape(notes.get(SHAPE, ""), resources)
    serves = labels.get(SERVES, "")
    label = headroom_key(serves, key(shape))
    if meta.name != headroom_name(label) or labels.get(HEADROOM) != label:
        raise _NotOursError("its name or label does not match its shape and namespace")
    if problem := home.problem(meta.namespace, serves, shape):
        raise _NotOursError(problem)
    pods, replicas = int(notes.get(PODS) or 0), int(notes.get(REPLICAS) or manifest.spec.replicas)
    if min(pods, replicas, manifest.spec.replicas) < 0:
        raise _NotOursError("a number of pods is negative")
    return replace(
        bare,
        replicas=replicas,
        serves=serves,
        shape=shape,
        pool=notes.get(POOL, ""),
        pods=pods,
        needed_at=instant.read(notes.get(NEEDED_AT)) or meta.created,
        nudged_at=instant.read(notes.get(NUDGED_AT)),
        tie=(notes[TIED], manifest.spec.replicas) if TIED in notes else None,
    )


_WRITTEN: Final = {
    False: (("metadata", "annotations", SHAPE), ("spec", "replicas")),
    True: (("spec", "replicas"),),
}
"""Whether it is the probe -> fields that our field manager must own."""

SELECTOR = HEADROOM
"""Label selector of all headroom of this controller."""

"""The headroom objects that are there: CapacityBuffers and Deployments of placeholders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from adapter.cluster.table import Table
from adapter.nodepool.capacity import Way
from adapter.nodepool.seen import instant
from adapter.nodepool.seen.meta import Condition, ConditionRow, Meta, conditions
from adapter.nodepool.shape import Shape
from adapter.nodepool.ways.names import HEADROOM, NEEDED_AT, NUDGED_AT, PODS, POOL, SHAPE

DEPLOYMENTS = "/apis/apps/v1/deployments"


@dataclass(frozen=True, slots=True)
class Found:
    """One headroom object."""

    namespace: str
    name: str
    uid: str
    way: Way
    replicas: int
    shape: Shape | None
    """None for the probe, which stands for nothing."""
    pool: str
    pods: int
    needed_at: float
    nudged_at: float | None
    owners: frozenset[str]
    """UIDs of what it is deleted with."""
    conditions: Mapping[str, Condition]

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


Headrooms = Table[tuple[str, str], Found]


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Status(msgspec.Struct):
    conditions: list[ConditionRow] | None = None


class _Manifest(msgspec.Struct):
    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_manifest = msgspec.json.Decoder(_Manifest)
_shape = msgspec.json.Decoder(Shape)


def shape_text(shape: Shape) -> str:
    """A shape as the annotation has it."""
    return msgspec.json.encode(shape).decode()


def decoder(way: Way) -> Callable[[msgspec.Raw | bytes], Found]:
    """A reader of the objects of one way.

    It raises msgspec.DecodeError where an annotation was edited into something else.
    """

    def decode(raw: msgspec.Raw | bytes) -> Found:
        manifest = _manifest.decode(raw)
        meta, notes = manifest.metadata, manifest.metadata.annotations or {}
        text = notes.get(SHAPE, "")
        return Found(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            way=way,
            replicas=manifest.spec.replicas,
            shape=_shape.decode(text) if text else None,
            pool=notes.get(POOL, ""),
            pods=int(notes.get(PODS) or 0),
            needed_at=instant.read(notes.get(NEEDED_AT)) or meta.created,
            nudged_at=instant.read(notes.get(NUDGED_AT)),
            owners=frozenset(row.uid for row in meta.owner_references or ()),
            conditions=conditions(manifest.status.conditions),
        )

    return decode


SELECTOR = HEADROOM
"""Label selector of all that this controller has ordered."""

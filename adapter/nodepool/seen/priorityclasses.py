"""PriorityClasses: their values, and whether their pods preempt others."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from adapter.nodepool.seen.meta import NamedObject, ObjectMeta
from adapter.pipeline.cluster import objects
from adapter.pipeline.cluster.objects import SeenPriorityClass
from adapter.pipeline.cluster.table import Table

PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"


@dataclass(frozen=True, slots=True)
class PriorityClass(NamedObject):
    """A PriorityClass."""

    name: str
    value: int
    preempts: bool
    default: bool
    """Whether it applies to pods without a PriorityClass."""


PriorityClassTable = Table[str, PriorityClass]


class _Class(SeenPriorityClass, frozen=True):
    metadata: ObjectMeta
    value: int


def decode(raw: msgspec.Raw | bytes) -> PriorityClass:
    """Decode a PriorityClass. Raises msgspec.DecodeError."""
    row = objects.decode(raw, _Class)
    preempts = row.preemption_policy != "Never"
    return PriorityClass(row.metadata.name, row.value, preempts, row.global_default)

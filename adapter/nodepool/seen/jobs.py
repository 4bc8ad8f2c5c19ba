"""Jobs, each reduced to how many pods it should have and of what shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.cluster.table import Table
from adapter.nodepool.jobs import pods_left
from adapter.nodepool.podspec import shape_of
from adapter.nodepool.seen.meta import Meta
from adapter.nodepool.shape import Shape

PATH = "/apis/batch/v1/jobs"


@dataclass(frozen=True, slots=True)
class JobObject:
    """A Job."""

    namespace: str
    name: str
    left: int
    """Pods that it should have now."""
    suspended: bool
    """By a queue such as Kueue: it has no pods until that lets it go."""
    shape: Shape
    priority_class: str

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


Jobs = Table[tuple[str, str], JobObject]


def decode(raw: msgspec.Raw | bytes) -> JobObject:
    """A Job from its JSON.

    Raises:
        msgspec.DecodeError: it is no JSON.
        ValueError: it has no template, or an amount is no quantity.
    """
    manifest: dict[str, Any] = msgspec.json.decode(raw)
    spec: dict[str, Any] = manifest.get("spec") or {}
    template = (spec.get("template") or {}).get("spec")
    if not template:
        raise ValueError("spec.template.spec is missing")
    meta = msgspec.convert(manifest.get("metadata"), Meta)
    return JobObject(
        namespace=meta.namespace,
        name=meta.name,
        left=pods_left(manifest),
        suspended=bool(spec.get("suspend")),
        shape=shape_of(template),
        priority_class=str(template.get("priorityClassName") or ""),
    )

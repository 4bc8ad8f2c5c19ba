"""ResourceClaimTemplates (DRA): how many devices a pod's claim asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.cluster.table import Table
from adapter.nodepool.claims import devices
from adapter.nodepool.seen.meta import Meta

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")


def path(version: str) -> str:
    """The collection over all namespaces."""
    return f"/apis/{GROUP}/{version}/resourceclaimtemplates"


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A ResourceClaimTemplate."""

    namespace: str
    name: str
    devices: int | None
    """None where it names no number."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


ClaimTemplates = Table[tuple[str, str], ClaimTemplate]


def decode(raw: msgspec.Raw | bytes) -> ClaimTemplate:
    """A ResourceClaimTemplate from its JSON; raises if it is malformed."""
    manifest: dict[str, Any] = msgspec.json.decode(raw)
    meta = msgspec.convert(manifest.get("metadata"), Meta)
    return ClaimTemplate(meta.namespace, meta.name, devices(manifest))

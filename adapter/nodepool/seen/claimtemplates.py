"""ResourceClaimTemplates (DRA): how many devices a pod's claim requests.

``resource.k8s.io`` v1 and v1beta2 nest an exact request under ``exactly``; v1beta1 does not.
A device counts as a GPU, so that limits are not exceeded, unless its device class is known to be
one of other devices, such as network cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.nodepool.seen.meta import NamespacedObject, ObjectMeta
from adapter.pipeline.cluster.gpuresources import is_known_other
from adapter.pipeline.cluster.table import Table

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")


def path(version: str) -> str:
    """Path of the collection in all namespaces."""
    return f"/apis/{GROUP}/{version}/resourceclaimtemplates"


@dataclass(frozen=True, slots=True)
class ClaimTemplate(NamespacedObject):
    """A ResourceClaimTemplate."""

    namespace: str
    name: str
    devices: int | None
    """Number of devices; None if the template names no number."""


ClaimTemplateTable = Table[tuple[str, str], ClaimTemplate]


def decode(raw: msgspec.Raw | bytes) -> ClaimTemplate:
    """Decode a ResourceClaimTemplate. Raises an error if it is malformed."""
    manifest: dict[str, Any] = msgspec.json.decode(raw)
    meta = msgspec.convert(manifest.get("metadata"), ObjectMeta)
    return ClaimTemplate(meta.namespace, meta.name, devices(manifest))


def devices(template: Mapping[str, Any]) -> int | None:
    """Return the GPUs of one claim, or the maximum if the claim allows alternatives.

    Args:
        template: a ResourceClaimTemplate.

    Returns:
        None if the claim names no number: ``allocationMode: All`` or an unknown mode.

    Raises:
        ValueError: a count is negative.
    """
    claim = (template.get("spec") or {}).get("spec") or {}
    total = 0
    for request in (claim.get("devices") or {}).get("requests") or ():
        choices = request.get("firstAvailable") or [request.get("exactly") or request]
        counts = [_count(choice) for choice in choices]
        known_counts = [count for count in counts if count is not None]
        if len(known_counts) < len(counts):
            return None
        total += max(known_counts)
    return total


def _count(request: Mapping[str, Any]) -> int | None:
    # Admin access monitors a device that another pod holds.
    if request.get("adminAccess") or is_known_other(str(request.get("deviceClassName") or "")):
        return 0
    if (request.get("allocationMode") or "ExactCount") != "ExactCount":
        return None
    count = request.get("count")
    if count is None:
        return 1
    if int(count) < 0:
        raise ValueError(f"a claim requests {count} devices")
    return int(count)

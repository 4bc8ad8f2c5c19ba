"""ResourceClaims (DRA): whose devices pods have claimed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from adapter.pipeline.cluster.gpuresources import known_other


class SeenClaim(NamedTuple):
    """A ResourceClaim."""

    pods: frozenset[str]
    """The pods that it is reserved for, as ``namespace/name``."""
    makers: frozenset[str]
    """The drivers of its devices, and the device classes of its requests."""


def read_claim(content: Mapping[str, Any]) -> SeenClaim:
    """Read a ResourceClaim of ``resource.k8s.io/v1``; raises AttributeError or TypeError."""
    namespace = content["metadata"].get("namespace") or "default"
    status = content.get("status") or {}
    allocation = (status.get("allocation") or {}).get("devices") or {}
    makers = {str(each.get("driver") or "") for each in allocation.get("results") or ()}
    for request in ((content.get("spec") or {}).get("devices") or {}).get("requests") or ():
        choices = request.get("firstAvailable") or [request.get("exactly") or request]
        makers |= {str(choice.get("deviceClassName") or "") for choice in choices}
    holders = (each for each in status.get("reservedFor") or () if each.get("resource") == "pods")
    return SeenClaim(
        frozenset(f"{namespace}/{each.get('name')}" for each in holders), frozenset(makers - {""})
    )


def of_other_devices(claims: Iterable[SeenClaim], pod: str) -> bool:
    """Return whether all devices that a pod has claimed are known to be no GPUs.

    Args:
        claims: of the cluster.
        pod: ``namespace/name``.
    """
    makers = {maker for claim in claims if pod in claim.pods for maker in claim.makers}
    return bool(makers) and all(map(known_other, makers))

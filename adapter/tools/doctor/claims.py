"""ResourceClaims (DRA): whose devices pods have claimed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from adapter.pipeline.cluster.gpuresources import is_known_other

RESOURCE: Final = "/apis/resource.k8s.io/v1"
"""Path of the API."""


class SeenClaim(NamedTuple):
    """A ResourceClaim."""

    pods: frozenset[str]
    """The pods that it is reserved for, as ``namespace/name``."""
    classes: frozenset[str]
    """The device classes of its requests."""
    drivers: frozenset[str]
    """The drivers of its devices; none before it is allocated."""

    @property
    def accelerators(self) -> frozenset[str]:
        """The device classes that may be of accelerators.

        None if the names of all drivers are known to be of other devices, such as network cards.
        """
        if self.drivers and all(map(is_known_other, self.drivers)):
            return frozenset()
        return frozenset(name for name in self.classes if not is_known_other(name))


def read_claim(content: Mapping[str, Any]) -> SeenClaim:
    """Read a ResourceClaim of ``resource.k8s.io/v1``; raises AttributeError or TypeError."""
    namespace = content["metadata"].get("namespace") or "default"
    status = content.get("status") or {}
    allocation = (status.get("allocation") or {}).get("devices") or {}
    drivers = {str(device.get("driver") or "") for device in allocation.get("results") or ()}
    classes: set[str] = set()
    for request in ((content.get("spec") or {}).get("devices") or {}).get("requests") or ():
        choices = request.get("firstAvailable") or [request.get("exactly") or request]
        classes |= {str(choice.get("deviceClassName") or "") for choice in choices}
    holders = (row for row in status.get("reservedFor") or () if row.get("resource") == "pods")
    return SeenClaim(
        frozenset(f"{namespace}/{holder.get('name')}" for holder in holders),
        frozenset(classes - {""}),
        frozenset(drivers - {""}),
    )


def of_other_devices(claims: Iterable[SeenClaim], pod: str) -> bool:
    """Return whether all devices that a pod has claimed are known to be no GPUs.

    Args:
        claims: of the cluster.
        pod: ``namespace/name``.
    """
    pod_claims = [claim for claim in claims if pod in claim.pods]
    makers = {maker for claim in pod_claims for maker in claim.classes | claim.drivers}
    return bool(makers) and all(map(is_known_other, makers))

"""What pods request by resource claims (DRA): the device classes that may be of accelerators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.doctor.claims import RESOURCE, SeenClaim, read_claim

Json = dict[str, Any]


class ClaimedClasses(NamedTuple):
    """The device classes of a pod's claims."""

    accelerators: frozenset[str] = frozenset()
    """Those that may be of accelerators."""
    unread: str = ""
    """Why those of a claim are not known; empty if they are, or if others are of accelerators."""


class Claims:
    """The ResourceClaims of a namespace.

    Args:
        by_name: name -> claim.
        failure: why they could not be read; empty if they were.
    """

    def __init__(self, by_name: Mapping[str, SeenClaim], failure: str = "") -> None:
        self._by_name = by_name
        self._failure = failure

    def of(self, pod: Json) -> ClaimedClasses:
        """Return what a pod requests.

        Args:
            pod: its manifest.
        """
        claims = [self._by_name.get(name) for name in _names(pod)]
        accelerators = frozenset().union(*(claim.accelerators for claim in claims if claim))
        if accelerators or None not in claims:
            return ClaimedClasses(accelerators)
        return ClaimedClasses(unread=self._failure or "a claim does not exist yet")


async def read_claims(api: Api, pods: Sequence[Json]) -> Claims:
    """Return the claims of the namespace, if one of its pods has any.

    Args:
        api: the cluster, with the namespace.
        pods: their manifests.
    """
    if not any((pod.get("spec") or {}).get("resourceClaims") for pod in pods):
        return Claims({})
    try:
        rows = await api.list(f"{RESOURCE}/namespaces/{api.namespace}/resourceclaims")
        with odd_answers():
            return Claims({str(row["metadata"]["name"]): read_claim(row) for row in rows})
    except ClientError as error:
        return Claims({}, str(error))


def _names(pod: Json) -> list[str]:
    """Return the names of a pod's claims; empty for one that is not made from its template yet."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    made = {
        row.get("name"): row.get("resourceClaimName")
        for row in status.get("resourceClaimStatuses") or ()
    }
    return [
        str(row.get("resourceClaimName") or made.get(row.get("name")) or "")
        for row in spec.get("resourceClaims") or ()
    ]

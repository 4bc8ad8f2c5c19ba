"""Which optional APIs the API server serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from adapter.nodepool.model.apicall import ApiCall, get
from adapter.nodepool.model.names import BUFFER_GROUP, BUFFER_VERSIONS
from adapter.nodepool.seen import claimtemplates, karpenter
from apiservice.kube.client import ClusterAnswerError

_CUSTOM: Final = "custom.metrics.k8s.io"


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    name: str
    versions: list[_Version]


class _Groups(msgspec.Struct):
    groups: list[_Group]


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource]


@dataclass(frozen=True, slots=True)
class ServedApis:
    """The optional APIs that the API server serves."""

    buffers: str = ""
    """Version of CapacityBuffers; empty if none is served that the controller knows."""
    newer: str = ""
    """Versions of CapacityBuffers if only others are served."""
    karpenter: bool = False
    """NodePools and NodeClaims, v1."""
    custom_metrics: str = ""
    """Version of custom.metrics.k8s.io; empty if it is not served."""
    claims: str = ""
    """Version of resource.k8s.io (DRA); empty if it is not served."""


async def discover(call: ApiCall) -> ServedApis:
    """Discover the served APIs. Raises ClusterAnswerError."""
    answer = await get(call, "/apis", _Groups)
    groups = {group.name: [row.version for row in group.versions] for group in answer.groups}
    # The group also has ProvisioningRequests, in versions of their own.
    served = [
        version
        for version in groups.get(BUFFER_GROUP, [])
        if "capacitybuffers" in await _resources(call, f"/apis/{BUFFER_GROUP}/{version}")
    ]
    buffers = _first_served(BUFFER_VERSIONS, served)
    return ServedApis(
        buffers=buffers,
        newer="" if buffers else " and ".join(served),
        karpenter="v1" in groups.get(karpenter.GROUP, []),
        custom_metrics=_first_served(("v1beta2", "v1beta1"), groups.get(_CUSTOM, [])),
        claims=_first_served(claimtemplates.VERSIONS, groups.get(claimtemplates.GROUP, [])),
    )


def _first_served(wanted: Sequence[str], served: Sequence[str]) -> str:
    return next((version for version in wanted if version in served), "")


async def _resources(call: ApiCall, path: str) -> frozenset[str]:
    try:
        answer = await get(call, path, _Resources)
    except ClusterAnswerError as error:
        if error.status == 404:
            return frozenset()
        raise
    return frozenset(row.name for row in answer.resources)

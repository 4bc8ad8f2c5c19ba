"""Karpenter's NodePools and NodeClaims: the limits of a pool, and the boot time of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from adapter.hpa import quantity
from adapter.nodepool.seen.meta import NamedObject, ObjectMeta
from adapter.pipeline.cluster import objects
from adapter.pipeline.cluster.objects import KubeObject, SeenConditions, SeenNodeClaim
from adapter.pipeline.cluster.table import Table

GROUP = "karpenter.sh"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@dataclass(frozen=True, slots=True)
class NodePool(NamedObject):
    """A NodePool."""

    name: str
    limits: Mapping[str, int]
    """Thousandths over all its nodes."""
    problem: str
    """Why it creates no nodes; empty if it is Ready."""


@dataclass(frozen=True, slots=True)
class NodeClaim(NamedObject):
    """One ordered node."""

    name: str
    pool: str
    node: str
    """Empty until the node exists."""
    ordered: float
    ready: float | None
    """When it became Initialized: Ready, with all requested resources allocatable."""


NodePoolTable = Table[str, NodePool]
NodeClaimTable = Table[str, NodeClaim]


class _PoolSpec(KubeObject, msgspec.Struct, frozen=True):
    limits: dict[str, str | int | float] = {}


class _NodePool(KubeObject, frozen=True):
    metadata: ObjectMeta
    spec: _PoolSpec = _PoolSpec()
    status: SeenConditions = SeenConditions()


class _NodeClaim(SeenNodeClaim, frozen=True):
    metadata: ObjectMeta


def decode_pool(raw: msgspec.Raw | bytes) -> NodePool:
    """Decode a NodePool. Raises msgspec.DecodeError, or ValueError for an invalid amount."""
    manifest = objects.decode(raw, _NodePool)
    ready = manifest.status.of("Ready")
    refused = ready is not None and ready.status == "False"
    return NodePool(
        name=manifest.metadata.name,
        limits={
            name: quantity.to_milli(quantity.parse(amount))
            for name, amount in manifest.spec.limits.items()
        },
        problem=f"{ready.reason}: {ready.message}" if ready is not None and refused else "",
    )


def decode_claim(raw: msgspec.Raw | bytes) -> NodeClaim:
    """Decode a NodeClaim. Raises msgspec.DecodeError."""
    manifest = objects.decode(raw, _NodeClaim)
    meta = manifest.metadata
    done = manifest.status.of("Initialized")
    return NodeClaim(
        name=meta.name,
        pool=meta.labels.get("karpenter.sh/nodepool", ""),
        node=manifest.status.node_name,
        ordered=meta.created,
        ready=done.since if done is not None and done.status == "True" else None,
    )

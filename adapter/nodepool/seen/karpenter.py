"""Karpenter's NodePools and NodeClaims: how far a pool may grow, and how long a node takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from adapter.cluster.table import Table
from adapter.hpa import quantity
from adapter.nodepool.seen.meta import ConditionRow, ObjectMeta, conditions

GROUP = "karpenter.sh"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@dataclass(frozen=True, slots=True)
class NodePool:
    """A NodePool."""

    name: str
    limits: Mapping[str, int]
    """Thousandths over all its nodes."""
    problem: str
    """Why it makes no nodes; empty while it is Ready."""

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """One node that was ordered."""

    name: str
    pool: str
    node: str
    """Empty until it is there."""
    ordered: float
    ready: float | None
    """When it was Initialized: Ready, and all that was asked of it allocatable."""

    @property
    def key(self) -> str:
        """The name."""
        return self.name


NodePoolTable = Table[str, NodePool]
NodeClaimTable = Table[str, NodeClaim]


class _PoolSpec(msgspec.Struct):
    limits: dict[str, str | int | float] | None = None


class _Status(msgspec.Struct, rename="camel"):
    node_name: str = ""
    conditions: list[ConditionRow] | None = None


class _NodePool(msgspec.Struct):
    metadata: ObjectMeta
    spec: _PoolSpec = msgspec.field(default_factory=_PoolSpec)
    status: _Status = msgspec.field(default_factory=_Status)


class _NodeClaim(msgspec.Struct):
    metadata: ObjectMeta
    status: _Status = msgspec.field(default_factory=_Status)


_pool = msgspec.json.Decoder(_NodePool)
_claim = msgspec.json.Decoder(_NodeClaim)


def decode_pool(raw: msgspec.Raw | bytes) -> NodePool:
    """A NodePool from its JSON; raises msgspec.DecodeError, or ValueError for an amount."""
    manifest = _pool.decode(raw)
    ready = conditions(manifest.status.conditions).get("Ready")
    refused = ready is not None and ready.status == "False"
    return NodePool(
        name=manifest.metadata.name,
        limits={
            name: quantity.to_milli(quantity.parse(amount))
            for name, amount in (manifest.spec.limits or {}).items()
        },
        problem=f"{ready.reason}: {ready.message}" if ready is not None and refused else "",
    )


def decode_claim(raw: msgspec.Raw | bytes) -> NodeClaim:
    """A NodeClaim from its JSON; raises msgspec.DecodeError."""
    manifest = _claim.decode(raw)
    meta = manifest.metadata
    done = conditions(manifest.status.conditions).get("Initialized")
    return NodeClaim(
        name=meta.name,
        pool=(meta.labels or {}).get("karpenter.sh/nodepool", ""),
        node=manifest.status.node_name,
        ordered=meta.created,
        ready=done.since if done is not None and done.status == "True" else None,
    )

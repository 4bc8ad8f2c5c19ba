"""Reads what keeps one node from being emptied, with the caller's rights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from adapter.answers.causes import Cause, CauseCode, drains
from adapter.pipeline.cluster.evictions import BUDGETS, UNSPACED_EVENTS, SeenBudget
from adapter.pipeline.cluster.objects import SeenEvent, SeenNode, SeenNodeClaim, decode
from adapter.pipeline.cluster.podobjects import decode_pod
from adapter.tools.client.access import Api
from adapter.tools.explain.causefacts import NODECLAIMS
from adapter.tools.explain.factreader import FactReader


class ReadKeepers(NamedTuple):
    """What keeps a node, and why somebody wants to empty it."""

    leaves: str
    keepers: Sequence[Cause]
    unread: Sequence[str]


async def read_keepers(api: Api, node: SeenNode, now: float) -> ReadKeepers:
    """Return what keeps a node from being emptied; what cannot be read is named.

    Args:
        api: the cluster.
        node: the node.
        now: epoch seconds.
    """
    reader = FactReader(api, {})
    of_node = f"involvedObject.kind=Node,involvedObject.name={node.name}"
    pods, budgets, events, claims = await asyncio.gather(
        reader.read_list(
            "/api/v1/pods", decode_pod, "pods of the node", fields=f"spec.nodeName={node.name}"
        ),
        reader.read_list(BUDGETS, partial(decode, kind=SeenBudget), "poddisruptionbudgets"),
        reader.read_list(
            UNSPACED_EVENTS, partial(decode, kind=SeenEvent), "events", fields=of_node
        ),
        reader.read_list(NODECLAIMS, partial(decode, kind=SeenNodeClaim), "nodeclaims"),
    )
    node_pods = [pod for pod in pods if pod.pod.node == node.name]
    keepers = list(drains.keepers(node, node_pods, budgets, structural=False))
    leaves, why = (
        drains.why_leaving(node, claims, now),
        drains.blocked_nodes(events, now).get(node.name, ""),
    )
    if why and not keepers:
        command = f"kubectl describe node {node.name}"
        words = "see the events of the node"
        keepers.append(Cause(CauseCode.NODE_KEPT, f"node {node.name}", why, words, command))
    return ReadKeepers(leaves or why, keepers, list(reader.unread))

"""What GPU nodes offer to pods, what is left of it, and why no pod can start on a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodelabels import has_gpus
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.nodestarts import (
    BlockKind,
    NodeBlock,
    NodeState,
    NodeUse,
    StartNeeds,
    blocks,
    units_left,
    withheld,
)
from apiservice.runtime.steps import Steps

_STEP: Final = 512
"""Pods that one step looks at."""
_NEEDS: Final = 4096
"""Different needs of pods that are kept: tenants may write any. One of the others may fit a node
that none of these does."""


class NodeStanding(NamedTuple):
    """A node, as a GPU pod that would start there finds it."""

    state: NodeState
    used: NodeUse
    blocks: tuple[NodeBlock, ...]

    @property
    def left(self) -> int | None:
        """Units of GPU resources that a pod can still get; None if the node never had any."""
        if not self.state.has and not self.state.offers and not self.blocks:
            return None
        return 0 if self.blocks else sum(units_left(self.state, self.used).values())

    @property
    def withheld(self) -> str:
        """What the node has and does not offer, as ``1 of 8 nvidia.com/gpu``; empty if it offers
        all. A device plugin withholds devices that are not healthy."""
        rows = withheld(self.state)
        return " and ".join(f"{has - offers} of {has} {name}" for name, has, offers in rows)

    @property
    def requested(self) -> int:
        """Units of the node's GPU resources that its pods have requested."""
        return sum(self.used.gpus.get(name, 0) for name in {*self.state.has, *self.state.offers})

    @property
    def closed(self) -> list[NodeBlock]:
        """Why no pod can start, besides that its GPUs are in use."""
        return [block for block in self.blocks if block.kind is not BlockKind.TAKEN]

    @property
    def text(self) -> str:
        """Why no pod can start; empty if one can."""
        return in_words(self.blocks)


def in_words(blocks: Iterable[NodeBlock]) -> str:
    """Return blocks as one text."""
    return "; ".join(block.text for block in blocks)


class NodeStandings:
    """The nodes' standings, each computed once until a pod or a node has changed.

    Args:
        pods: the known pods.
        nodes: the known nodes.
    """

    def __init__(self, pods: PodIndex, nodes: Nodes) -> None:
        self._pods = pods
        self.nodes = nodes
        self._stamp = (-1, -1)
        self._known: dict[str, NodeStanding | None] = {}
        self._needs: frozenset[StartNeeds] = frozenset()
        self._claims = False
        """Whether pods get devices by claims (DRA): a node need not offer a resource then."""

    def refresh(self) -> Steps[None]:
        """Read what the cluster's GPU pods need of a node, in steps."""
        stamp = (self._pods.version, self.nodes.version)
        if stamp == self._stamp:
            return
        found: set[StartNeeds] = set()
        claims = False
        for done, pod in enumerate(self._pods.each()):
            daemon = pod.owner is not None and pod.owner.kind == "DaemonSet"
            if pod.may_hold_gpu and not (daemon or pod.finished or pod.placeholder):
                found.add(pod.needs)
            claims = claims or pod.claims
            if len(found) >= _NEEDS:
                break
            if done % _STEP == 0:
                yield
        self._stamp, self._known = stamp, {}
        self._needs, self._claims = frozenset(found), claims

    def of(self, name: str) -> NodeStanding | None:
        """Return the standing of a node as of the last refresh; None if it is not known."""
        if name not in self._known:
            node = self.nodes.get(name)
            self._known[name] = None if node is None else self._made(node)
        return self._known[name]

    def _made(self, node: Node) -> NodeStanding:
        used, promised = self._used(node.name), has_gpus(node.labels) and not self._claims
        found = blocks(node.state, used, self._needs, promised=promised)
        return NodeStanding(node.state, used, tuple(found))

    def _used(self, name: str) -> NodeUse:
        gpus: Counter[str] = Counter()
        cpu = memory = pods = 0
        for pod in self._pods.on_node(name):
            if pod.finished or pod.placeholder:
                continue
            gpus.update(pod.gpus)
            cpu, memory, pods = cpu + pod.needs.cpu, memory + pod.needs.memory, pods + 1
        return NodeUse(gpus, cpu, memory, pods)

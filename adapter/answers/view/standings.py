"""What GPU nodes offer to pods, what is left of it, and why no pod can start on a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
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
    withheld_resources,
)
from adapter.pipeline.cluster.pod import Pod

_NEEDS: Final = 4096
"""Different needs of pods that a node is compared with: tenants may write any. One of the others
may fit a node that none of these does."""


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
        rows = withheld_resources(self.state)
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


def _starts(pod: Pod) -> bool:
    """Return whether a pod is one that may start on any node with GPUs, and may not have yet."""
    daemon = pod.owner is not None and pod.owner.kind == "DaemonSet"
    return pod.may_hold_gpu and not (daemon or pod.finished or pod.placeholder)


class NodeStandings:
    """The nodes' standings, each computed once until a pod or a node has changed.

    What the GPU pods need is counted as they come and go: a page of a list must not look at all
    pods of the cluster.

    Args:
        pods: the known pods.
        nodes: the known nodes.
    """

    def __init__(self, pods: PodIndex, nodes: Nodes) -> None:
        self._pods = pods
        self.nodes = nodes
        self._stamp = (-1, -1)
        self._known: dict[str, NodeStanding | None] = {}
        self._needing: Counter[StartNeeds] = Counter()
        """What GPU pods need -> how many of them do."""
        self._claiming = 0
        """Pods that get devices by claims (DRA): a node need not offer a resource then."""
        self._needs: tuple[StartNeeds, ...] = ()
        for pod in pods.each():
            self._count_needs(None, pod)
        pods.listen(self._count_needs)

    def _count_needs(self, before: Pod | None, after: Pod | None) -> None:
        for pod, step in ((before, -1), (after, 1)):
            if pod is None:
                continue
            self._claiming += step * pod.claims
            if _starts(pod):
                self._needing[pod.needs] += step
                if not self._needing[pod.needs]:
                    del self._needing[pod.needs]

    def refresh(self) -> None:
        """Forget what pods or nodes that have changed since say."""
        stamp = (self._pods.version, self.nodes.version)
        if stamp != self._stamp:
            self._stamp, self._known = stamp, {}
            self._needs = tuple(islice(self._needing, _NEEDS))

    def of(self, name: str) -> NodeStanding | None:
        """Return the standing of a node as of the last refresh; None if it is not known."""
        if name not in self._known:
            node = self.nodes.get(name)
            self._known[name] = None if node is None else self._build_standing(node)
        return self._known[name]

    def _build_standing(self, node: Node) -> NodeStanding:
        used, promised = self._node_use(node.name), has_gpus(node.labels) and not self._claiming
        node_blocks = blocks(node.state, used, self._needs, promised=promised)
        return NodeStanding(node.state, used, tuple(node_blocks))

    def _node_use(self, name: str) -> NodeUse:
        gpus: Counter[str] = Counter()
        cpu = memory = pods = 0
        for pod in self._pods.on_node(name):
            if pod.finished or pod.placeholder:
                continue
            gpus.update(pod.gpus)
            cpu, memory, pods = cpu + pod.needs.cpu, memory + pod.needs.memory, pods + 1
        return NodeUse(gpus, cpu, memory, pods)

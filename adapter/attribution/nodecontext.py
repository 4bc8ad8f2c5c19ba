"""What is known about where pods run: the node's labels, its pods, and who shares what there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from adapter.attribution.holdings import Holders
from adapter.attribution.policy import SharingOptions
from adapter.attribution.sharing import NodeSharing, asks_shared, node_sharing
from adapter.attribution.split import Accounting, Place
from adapter.catalog import Catalog
from adapter.cluster.nodelabels import NodeFacts, facts
from adapter.cluster.nodes import Node
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import refusal
from adapter.devices.series import Track
from adapter.devices.state import Exporter

_USED: Final = "gpu_memory_used_bytes"
_NO_FACTS: Final = NodeFacts()
_NOBODY: Final = NodeSharing()
_NODE: Final = attrgetter("node")


class Pods(Protocol):
    """The pods on hand."""

    def get(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name, or None."""

    def on_node(self, node: str) -> Sequence[Pod]:
        """The pods bound to a node, finished ones included."""

    def at_address(self, address: str) -> Sequence[Pod]:
        """The pods that have an IP address, finished ones excluded."""

    def changes(self, node: str) -> int:
        """Grows with every change of a pod on the node that holds a GPU."""


class NodeTable(Protocol):
    """The nodes on hand."""

    def get(self, name: str) -> Node | None:
        """The node of that name, or None: it is gone, or nodes are not watched."""


class Stamp(NamedTuple):
    """What an answer about a shared device rests on besides the exporter."""

    changes: int
    facts: NodeFacts


class Sites:
    """The cluster as attribution sees it. Lives as long as the store."""

    def __init__(
        self, catalog: Catalog, pods: Pods, nodes: NodeTable | None, options: SharingOptions
    ) -> None:
        self.pods = pods
        self.options = options
        self.accounting = Accounting(
            frozenset(field.name for field in catalog.fields.values() if field.exact),
            catalog.metrics.get(_USED),
        )
        self._nodes = nodes
        self._facts: dict[str, tuple[Node, NodeFacts]] = {}

    def pod(self, ref: PodRef) -> Pod | None:
        """The pod of that name, or None."""
        return self.pods.get(*ref)

    def has_node(self, name: str) -> bool:
        """A node of that name is part of the cluster: it is on hand, or its kubelet runs a pod.

        A pod that does not run shows nothing: its author may have written any node's name.
        """
        if self._nodes is not None and self._nodes.get(name) is not None:
            return True
        return any(pod.phase == "Running" for pod in self.pods.on_node(name))

    def node_at(self, address: str) -> str:
        """The node of the pods that have an address; empty where there is none, or several."""
        nodes = {pod.node for pod in self.pods.at_address(address) if pod.node}
        return nodes.pop() if len(nodes) == 1 else ""

    def labels(self, node: str) -> Mapping[str, str]:
        """The node's labels; empty where they are not known."""
        found = self._nodes.get(node) if self._nodes is not None and node else None
        return found.labels if found is not None else {}

    def facts(self, node: str) -> NodeFacts:
        """What the node's labels say; the same object while they stay as they are."""
        found = self._nodes.get(node) if self._nodes is not None and node else None
        if found is None:
            self._facts.pop(node, None)
            return _NO_FACTS
        known = self._facts.get(node)
        if known is None or known[0] is not found:
            said = facts(found.labels)
            if known is not None and known[1] == said:
                said = known[1]
            known = self._facts[node] = (found, said)
        return known[1]

    def forget(self, node: str) -> None:
        """No exporter speaks of the node's devices any more."""
        self._facts.pop(node, None)

    def stamp(self, node: str) -> Stamp:
        """Differs once a pod or a label of the node has changed."""
        return Stamp(self.pods.changes(node), self.facts(node))

    def believes(self, track: Track) -> bool:
        """The pod that the track names is there and may hold its device."""
        claim = track.claim
        if claim is None:
            return False
        pod = self.pods.get(*claim.pod)
        return pod is not None and refusal(claim, pod, track.node) is None

    def of_track(self, track: Track) -> str:
        """The node of a device: known for certain, its pod's, or by the row's own words."""
        if track.node:
            return track.node
        pod = self.pods.get(*track.claim.pod) if track.claim is not None else None
        return pod.node if pod is not None and pod.holds_gpu and pod.node else track.host


class Places:
    """The places of pods at one moment."""

    def __init__(
        self,
        sites: Sites,
        exporters: Mapping[str, Exporter],
        on_node: Mapping[str, tuple[str, ...]],
        held: Holders,
    ) -> None:
        self._sites = self.sites = sites
        self._exporters = exporters
        self._on_node = on_node
        """Node -> the exporters that speak of its devices."""
        self._held = held
        self._own: dict[object, object] = {}
        self._fields: dict[str, frozenset[str]] = {}

    def sharing(self, node: str) -> NodeSharing:
        """Who shares which devices of a node; nobody where nothing hints at it."""
        tracks = (
            t for o in self._on_node.get(node, ()) for t in self._tracks(self._exporters[o], node)
        )
        pods = self._sites.pods.on_node(node)
        hinted = self._sites.facts(node).shared or any(map(asks_shared, pods))
        if not hinted and self._alone(tracks):
            return _NOBODY
        return self._of_node(node, self._sites.stamp(node))

    def rests_on(self, pod: Pod, origin: str) -> bool:
        """What is said of the pod's devices ends with the batches of this exporter alone."""
        return self._on_node.get(pod.node, (origin,)) == (origin,) or not pod.holds_gpu

    def may_share(self, pod: Pod) -> bool:
        """A pod that no row names may share a device all the same."""
        return bool(pod.node) and pod.holds_gpu and pod.node in self._on_node

    def node(self, node: str) -> Place:
        """What is known about a node, whoever shares its devices."""
        sites = self._sites
        return Place(
            facts=sites.facts(node),
            accounting=sites.accounting,
            normalized=sites.options.normalized,
        )

    def pod(self, pod: Pod, tracks: Collection[Track]) -> tuple[Place, Stamp | None]:
        """What is known about a pod's place, and what ends that; None: nothing but its exporter.

        Args:
            pod: as the cluster has it now.
            tracks: those whose rows name it.
        """
        sites = self._sites
        found = sites.facts(pod.node)
        policy = sites.options.policy
        if sites.options.rules:
            policy = sites.options.of(pod.ref.namespace, sites.labels(pod.node))
        place = Place(
            found,
            _NOBODY,
            policy,
            sites.accounting,
            self._held,
            normalized=sites.options.normalized,
        )
        adrift = pod.node and None in map(_NODE, tracks)  # rare, and cheaper than to ask each
        if adrift and any(track.node is None and not track.serves for track in tracks):
            place = place._replace(reported=self._reported(pod.node))
        if not (found.shared or asks_shared(pod)) and self._alone(tracks):
            return place, None
        stamp = sites.stamp(pod.node)
        sharing = self._of_node(pod.node, stamp) if pod.node else self._of_tracks(tracks)
        return place._replace(sharing=sharing), stamp

    def _reported(self, node: str) -> frozenset[str]:
        """Fields that exporters report which are known to be on a node."""
        known = self._fields.get(node)
        if known is None:
            placed = (
                track.history.layout.of_field
                for origin in self._on_node.get(node, ())
                for track in self._tracks(self._exporters[origin], node)
                if track.node == node
            )
            known = self._fields[node] = frozenset().union(*placed)
        return known

    def _alone(self, tracks: Iterable[Track]) -> bool:
        """Rows name the pod for devices, and nothing hints at anybody else on these."""
        named = False
        for track in tracks:
            held = self._held.get(track.device.id)
            if track.shared or track.superseded or (held is not None and len(held) > 1):
                return False
            named = named or not track.serves
        return named

    def _of_node(self, node: str, stamp: Stamp) -> NodeSharing:
        origins = self._on_node.get(node, ())
        if not origins:
            return _NOBODY
        key = f"sharing/{node}"
        memory = self._exporters[origins[0]].answers if len(origins) == 1 else self._own
        known = memory.get(key)
        if isinstance(known, tuple) and known[0] == stamp:
            sharing: NodeSharing = known[1]
            return sharing
        tracks = [t for o in origins for t in self._tracks(self._exporters[o], node)]
        made = node_sharing(tracks, self._sites.pods.on_node(node), stamp.facts, self._held)
        memory[key] = (stamp, made)
        return made

    def _of_tracks(self, tracks: Iterable[Track]) -> NodeSharing:
        """Where the pod's node is not known: by the rows of its devices alone."""
        devices = {(track.origin, track.device.id) for track in tracks if not track.serves}
        its = [t for origin, d in devices for t in self._exporters[origin].devices.get(d, ())]
        claimed = {track.claim.pod for track in its if track.claim is not None}
        pods = [pod for ref in claimed if (pod := self._sites.pods.get(*ref)) is not None]
        return node_sharing(its, pods, _NO_FACTS, {})

    def _tracks(self, exporter: Exporter, node: str) -> Sequence[Track]:
        """An exporter's tracks on a node; sorted out once per batch."""
        known = exporter.answers.get("by_node")
        if isinstance(known, dict):
            found: Sequence[Track] = known.get(node, ())
            return found
        by_node: dict[str, list[Track]] = {}
        for track in exporter.tracks.values():
            if not track.serves:
                by_node.setdefault(self._sites.of_track(track), []).append(track)
        exporter.answers["by_node"] = by_node
        return by_node.get(node, ())


def nodes_of(exporter: Exporter, sites: Sites) -> frozenset[str]:
    """The nodes of whose devices an exporter speaks."""
    return frozenset(
        sites.of_track(track) for track in exporter.tracks.values() if not track.serves
    ) - {""}

"""What is learnt from each batch about who holds which device, and which nodes share theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from adapter.attribution.holdings import Holders, Holding, Holdings
from adapter.attribution.nodecontext import Sites, Stamp
from adapter.attribution.sharing import GPU, Evidence, asks_shared, flaps, offered
from adapter.cluster.nodelabels import NodeFacts
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import refusal
from adapter.devices.series import Track
from adapter.devices.state import Exporter

log = structlog.get_logger(__name__)

_ORDER: Final = {evidence: rank for rank, evidence in enumerate(Evidence)}


class Recognition:
    """Belongs to a store and its thread."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._holdings = Holdings()
        self._nodes: dict[str, dict[str, Evidence]] = {}
        """Node that is known to share devices -> exporter -> by what."""
        self._exclusive: dict[str, int] = {}
        self._tells: dict[str, tuple[Stamp, frozenset[Evidence]]] = {}
        """Node -> what its labels and its pods' specs tell, and what ends that."""

    @property
    def exclusive(self) -> Mapping[str, int]:
        """Exporter -> its pods' devices, as of its last batch, if none of its nodes shares any."""
        return self._exclusive

    def lend(self) -> Holders:
        """Device -> the pods that rows named for it; never changes."""
        return self._holdings.lend()

    def by_evidence(self) -> Counter[str]:
        """Evidence -> nodes that are known to share devices by it."""
        counts = Counter({evidence.value: 0 for evidence in Evidence})
        counts.update(_first(known.values()).value for known in self._nodes.values())
        return counts

    def note(self, exporter: Exporter, nodes: Iterable[str]) -> None:
        """Learn from an exporter's state after a batch.

        Args:
            exporter: its state.
            nodes: whose devices it speaks of.
        """
        found: dict[str, set[Evidence]] = {node: set(self._told(node)) for node in nodes}
        devices: set[tuple[PodRef, str]] = set()
        for ref, tracks in exporter.pods.items():
            pod = self._sites.pods.get(*ref)
            if pod is None or pod.node not in found:
                continue
            for track in tracks:
                if track.received != exporter.received or not _holds(track, pod):
                    continue
                self._named(track, pod)
                devices.add((ref, track.device.id))
                if track.shared:
                    found[pod.node].add(Evidence.ROWS)
                elif self._flaps(track.device.id, pod.node):
                    found[pod.node].add(Evidence.FLAPPING)
        self._exclusive.pop(exporter.origin, None)
        if found and not any(found.values()):
            self._exclusive[exporter.origin] = len(devices)
        for node, evidences in found.items():
            self._recognise(node, exporter.origin, _first(evidences) if evidences else None)

    def silent(self, origin: str) -> None:
        """The exporter is not held any more."""
        self._exclusive.pop(origin, None)

    def forget(self, device: str) -> None:
        """No exporter speaks of the device any more."""
        self._holdings.forget(device)

    def forget_node(self, node: str, origin: str) -> None:
        """The exporter does not speak of the node's devices any more."""
        self._tells.pop(node, None)
        self._recognise(node, origin, None)

    def _named(self, track: Track, pod: Pod) -> None:
        claim = track.claim
        certain = claim is not None and bool(claim.uid)
        known = self._holdings.of(track.device.id)
        if Holding(pod.ref, pod.uid, track.origin) in known:
            return
        gone = tuple(held for held in known if held.pod != pod.ref and not self._lives(held))
        if gone:
            self._holdings.drop(track.device.id, gone)
        self._holdings.named(track.device.id, pod, track.origin, certain=certain)

    def _flaps(self, device: str, node: str) -> bool:
        known = self._holdings.of(device)
        return len(known) > 1 and flaps(held for held in known if self._lives(held, node))

    def _lives(self, held: Holding, node: str | None = None) -> bool:
        pod = self._sites.pods.get(*held.pod)
        if pod is None or pod.uid != held.uid or pod.finished:
            return False
        return node is None or (pod.node == node and pod.phase == "Running" and not pod.deleting)

    def _told(self, node: str) -> frozenset[Evidence]:
        """What the node's labels and its pods' specs tell, whatever rows say."""
        stamp, known = self._sites.stamp(node), self._tells.get(node)
        if known is None or known[0] != stamp:
            known = self._tells[node] = (stamp, frozenset(self._tell(node)))
        return known[1]

    def _tell(self, node: str) -> set[Evidence]:
        told: set[Evidence] = set()
        pods = self._sites.pods.on_node(node)
        if any(asks_shared(pod) for pod in pods if not pod.finished):
            told.add(Evidence.SPEC)
        facts: NodeFacts = self._sites.facts(node)
        if facts.shared:
            offers = (offered(facts, kind) for kind in (*facts.replicas, GPU))
            told.update(evidence for evidence in offers if evidence is not None)
        return told

    def _recognise(self, node: str, origin: str, evidence: Evidence | None) -> None:
        if evidence is not None:
            if node not in self._nodes:
                log.info("node shares its devices among pods", node=node, evidence=evidence.value)
            self._nodes.setdefault(node, {})[origin] = evidence
        elif node in self._nodes:
            self._nodes[node].pop(origin, None)
            if not self._nodes[node]:
                del self._nodes[node]


def _first(evidences: Iterable[Evidence]) -> Evidence:
    return min(evidences, key=_ORDER.__getitem__)


def _holds(track: Track, pod: Pod) -> bool:
    """The track's row proves that the pod holds the device."""
    claim = track.claim
    if claim is None or track.serves or track.superseded or track.cut:
        return False
    if track.received <= pod.born:
        return False
    return refusal(claim, pod, track.node) is None

"""Learn from scrape results which pods hold which devices, and which nodes share devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from adapter.pipeline.attribution.holdings import Holders, Holding, Holdings
from adapter.pipeline.attribution.nodecontext import ClusterContext, Stamp
from adapter.pipeline.attribution.sharing import Evidence, asks_shared, flaps, label_evidence
from adapter.pipeline.cluster.gpuresources import NVIDIA_GPU
from adapter.pipeline.cluster.nodelabels import NodeFacts
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import mismatch
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState

log = structlog.get_logger(__name__)

_ORDER: Final = {evidence: rank for rank, evidence in enumerate(Evidence)}


class Recognition:
    """What was learnt so far. Not thread-safe; a store owns it."""

    def __init__(self, cluster: ClusterContext) -> None:
        self._cluster = cluster
        self._holdings = Holdings()
        self._nodes: dict[str, dict[str, Evidence]] = {}
        """Node that shares devices -> exporter -> evidence."""
        self._exclusive: dict[str, int] = {}
        self._evidence: dict[str, tuple[Stamp, frozenset[Evidence]]] = {}
        """Node -> evidence in its labels and its pods' specs, with the stamp that it depends on."""

    @property
    def exclusive(self) -> Mapping[str, int]:
        """Exporter -> number of its pods' devices, if none of its nodes shares a device."""
        return self._exclusive

    def view(self) -> Holders:
        """Return device -> the pods that samples named for it; immutable."""
        return self._holdings.view()

    def by_evidence(self) -> Counter[str]:
        """Return evidence -> number of nodes that are known to share devices because of it."""
        counts = Counter({evidence.value: 0 for evidence in Evidence})
        counts.update(_first(by_exporter.values()).value for by_exporter in self._nodes.values())
        return counts

    def note(self, exporter: ExporterState, nodes: Iterable[str]) -> None:
        """Learn from an exporter's state after a scrape result.

        Args:
            exporter: its state.
            nodes: the nodes whose devices it reports.
        """
        evidence: dict[str, set[Evidence]] = {
            node: set(self._known_evidence(node)) for node in nodes
        }
        devices: set[tuple[PodRef, str]] = set()
        for ref, all_series in exporter.pods.items():
            pod = self._cluster.pods.get(*ref)
            if pod is None or pod.node not in evidence:
                continue
            for series in all_series:
                if series.received != exporter.received or not _holds(series, pod):
                    continue
                self._record_holding(series, Holding(ref, pod.uid, series.origin))
                devices.add((ref, series.device.id))
                if series.shared:
                    evidence[pod.node].add(Evidence.ROWS)
                elif self._flaps(series.device.id, pod.node):
                    evidence[pod.node].add(Evidence.FLAPPING)
        self._exclusive.pop(exporter.origin, None)
        if devices and evidence and not any(evidence.values()):
            self._exclusive[exporter.origin] = len(devices)
        for node, evidences in evidence.items():
            self._recognise(node, exporter.origin, _first(evidences) if evidences else None)

    def forget_exporter(self, origin: str) -> None:
        """Forget an exporter that the store has dropped."""
        self._exclusive.pop(origin, None)

    def forget(self, device: str) -> None:
        """Forget a device that no exporter reports any more."""
        self._holdings.forget(device)

    def forget_node(self, node: str, origin: str) -> None:
        """Forget what the exporter reported about a node's devices."""
        self._evidence.pop(node, None)
        self._recognise(node, origin, None)

    def _record_holding(self, series: DeviceSeries, holding: Holding) -> None:
        assignment = series.assignment
        certain = assignment is not None and bool(assignment.uid)
        holdings = self._holdings.of(series.device.id)
        if holding in holdings:
            return
        gone = tuple(
            other for other in holdings if other.pod != holding.pod and not self._lives(other)
        )
        if gone:
            self._holdings.drop(series.device.id, gone)
        self._holdings.record(series.device.id, holding, certain=certain)

    def _flaps(self, device: str, node: str) -> bool:
        holdings = self._holdings.of(device)
        return len(holdings) > 1 and flaps(held for held in holdings if self._lives(held, node))

    def _lives(self, holding: Holding, node: str | None = None) -> bool:
        pod = self._cluster.pods.get(*holding.pod)
        if pod is None or pod.uid != holding.uid or pod.finished:
            return False
        return node is None or (pod.node == node and pod.phase == "Running" and not pod.deleting)

    def _known_evidence(self, node: str) -> frozenset[Evidence]:
        """Return the evidence in the node's labels and its pods' specs, regardless of samples."""
        stamp, cached = self._cluster.stamp(node), self._evidence.get(node)
        if cached is None or cached[0] != stamp:
            cached = self._evidence[node] = (stamp, frozenset(self._find_evidence(node)))
        return cached[1]

    def _find_evidence(self, node: str) -> set[Evidence]:
        evidences: set[Evidence] = set()
        pods = self._cluster.pods.on_node(node)
        for pod in pods:
            if not pod.finished and asks_shared(pod):
                evidences.add(Evidence.GROUP if pod.gpu_groups else Evidence.SPEC)
        facts: NodeFacts = self._cluster.facts(node)
        if facts.shared:
            offers = (label_evidence(facts, kind) for kind in (*facts.replicas, NVIDIA_GPU))
            evidences.update(evidence for evidence in offers if evidence is not None)
        return evidences

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


def _holds(series: DeviceSeries, pod: Pod) -> bool:
    """Return whether the device series proves that the pod holds the device."""
    assignment = series.assignment
    if assignment is None or series.serves or series.superseded or series.cut:
        return False
    if series.received <= pod.born:
        return False
    return mismatch(assignment, pod, series.node) is None

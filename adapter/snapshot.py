"""What was known at one moment, and the answers it gives.

Immutable, but for what it remembers of its own answers: a reading stays the same object
until a batch of its exporter, a change of its pod or its age ends it, so that whoever
renders it renders it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from adapter.attribution import (
    NO_ROWS,
    UNKNOWN_METRIC,
    Outcome,
    Question,
    node_outcome,
    pod_outcome,
)
from adapter.catalog import Catalog
from adapter.cluster.pod import Pod, PodRef
from adapter.exporter import Exporter, Track
from adapter.reading import Absence, Reading
from adapter.telemetryoptions import TelemetryOptions
from apiservice.selector import Selector

_MAX_ANSWERS: Final = 4096
"""Answers remembered per exporter: selectors come from users."""


class Pods(Protocol):
    """The pods on hand."""

    def get(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name, or None."""


class _Remembered(NamedTuple):
    outcome: Outcome
    pod: Pod | None
    since: float
    until: float

    def answers(self, pod: Pod | None, now: float) -> bool:
        return self.pod is pod and self.since <= now < self.until


class Snapshot:
    """Everything known at one moment."""

    def __init__(
        self,
        *,
        version: int,
        catalog: Catalog,
        options: TelemetryOptions,
        pods: Pods,
        exporters: Mapping[str, Exporter],
        holders: Mapping[PodRef, tuple[str, ...]],
        contested: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.version = version
        self._catalog = catalog
        self._options = options
        self._pods = pods
        self._exporters = exporters
        self._holders = holders
        self._contested = contested
        """Devices of which several exporters speak -> those exporters."""
        self._own: dict[object, object] = {}
        """Answers that rest on several exporters: they end with the snapshot."""
        self._nodes: Mapping[str, tuple[Track, ...]] | None = None

    def pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """A metric's value for a pod, or why there is none."""
        return self.explain_pod(pod, metric, selector, now).value

    def explain_pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Outcome:
        """The same, with the devices that were left out and why."""
        origins = self._holders.get(pod.ref)
        if origins is None:
            known = metric in self._catalog.metrics
            return Outcome(Absence(NO_ROWS if known else UNKNOWN_METRIC))
        memory = self._memory(pod.ref, origins)
        key = (pod.ref, metric) if selector.empty else (pod.ref, metric, selector)
        found = memory.get(key)
        if isinstance(found, _Remembered) and found.answers(pod, now):
            return found.outcome
        outcome = self._pod_outcome(pod, origins, metric, selector, now)
        _remember(memory, key, pod, outcome, now)
        return outcome

    def node(self, node: str, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """A metric's value over all devices of a node, or why there is none."""
        found = self._catalog.metrics.get(metric)
        if found is None:
            return Absence(UNKNOWN_METRIC)
        key = ("node", node, metric, selector)
        remembered = self._own.get(key)
        if isinstance(remembered, _Remembered) and remembered.answers(None, now):
            return remembered.outcome.value
        tracks = self._by_node().get(node, ())
        outcome = node_outcome(tracks, Question(found, selector, self._options, now))
        _remember(self._own, key, None, outcome, now)
        return outcome.value

    def nodes(self) -> Sequence[str]:
        """Nodes that devices are known on, sorted."""
        return sorted(self._by_node())

    def ages(self, now: float) -> Mapping[str, float]:
        """Exporter -> seconds since its last batch."""
        return {origin: now - e.received for origin, e in self._exporters.items()}

    def _memory(self, ref: PodRef, origins: tuple[str, ...]) -> dict[object, object]:
        """Where answers about a pod live: with the one exporter that they rest on, if any."""
        exporter = self._exporters[origins[0]]
        if len(origins) > 1:
            return self._own
        if self._contested and any(t.device.id in self._contested for t in exporter.pods[ref]):
            return self._own
        return exporter.answers

    def _pod_outcome(
        self, pod: Pod, origins: tuple[str, ...], metric: str, selector: Selector, now: float
    ) -> Outcome:
        found = self._catalog.metrics.get(metric)
        if found is None:
            return Outcome(Absence(UNKNOWN_METRIC))
        tracks = [t for origin in origins for t in self._exporters[origin].pods[pod.ref]]
        rivals = self._rivals(pod.ref, tracks) if self._contested else None
        return pod_outcome(tracks, pod, Question(found, selector, self._options, now), rivals)

    def _rivals(self, ref: PodRef, tracks: Sequence[Track]) -> dict[str, float]:
        rivals: dict[str, float] = {}
        for device in {track.device.id for track in tracks} & self._contested.keys():
            for origin in self._contested[device]:
                for other in self._exporters[origin].devices[device]:
                    if other.claim is not None and other.claim.pod != ref and not other.shared:
                        rivals[device] = max(rivals.get(device, 0.0), other.received)
        return rivals

    def _by_node(self) -> Mapping[str, tuple[Track, ...]]:
        if self._nodes is None:
            nodes: dict[str, list[Track]] = {}
            for exporter in self._exporters.values():
                for track in exporter.tracks.values():
                    nodes.setdefault(self._place(track), []).append(track)
            nodes.pop("", None)
            self._nodes = {node: tuple(tracks) for node, tracks in nodes.items()}
        return self._nodes

    def _place(self, track: Track) -> str:
        """The node of a device: known for certain, its pod's, or by the row's own words."""
        if track.node:
            return track.node
        pod = self._pods.get(*track.claim.pod) if track.claim is not None else None
        return pod.node if pod is not None and pod.holds_gpu and pod.node else track.host


def _remember(
    memory: dict[object, object], key: object, pod: Pod | None, outcome: Outcome, now: float
) -> None:
    value = outcome.value
    until = value.expires if isinstance(value, Reading) else float("inf")
    if len(memory) < _MAX_ANSWERS:
        memory[key] = _Remembered(outcome, pod, now, until)

"""How pods are given their devices: exactly, as a copy, as a part, or not at all.

For the adapter's own metrics: the same knowledge that answers rest on, without the values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import Final

from adapter.attribution.nodecontext import Places, nodes_of
from adapter.attribution.reading import Attribution
from adapter.attribution.sharing import NodeSharing, Share
from adapter.attribution.split import Given, Place, given
from adapter.catalog.metric import Metric, Sample
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import refusal
from adapter.devices.series import Track
from adapter.devices.state import Exporter

LEFT_OUT: Final = "left_out"
"""The device is shared and the policy gives the pod nothing of it, or nothing tells which of
several shared devices is the pod's."""
_ANY: Final = 1.0


def attributions(
    exporters: Iterable[Exporter], places: Places, metric: Metric
) -> Generator[None, None, Counter[str]]:
    """Ways -> devices, once per pod that has or shares them.

    A generator, because a big fleet takes half a second: whoever counts pauses between the
    steps (:mod:`apiservice.runtime.steps`).

    Args:
        exporters: whose pods are counted, and those that share a device with them.
        places: what is known about where pods run.
        metric: whose way is asked for.
    """
    count = _Count(places, metric)
    held = tuple(exporters)
    nodes: set[str] = set()
    for exporter in held:
        nodes.update(nodes_of(exporter, places.sites))
        yield
        for ref, tracks in exporter.pods.items():
            pod = places.sites.pods.get(*ref)
            if pod is not None:
                count.named(pod, tracks)
                yield
    for node in nodes:
        count.sharers(node)
        yield
    return count.ways()


class _Count:
    """The pairs of pod and device that were met."""

    def __init__(self, places: Places, metric: Metric) -> None:
        self._places = places
        self._metric = metric
        self._ways: dict[tuple[PodRef, str], str] = {}
        self._unplaced: set[PodRef] = set()

    def named(self, pod: Pod, tracks: Sequence[Track]) -> None:
        """A pod that an exporter's rows name."""
        place: Place | None = None
        for track in tracks:
            claim = track.claim
            if claim is None or track.serves or track.superseded or track.cut:
                continue
            if track.received <= pod.born or refusal(claim, pod, track.node) is not None:
                continue
            if place is None:
                place, _ = self._places.pod(pod, tracks)
            key = (pod.ref, track.device.id)
            if self._ways.get(key) != Attribution.EXACT:
                self._ways[key] = self._way(pod, track, place)

    def sharers(self, node: str) -> None:
        """Pods that share a node's devices, whether or not a row names them now."""
        sharing: NodeSharing = self._places.sharing(node)
        for device, share in sharing.devices.items():
            for pod in share.pods:
                if (pod.ref, device) not in self._ways:
                    place = self._places.pod(pod, ())[0]
                    self._ways[pod.ref, device] = self._part(pod, share.whole, share, place)
        self._unplaced |= sharing.unplaced

    def ways(self) -> Counter[str]:
        """The result, every way in it."""
        counts = Counter(dict.fromkeys((*(way.value for way in Attribution), LEFT_OUT), 0))
        counts.update(self._ways.values())
        counts[LEFT_OUT] += len(self._unplaced)
        return counts

    def _way(self, pod: Pod, track: Track, place: Place) -> str:
        share = place.sharing.of.get(pod.ref, {}).get(track.device.id)
        if track.own or track.per_process or (share is None and not track.shared):
            return Attribution.EXACT.value
        return self._part(pod, track, share, place)

    def _part(self, pod: Pod, track: Track | None, share: Share | None, place: Place) -> str:
        if track is None:
            return LEFT_OUT
        part = given(self._metric, Sample(_ANY, 0.0, "", ""), track, share, pod, place)
        return part.how.value if isinstance(part, Given) else LEFT_OUT

"""Count how devices are attributed to pods: exact, copied, split, derived, or left out.

The counts are for the adapter's own metrics. They use the same data as answers, without values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import Final

from adapter.pipeline.attribution.nodecontext import NodeContexts, nodes_of
from adapter.pipeline.attribution.reading import Attribution
from adapter.pipeline.attribution.sharing import NodeSharing, Share
from adapter.pipeline.attribution.split import Allocation, NodeContext, allocation
from adapter.pipeline.catalog.metric import DeviceValue, Metric
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import mismatch
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState

LEFT_OUT: Final = "left_out"
"""Count key of a device whose value is left out for the pod.

Either the device is shared and the policy gives the pod nothing, or the pod holds one of several
shared devices and it is not known which.
"""
_ANY: Final = 1.0


def attributions(
    exporters: Iterable[ExporterState], contexts: NodeContexts, metric: Metric
) -> Generator[None, None, Counter[str]]:
    """Return attribution -> devices, counted once per pod that has or shares them.

    This is a generator because a large cluster takes half a second: the caller pauses between
    the steps (:mod:`apiservice.runtime.steps`).

    Args:
        exporters: the exporters whose pods are counted, and those that share a device with them.
        contexts: what is known about the nodes.
        metric: the metric whose attribution is counted.
    """
    count = _Count(contexts, metric)
    all_exporters = tuple(exporters)
    nodes: set[str] = set()
    for exporter in all_exporters:
        nodes.update(nodes_of(exporter, contexts.cluster))
        yield
        for ref, all_series in exporter.pods.items():
            pod = contexts.cluster.pods.get(*ref)
            if pod is not None:
                count.add_named(pod, all_series)
                yield
    for node in nodes:
        count.add_sharers(node)
        yield
    return count.ways()


class _Count:
    """Collects the pairs of pod and device."""

    def __init__(self, contexts: NodeContexts, metric: Metric) -> None:
        self._contexts = contexts
        self._metric = metric
        self._ways: dict[tuple[PodRef, str], str] = {}
        self._unplaced: set[PodRef] = set()

    def add_named(self, pod: Pod, all_series: Sequence[DeviceSeries]) -> None:
        """Count a pod that an exporter's samples name."""
        context: NodeContext | None = None
        for series in all_series:
            assignment = series.assignment
            if assignment is None or series.serves or series.superseded or series.cut:
                continue
            if series.received <= pod.born or mismatch(assignment, pod, series.node) is not None:
                continue
            if context is None:
                context, _ = self._contexts.pod(pod, all_series)
            key = (pod.ref, series.device.id)
            if self._ways.get(key) != Attribution.EXACT:
                self._ways[key] = self._way(pod, series, context)

    def add_sharers(self, node: str) -> None:
        """Count the pods that share a node's devices, whether or not a sample names them now."""
        sharing: NodeSharing = self._contexts.sharing(node)
        for device, share in sharing.devices.items():
            for pod in share.pods:
                if (pod.ref, device) not in self._ways:
                    context = self._contexts.pod(pod, ())[0]
                    self._ways[pod.ref, device] = self._part(pod, share.whole, share, context)
        for ref, its in sharing.sole.items():
            for series in its:
                self._ways.setdefault((ref, series.device.id), Attribution.DERIVED.value)
        self._unplaced |= sharing.unplaced

    def ways(self) -> Counter[str]:
        """Return the counts, with a 0 for each attribution that did not occur."""
        counts = Counter(dict.fromkeys((*(way.value for way in Attribution), LEFT_OUT), 0))
        counts.update(self._ways.values())
        counts[LEFT_OUT] += len(self._unplaced)
        return counts

    def _way(self, pod: Pod, series: DeviceSeries, context: NodeContext) -> str:
        share = context.sharing.shares_of(pod).get(series.device.id)
        if series.own or series.per_process or (share is None and not series.shared):
            return Attribution.EXACT.value
        return self._part(pod, series, share, context)

    def _part(
        self, pod: Pod, series: DeviceSeries | None, share: Share | None, context: NodeContext
    ) -> str:
        if series is None:
            return LEFT_OUT
        part = allocation(self._metric, DeviceValue(_ANY, 0.0, "", ""), series, share, pod, context)
        return part.how.value if isinstance(part, Allocation) else LEFT_OUT

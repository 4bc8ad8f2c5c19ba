"""The latencies that the pages of an HPA's servers show, over all of a recording.

Increases of buckets are added over pods and time, and a quantile is computed last, from the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from adapter.pipeline.attribution.latencies import counted_servers
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.increases import Increase, Quantile, sum_increases
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.promise import LATENCIES
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.labels.selector import EVERYTHING

SPAN: Final = 900.0
"""Seconds of the spans of which the worst is named."""
SHARE: Final = 0.9
"""The quantile that is stated of what the replicas keep."""
_TWO_PAGES: Final = 0.001
"""Seconds of a window that has the last two pages, and no other."""


def _of_two_pages(latency: Latency) -> Metric:
    metric = built_in().metrics[f"{latency}_mean"]
    return replace(metric, name=f"{latency} between two pages", window=_TWO_PAGES)


PAGE_METRICS: Final[Mapping[Latency, Metric]] = MappingProxyType(
    {latency: _of_two_pages(latency) for latency in LATENCIES.values()}
)
"""Latency -> what its histogram counted between the last two pages of a server. A window of a
minute does not end where the next one begins, so windows would leave out some requests."""


class RecordedLatency(NamedTuple):
    """One latency, over the recorded time."""

    key: str
    """As a promise names it: ``ttft``."""
    whole: Increase
    """Of all servers and all of the time; in seconds. The time between tokens counts tokens, unless
    the server counts its mean over a request."""
    quantile: Quantile | None
    """The p90; None if the values are too few."""
    worst: WorstSpan | None
    """None if every span has too few values."""


class WorstSpan(NamedTuple):
    """The quarter of an hour with the highest p90."""

    start: float
    """Epoch seconds."""
    values: float
    """That the histogram counted."""
    quantile: Quantile


class ServedLatencies:
    """Adds up what the servers of one HPA count."""

    def __init__(self) -> None:
        self.least = 1
        """Values without which there is no quantile (``values.min_requests``)."""
        self.series: set[str] = set()
        """Names of the histograms on the pages."""
        self._spans: dict[Latency, dict[float, Increase]] = {}
        """Start of each span in epoch seconds -> what was counted in it."""
        self._until: dict[tuple[PodRef, str, Latency], float] = {}
        """Pod, its server and latency -> end of the last increase that was taken."""

    def take(self, pods: Iterable[Pod], snapshot: Snapshot, now: float) -> None:
        """Take what the newest pages of some pods count more than the ones before.

        Args:
            snapshot: of a store whose catalogue has :data:`PAGE_METRICS`.
            now: epoch seconds.
        """
        self.least = snapshot.options.min_requests
        for pod in pods:
            for latency, metric in PAGE_METRICS.items():
                for part in counted_servers(
                    snapshot.pod(pod, metric.name, EVERYTHING, now, keep=False)
                ):
                    if part.increase is not None and part.increase.bounds:
                        self.series.add(part.formula)
                        self._add((pod.ref, part.device, latency), part.increase)

    def _add(self, of: tuple[PodRef, str, Latency], increase: Increase) -> None:
        if increase.end <= self._until.get(of, 0.0):
            return
        self._until[of] = increase.end
        spans = self._spans.setdefault(of[2], {})
        start = increase.end // SPAN * SPAN
        earlier = spans.get(start)
        whole = increase if earlier is None else sum_increases((earlier, increase))
        assert whole is not None  # noqa: S101 - a sum of something
        spans[start] = whole

    def whole(self, latency: Latency) -> Increase | None:
        """Return all that was counted of a latency; None if no page has its histogram."""
        return sum_increases(self._spans.get(latency, {}).values())

    def latencies(self) -> list[RecordedLatency]:
        """Return the latencies that the pages show, in the order in which promises name them."""
        shown = []
        for key, latency in LATENCIES.items():
            whole = self.whole(latency)
            if whole is not None:
                quantile = whole.quantile(SHARE) if whole.count >= self.least else None
                shown.append(RecordedLatency(key, whole, quantile, self._worst(latency)))
        return shown

    def _worst(self, latency: Latency) -> WorstSpan | None:
        spans = [
            WorstSpan(start, span.count, quantile)
            for start, span in self._spans[latency].items()
            if span.count >= self.least and (quantile := span.quantile(SHARE)) is not None
        ]
        return max(spans, key=_badness, default=None)


def _badness(span: WorstSpan) -> tuple[bool, float, float]:
    """Return what the worst span has most of; of two that differ by rounding, values decide."""
    return span.quantile.beyond, round(span.quantile.value, 6), span.values

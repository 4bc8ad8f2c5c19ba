"""Look for defects in the events of a recording, while they are read, and in its syncs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from adapter.figures import age
from adapter.hpa import HpaSpec, MetricKind
from adapter.pipeline.catalog import Catalog, built_in
from adapter.pipeline.catalog.formulas import Rated, Unless
from adapter.pipeline.catalog.metric import Kind
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.server.recording.events import Begun, Event, Missed, PageRead, PodSeen, Stretch
from adapter.server.recording.settings import restore_settings
from adapter.server.serve.ownmetrics import rows
from adapter.tools.replay.defects import (
    CLOCK,
    NO_PODS,
    NO_VALUE,
    NOT_KNOWN,
    OTHER_NAME,
    RESET,
    SATURATED_TIME,
    SILENT,
    SPARSE,
    Defects,
    is_covered,
)
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.neededseries import device_series, queue_series
from adapter.tools.replay.outcome import GAP
from adapter.tools.replay.syncs import RecordedSync

_APART: Final = 2.5
"""Usual distances of pages beyond which one is missing."""
_LEARNT: Final = 16
"""Distances that say what is usual, if the settings do not."""
_LEVEL: Final = 4
"""Long distances one after the other that show few samples rather than gaps."""
_SET_BACK: Final = 2.0
"""Seconds by which an event may be before the last one: pages are written as they arrive."""
_BEHIND: Final = 5.0
"""Seconds by which a pod may be created after it was seen: two machines' clocks differ a little."""
_UPGRADE: Final = 300.0
"""Seconds from the beginning after which an exporter of its own kind is not one of a mixed fleet,
but one that was upgraded, and has a new address."""
_MOST_ORIGINS: Final = 1 << 14
_STARTING: Final = frozenset((Mismatch.NOT_RUNNING, Mismatch.NOT_READY, Mismatch.FINISHED))
"""Reasons of pods that are not expected to have a value."""


@dataclass(slots=True)
class _Exporter:
    """What is known of one exporter."""

    time: float | None
    """Of the last page; None if nothing is known of the time before."""
    spellings: dict[str, str] = field(default_factory=dict)
    """Field -> the name on the last page."""
    counters: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    distances: list[float] = field(default_factory=list)
    usual: float = 0.0
    wide: list[tuple[float, float]] = field(default_factory=list)
    """The first of the last pages that were far apart: their times, two by two."""
    count: int = 0
    """All pages that were far apart, one after the other."""


class Scrutiny:
    """Finds what is wrong with the pages that are about an HPA's namespace."""

    def __init__(self, spec: HpaSpec, defects: Defects) -> None:
        self._spec = spec
        self._defects = defects
        self._last = 0.0
        self._first: float | None = None
        """When the first exporter was read."""
        self._spellings: dict[str, set[str]] = {}
        """Field -> the names that any exporter wrote."""
        self._exporters: dict[str, _Exporter] = {}
        self._names: dict[str, str] = {}
        """Series of the HPA's metrics -> their field."""
        self._counters: frozenset[str] = frozenset()
        self._interval = 0.0
        self._queue: frozenset[str] = frozenset()
        """Series of requests that run on servers."""
        self.servers = False
        """Set when a page of a server, or of a store that has such pages, was read."""

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events, without those that only state a defect."""
        for event in events:
            if isinstance(event, Missed):
                self._defects.add(event.stretch)
                continue
            if event.time < self._last - _SET_BACK:
                by = age(self._last - event.time)
                self._defects.add(Stretch(event.time, self._last, CLOCK, f"by {by}"))
                self._interrupt()
            self._last = event.time
            if isinstance(event, Begun):
                self._interrupt()
                self._begin(event)
            elif isinstance(event, PageRead):
                self._page(event.result)
            elif isinstance(event, PodSeen):
                self._pod(event)
            yield event
        self._interrupt()

    def _interrupt(self) -> None:
        """Nothing is known of the time until the next pages."""
        for origin, exporter in self._exporters.items():
            self._narrow(origin, exporter)
            exporter.time = None

    def _begin(self, event: Begun) -> None:
        settings = restore_settings(event.settings)
        shipped = built_in()
        catalog = shipped.extended(*rows(settings.metrics, shipped))
        own_series = set(device_series(catalog, self._spec, cross_checks=False).own)
        self._names = {
            spelling.series: spelling.field.name
            for spelling in catalog.spellings.values()
            if spelling.series in own_series and spelling.series not in catalog.label_variants
        }
        self._counters = _counters(catalog, self._spec)
        self._queue = frozenset(queue_series(catalog))
        stored = settings.source.kind == "prometheus"
        self._interval = settings.source.prometheus.scrape_interval if stored else 0.0

    def _pod(self, event: PodSeen) -> None:
        pod = event.pod
        by = pod.born - event.time
        if by > _BEHIND and pod.ref.namespace == self._spec.namespace:
            about = f"{age(by)} behind the cluster's, by the creation of pod {pod.ref.name}"
            self._defects.add(Stretch(event.time, pod.born, CLOCK, about))

    def _page(self, page: ScrapeResult) -> None:
        if not self.servers:
            self.servers = any(sample.name in self._queue for sample in page.samples)
        namespace = self._spec.namespace
        samples = [
            sample
            for sample in page.samples
            if sample.name in self._names
            and ((page.pod or ("",))[0] == namespace or namespace in sample.labels.values())
        ]
        exporter = self._exporters.get(page.origin)
        if exporter is None:
            if samples and len(self._exporters) < _MOST_ORIGINS:
                exporter = _Exporter(
                    page.received, self._field_spellings(samples), usual=self._interval
                )
                self._exporters[page.origin] = exporter
                self._note_new_exporter(page, exporter)
            return
        self._note_distance(page, exporter)
        if samples:
            self._note_renames(page, exporter, samples)
            self._note_resets(page, exporter, samples)
        exporter.time = page.received

    def _note_new_exporter(self, page: ScrapeResult, exporter: _Exporter) -> None:
        """Note the names of a new exporter, which may be an old one at a new address."""
        self._first = page.received if self._first is None else self._first
        for name, text in exporter.spellings.items():
            before = self._spellings.setdefault(name, set())
            if before and text not in before and page.received - self._first > _UPGRADE:
                about = f"{page.origin}, a new address: {', '.join(sorted(before))}, then {text}"
                self._note(exporter, page, OTHER_NAME, about)
            before.add(text)

    def _field_spellings(self, samples: Iterable[Sample]) -> dict[str, str]:
        return {self._names[sample.name]: sample.name for sample in samples}

    def _note_distance(self, page: ScrapeResult, exporter: _Exporter) -> None:
        if exporter.time is None:
            return
        apart = page.received - exporter.time
        if not exporter.usual:
            exporter.distances.append(apart)
            if len(exporter.distances) == _LEARNT:
                exporter.usual = median(exporter.distances)
            return
        if apart <= _APART * exporter.usual:
            self._narrow(page.origin, exporter)
            return
        exporter.count += 1
        if exporter.count <= _LEVEL:
            exporter.wide.append((exporter.time, page.received))

    def _narrow(self, origin: str, exporter: _Exporter) -> None:
        """The pages are as far apart as usual again, or there are no more."""
        if exporter.count >= _LEVEL and exporter.time is not None:
            start = exporter.wide[0][0]
            apart = (exporter.time - start) / exporter.count
            about = f"{origin}: {age(apart)} apart, expected {age(exporter.usual)}"
            self._defects.add(Stretch(start, exporter.time, SPARSE, about))
        else:
            for start, end in exporter.wide:
                self._defects.add(Stretch(start, end, SILENT, origin))
        exporter.wide, exporter.count = [], 0

    def _note_renames(
        self, page: ScrapeResult, exporter: _Exporter, samples: Iterable[Sample]
    ) -> None:
        names = {sample.name for sample in samples}
        for name, text in self._field_spellings(samples).items():
            before = exporter.spellings.get(name)
            if before is not None and before not in names:
                about = f"{page.origin}: {before}, then {text}"
                self._note(exporter, page, OTHER_NAME, about)
            if before is None or before not in names:
                exporter.spellings[name] = text
                self._spellings.setdefault(name, set()).add(text)

    def _note(self, exporter: _Exporter, page: ScrapeResult, reason: str, about: str) -> None:
        start = page.received if exporter.time is None else exporter.time
        self._defects.add(Stretch(start, page.received, reason, about))

    def _note_resets(
        self, page: ScrapeResult, exporter: _Exporter, samples: Iterable[Sample]
    ) -> None:
        if not self._counters:
            return
        counters = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for sample in samples
            if self._names[sample.name] in self._counters
        }
        fallen = {
            key[0] for key, value in counters.items() if value < exporter.counters.get(key, 0)
        }
        for name in sorted(fallen):
            about = f"{page.origin}: {name}"
            self._note(exporter, page, RESET, about)
        exporter.counters = counters


def _counters(catalog: Catalog, spec: HpaSpec) -> frozenset[str]:
    """Return the fields of the HPA's metrics that only grow."""
    counters: set[str] = set()
    for wanted in spec.metrics:
        metric = catalog.metrics.get(wanted.name)
        if metric is None or wanted.kind is not MetricKind.PODS:
            continue
        for formula in metric.formulas:
            read = formula.formula if isinstance(formula, Unless) else formula
            if metric.kind is Kind.RATE or isinstance(read, Rated):
                counters.update(formula.fields)
    return frozenset(counters)


def note_syncs(
    syncs: Sequence[RecordedSync], demands: Sequence[RecordedDemand], period: float, into: Defects
) -> None:
    """Add what the syncs lack.

    Args:
        syncs: by time.
        demands: of each sync.
        period: seconds between two syncs.
        into: also has the defects that the events show.
    """
    event_defects = tuple(into)
    for before, after in pairwise(syncs):
        if after.time - before.time > GAP * period:
            gap = Stretch(before.time, after.time, NOT_KNOWN, "")
            if not is_covered(gap, event_defects):
                into.add(gap)
    for sync, demand, end in zip(syncs, demands, _ends(syncs, period), strict=True):
        for reason in _reasons(sync, demand):
            into.add(Stretch(sync.time, end, reason, ""))


def saturated_times(
    syncs: Sequence[RecordedSync], demands: Sequence[RecordedDemand], period: float
) -> Defects:
    """Return when the pods did as much as they can, so that the demand may have been higher."""
    stretches = Defects()
    for demand, end in zip(demands, _ends(syncs, period), strict=True):
        if demand.saturated:
            stretches.add(Stretch(demand.time, end, SATURATED_TIME, ""))
    return stretches


def _ends(syncs: Sequence[RecordedSync], period: float) -> Iterator[float]:
    """Yield until when each sync's state is counted."""
    for before, after in pairwise(syncs):
        yield min(after.time, before.time + GAP * period)
    yield syncs[-1].time


def _reasons(sync: RecordedSync, demand: RecordedDemand) -> Iterator[str]:
    if not any(not pod.deleting and not pod.finished for pod in sync.pods):
        yield NO_PODS
    elif demand.total is None:
        yield NO_VALUE
    for reason in sorted(set(sync.absent) - _STARTING):
        yield str(reason)

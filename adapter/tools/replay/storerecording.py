"""A store with the Prometheus query API as a recording."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Final

from adapter.hpa import HpaSpec
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.sources.errors import SourceError
from adapter.server.recording.events import (
    Begun,
    Event,
    HpaSeen,
    Losses,
    Missed,
    PageRead,
    PodSeen,
    RecordingError,
    Stretch,
)
from adapter.tools.replay.neededseries import describe_missing_series
from adapter.tools.replay.storedpods import StoredPods, StoredStatus
from adapter.tools.replay.storequeries import StoredSeries, StoredSpan, StoreQueries
from adapter.tools.replay.storespans import SpanReader, StoreRange

SPAN: Final = 3600.0
"""Seconds of one query, at most."""
_SHORTEST: Final = 60.0
"""Seconds of one query, at least: a store that cannot answer this is too small."""
LONGEST: Final = 92 * 86_400.0
"""Seconds of a replay, at most."""
MOST_SAMPLES: Final = 200_000_000
"""Samples of a replay, at most."""
_HALVED: Final = frozenset({"too_large", "timeout", "query", "truncated"})
"""Failures that a shorter span may not have."""
_LATE: Final = 2
"""Time-outs in succession after which the store counts as too slow."""
NO_STATE: Final = "no_cluster_state"
PARTIAL: Final = "partial_answer"
_GAP: Final = 4
"""Scrapes of kube-state-metrics that may be missing before its state is not known any more."""
_LEAST_GAP: Final = 120.0


def pages(all_series: Iterable[StoredSeries], scrape_interval: float) -> Iterator[PageRead]:
    """Yield the pages of all exporters, in no order.

    Args:
        all_series: the exporters' series in one span.
        scrape_interval: seconds between two scrapes.
    """
    of: defaultdict[str, list[StoredSeries]] = defaultdict(list)
    for row in all_series:
        of[row.origin].append(row)
    for origin, rows in of.items():
        by_time = _by_time(rows)
        if len(by_time) > 2 * max(len(row.points) for row in rows):
            by_time = _by_interval(by_time, scrape_interval)
        for samples in by_time.values():
            received = max(sample.time for sample in samples)
            yield PageRead(received, ScrapeResult(origin, None, samples, received))


def _by_time(rows: Sequence[StoredSeries]) -> dict[float, list[Sample]]:
    by_time: defaultdict[float, list[Sample]] = defaultdict(list)
    for row in rows:
        for time, value in row.points:
            by_time[time].append(Sample(row.name, row.labels, value, time))
    return by_time


def _by_interval(by_time: dict[float, list[Sample]], interval: float) -> dict[float, list[Sample]]:
    by_interval: defaultdict[float, list[Sample]] = defaultdict(list)
    for time, samples in sorted(by_time.items()):
        by_interval[time // interval].extend(samples)
    return by_interval


class StoreRecording:
    """Implements :class:`adapter.server.recording.events.Recording` for one HPA."""

    def __init__(self, wanted: StoreRange, spec: HpaSpec) -> None:
        self._wanted = wanted
        self._spec = spec
        self.losses = Losses()

    def events(self) -> Iterator[Event]:
        """See the port."""
        self.losses = Losses()
        reading = _Reading(self._wanted, self._spec, self.losses)
        with asyncio.Runner() as runner:
            try:
                yield from reading.events(runner)
            except SourceError as error:
                raise RecordingError(f"{reading.url}: {error}") from None
            finally:
                runner.run(reading.close())


class _Reading:
    """One reading of a store."""

    def __init__(self, wanted: StoreRange, spec: HpaSpec, losses: Losses) -> None:
        self._wanted = wanted
        self._spec = spec
        self._losses = losses
        try:
            self._queries = StoreQueries(wanted.options)
        except SourceError as error:
            raise RecordingError(str(error)) from None
        self.url = self._queries.url
        self._spans = SpanReader(self._queries, wanted, spec)
        self._pods = StoredPods(wanted.resources)
        self._status = StoredStatus(spec)
        self._span = SPAN
        self._samples = 0
        self._state: float | None = None
        """When kube-state-metrics was scraped last."""
        self._usual = 0.0
        """Seconds between two such scrapes."""
        self._waiting: list[Event] = []
        """Events after the last known status: it may have changed before them."""
        self._found: set[str] = set()
        self._partial = ""

    async def close(self) -> None:
        await self._queries.close()

    def events(self, runner: asyncio.Runner) -> Iterator[Event]:
        start, end, late = self._wanted.start, self._wanted.end, 0
        while start < end:
            until = min(start + self._span, end)
            try:
                spans = runner.run(self._spans.read(start, until))
            except SourceError as error:
                late = late + 1 if error.reason == "timeout" else 0
                if error.reason not in _HALVED or self._span <= _SHORTEST or late > _LATE:
                    raise
                self._span /= 2
                continue
            late = 0
            yield from self._take(spans, start, until)
            start = until
        yield from self._flush(None)
        self._complain()

    def _take(self, spans: Mapping[str, StoredSpan], start: float, end: float) -> Iterator[Event]:
        """Yield the events of a span, in the order of time."""
        for name, span in spans.items():
            self._samples += sum(len(row.points) for row in span.all_series)
            if span.all_series:
                self._found.add(name)
            self._found.update(row.name for row in span.all_series)
            for reason, times in span.rejects.items():
                self._losses.lines[reason] = self._losses.lines.get(reason, 0) + times
        if self._samples > MOST_SAMPLES:
            raise RecordingError(
                f"{self.url}: more than {MOST_SAMPLES} samples: give a shorter --since, or select "
                "one cluster with source.prometheus.matchers in --config"
            )
        partial = next((span.partial for span in spans.values() if span.partial), "")
        if partial:
            self._partial = partial
            yield from self._flush(None)
            yield Missed(end, Stretch(start, end, PARTIAL, partial))
            return
        pod_series = self._spans.pods(spans)
        pods, status = pod_series, spans["hpa"].all_series
        scrapes = sorted({time for row in (*pods, *status) for time, _ in row.points})
        breaks = list(self._breaks(scrapes))
        if scrapes:
            since = scrapes[0] if self._state is None else self._state
            self._pods.owners(spans["owners"].all_series)
            self._waiting += self._pods.events(pods, status, since, breaks)
            self._waiting += self._status.events(status, breaks)
        self._waiting += self._pages(spans["devices"].all_series, scrapes)
        self._state = scrapes[-1] if scrapes else self._state
        yield from self._flush(self._status.last if status else None)

    def _breaks(self, scrapes: Sequence[float]) -> Iterator[float]:
        """Yield the times at which the state of the cluster becomes known, again."""
        apart = [after - before for before, after in pairwise(scrapes)]
        if len(apart) >= _GAP:
            self._usual = median(apart)
        last = self._state
        for time in scrapes:
            if last is None or time - last > self._patience:
                if last is not None:
                    gap = Stretch(last, time, NO_STATE, "kube-state-metrics")
                    self._waiting.append(Missed(time, gap))
                self._waiting.append(Begun(time, self._wanted.settings))
                yield time
            last = time

    @property
    def _patience(self) -> float:
        """Seconds after a scrape for which the state of the cluster counts as known."""
        return max(_LEAST_GAP, _GAP * self._usual)

    def _pages(
        self, all_series: Sequence[StoredSeries], scrapes: Sequence[float]
    ) -> Iterator[Event]:
        """Yield the pages of the times at which the state of the cluster is known."""
        times = scrapes if self._state is None else (self._state, *scrapes)
        for page in pages(all_series, self._wanted.scrape_interval):
            index = bisect_right(times, page.time)
            if index and page.time - times[index - 1] <= self._patience:
                yield page

    def _flush(self, until: float | None) -> Iterator[Event]:
        """Yield the waiting events up to a time, or all of them."""
        self._waiting.sort(key=_order)
        count = len(self._waiting)
        if until is not None:
            count = bisect_right(self._waiting, until, key=lambda event: event.time)
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        yield from ready

    def _complain(self) -> None:
        """Raise RecordingError if something that a replay needs is missing in all spans."""
        missing = describe_missing_series(self._found, self._spec, self._wanted.names)
        if missing and self._partial:
            raise RecordingError(
                f"{self.url}: answers are partial ({self._partial}), and left out: repair the store"
            )
        if missing:
            span = " to ".join(map(_minute, (self._wanted.start, self._wanted.end)))
            raise RecordingError(f"{self.url} has from {span} UTC no {missing}")


_RANKS: Final = (Missed, Begun, PodSeen, PageRead, HpaSeen)


def _order(event: Event) -> tuple[float, int]:
    return event.time, next(rank for rank, kind in enumerate(_RANKS) if isinstance(event, kind))


def _minute(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")

"""A store with the Prometheus query API as a recording."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any, Final

from adapter.hpa import HpaSpec
from adapter.recording.events import (
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
from adapter.replay import neededseries as series
from adapter.replay.neededseries import NeededSeries, ResourceNames, lacking, selector
from adapter.replay.storedpages import pages
from adapter.replay.storedpods import StoredPods, StoredStatus
from adapter.replay.storequeries import StoredSeries, StoredSpan, StoreQueries
from adapter.sources.errors import SourceError
from adapter.sources.prometheus.options import PrometheusOptions

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
NO_STATE: Final = "no_cluster_state"
PARTIAL: Final = "partial_answer"
_GAP: Final = 4
"""Scrapes of kube-state-metrics that may be missing before its state is not known any more."""
_LEAST_GAP: Final = 120.0


@dataclass(frozen=True, slots=True)
class StoreRange:
    """What to read from a store."""

    options: PrometheusOptions
    """Address, login and limits."""
    start: float
    """Epoch seconds."""
    end: float
    names: NeededSeries
    settings: Mapping[str, Any]
    """The settings that values depend on."""
    scrape_interval: float
    resources: ResourceNames
    exact: bool = False
    """Query each series by its own name."""


class StoreRecording:
    """Implements :class:`adapter.recording.events.Recording` for one HPA."""

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
        at, end = self._wanted.start, self._wanted.end
        while at < end:
            until = min(at + self._span, end)
            try:
                found = runner.run(self._read(at, until))
            except SourceError as error:
                if error.reason not in _HALVED or self._span <= _SHORTEST:
                    raise
                self._span /= 2
                continue
            yield from self._take(found, at, until)
            self._queries.turn()
            at = until
        yield from self._flush(None)
        self._complain()

    async def _read(self, start: float, end: float) -> Mapping[str, StoredSpan]:
        """Return what the store has of a span: of the HPA, the owners, the pods and the devices."""
        wanted, spec = self._wanted, self._spec
        more = wanted.options.matchers
        where = {"namespace": spec.namespace}
        hpa = selector(series.STATUS, {**where, "horizontalpodautoscaler": spec.name}, more)
        found = {
            "hpa": await self._queries.read(hpa, start, end),
            "owners": await self._queries.read(selector((series.OWNERS,), where, more), start, end),
        }
        gpus = selector((series.REQUESTS,), {"resource": wanted.resources.matcher}, more)
        found["requests"] = await self._queries.read(gpus, start, end)
        namespaces = self._namespaces(found["requests"])
        pods = selector(series.PODS, {"namespace": "|".join(namespaces)}, more)
        found["pods"] = await self._queries.read(pods, start, end)
        found["devices"] = devices = StoredSpan()
        if found["pods"].all_series:
            for expression in self._devices():
                some = await self._queries.read(expression, start, end)
                devices.all_series += some.all_series
                devices.rejects += some.rejects
                devices.partial = devices.partial or some.partial
        return found

    def _namespaces(self, requests: StoredSpan) -> list[str]:
        """Return the namespaces whose pods may share a GPU with those of the HPA."""
        rows = [row.labels for row in requests.all_series]
        own = self._spec.namespace
        nodes = {labels.get("node") for labels in rows if labels.get("namespace") == own} - {None}
        others = {labels.get("namespace", "") for labels in rows if labels.get("node") in nodes}
        return sorted({own, *others})

    def _devices(self) -> list[str]:
        names = self._wanted.names.own + self._wanted.names.others
        more = self._wanted.options.matchers
        if not self._wanted.exact:
            return [selector(names, {}, more)]
        return [selector((name,), {}, more) for name in names]

    def _take(self, found: Mapping[str, StoredSpan], start: float, end: float) -> Iterator[Event]:
        """Yield the events of a span, in the order of time."""
        for name, span in found.items():
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
        partial = next((span.partial for span in found.values() if span.partial), "")
        if partial:
            self._partial = partial
            yield from self._flush(None)
            yield Missed(end, Stretch(start, end, PARTIAL, partial))
            return
        known = self._requested(found)
        pods, status = known, found["hpa"].all_series
        scrapes = sorted({time for row in (*pods, *status) for time, _ in row.points})
        breaks = list(self._breaks(scrapes))
        if scrapes:
            since = scrapes[0] if self._state is None else self._state
            self._pods.owners(found["owners"].all_series)
            self._waiting += self._pods.events(pods, since, breaks)
            self._waiting += self._status.events(status, breaks)
        self._waiting += self._pages(found["devices"].all_series, scrapes)
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

    def _pages(self, found: Sequence[StoredSeries], scrapes: Sequence[float]) -> Iterator[Event]:
        """Yield the pages of the times at which the state of the cluster is known."""
        known = scrapes if self._state is None else (self._state, *scrapes)
        for page in pages(found, self._wanted.scrape_interval):
            index = bisect_right(known, page.time)
            if index and page.time - known[index - 1] <= self._patience:
                yield page

    def _flush(self, until: float | None) -> Iterator[Event]:
        """Yield the waiting events up to a time, or all of them."""
        self._waiting.sort(key=_order)
        count = len(self._waiting)
        if until is not None:
            count = bisect_right(self._waiting, until, key=lambda event: event.time)
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        yield from ready

    def _requested(self, found: Mapping[str, StoredSpan]) -> list[StoredSeries]:
        """Return the series of the HPA's namespace, and of the pods elsewhere that have a GPU."""
        own = self._spec.namespace
        requests = found["requests"].all_series
        holders = {row.labels.get("uid") for row in requests}
        return [
            row
            for row in (*found["pods"].all_series, *requests)
            if row.labels.get("namespace") == own or row.labels.get("uid") in holders
        ]

    def _complain(self) -> None:
        """Raise RecordingError if something that a replay needs is missing in all spans."""
        missing = lacking(self._found, self._spec, self._wanted.names)
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

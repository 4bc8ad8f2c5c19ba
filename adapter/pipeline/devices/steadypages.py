"""Take in pages later, when somebody reads their exporter's device series.

Most pages are not read: an HPA asks every 15 s and an exporter is scraped every 5 s, and many
devices have no HPA. So the numbers of a page are only checked when it arrives, and several pages
are taken in together. That is possible while a page changes nothing else: not which device and
pod it is about, no reject, and no verdict. :func:`steady` finds out what the next page must be
for that. Any other page is taken in at once, by :mod:`adapter.pipeline.devices.ingest`, which
gives the same state.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter, le, lt, mul
from typing import Final, NamedTuple
from zlib import crc32

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.layout import Layout
from adapter.pipeline.cluster.pod import Find, Pod, PodRef
from adapter.pipeline.devices.crosschecks import cross_checked
from adapter.pipeline.devices.device import Device
from adapter.pipeline.devices.idlepower import IdleRange
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.plausibility import Circumstances, idle_watts
from adapter.pipeline.devices.quickchecks import lasts, resting_bounds, working_bounds
from adapter.pipeline.devices.rejects import Rejects
from adapter.pipeline.devices.series import CLEAR, DeviceSeries, SeriesKey
from adapter.pipeline.devices.state import Contents, ExporterState, PagePlan, Row, still_reported
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import at_once

MOST_PAGES: Final = 5
"""Pages that are taken in together, at most: one fewer waits. Each takes 8 bytes for each of its
samples."""


_MOST_DEVICES: Final = 32
"""Device series of an exporter whose pages can be taken in later.

Taking them in has no pause. 64 took 3 ms, and 8 ms with a metric whose window is an hour.
"""


class _Page(NamedTuple):
    """A page whose numbers wait. Times are epoch seconds."""

    time: float
    received: float
    numbers: array[float]
    """As on the page, in the order of its samples."""


class _Places(NamedTuple):
    """Where the numbers of a device series are on a page. Equal devices share one."""

    layout: Layout
    pick: Callable[[Sequence[float]], tuple[float, ...]]
    """Picks the number of each column of the layout."""
    of: tuple[int, ...]
    """The place of each column."""


@lru_cache(maxsize=8192)
def _places(row: Row, layout: Layout) -> _Places | None:
    """Return the places of a layout's columns; None if a field has none, or more than one."""
    place_of = dict(zip(row.spellings, row.places, strict=True))
    if len(place_of) != layout.width or place_of.keys() != set(layout.columns):
        return None
    places = tuple(place_of[column] for column in layout.columns)
    return _Places(layout, _picker(places), places)


class _DeviceRow(NamedTuple):
    """One device series of the pages."""

    key: SeriesKey
    places: _Places
    resting: bool
    """No field has shown work, and the verdict stays the same until one does."""

    def of(self, series: DeviceSeries) -> _DeviceRow:
        """Return the row after another page."""
        resting = lasts(series.verdict, self.places.layout)
        return self if resting is self.resting else self._replace(resting=resting)


class _Check(NamedTuple):
    """The numbers of a page that decide whether a verdict stays what it is, and their bounds."""

    pick: Callable[[Sequence[float]], tuple[float, ...]]
    factors: tuple[float, ...]
    """From the unit of the page to that of the bounds."""
    above: tuple[float, ...]
    most: tuple[float, ...]

    def passes(self, numbers: Sequence[float]) -> bool:
        """Return whether all numbers are within their bounds."""
        picked = tuple(map(mul, self.pick(numbers), self.factors))
        return all(map(lt, self.above, picked)) and all(map(le, picked, self.most))


@lru_cache(maxsize=256)
def _check(factors: tuple[float, ...], rows: tuple[tuple[_Places, bool], ...]) -> _Check:
    """Return the check of pages with these rows. Exporters with equal devices share one.

    Args:
        factors: of each number of the page.
        rows: the places of each device series, and whether it rests.
    """
    bounds = [
        (places.of[column], above, most)
        for places, resting in rows
        for column, above, most in (resting_bounds if resting else working_bounds)(places.layout)
    ]
    at = tuple(place for place, _, _ in bounds)
    return _Check(
        _picker(at),
        tuple(map(factors.__getitem__, at)),
        tuple(above for _, above, _ in bounds),
        tuple(most for _, _, most in bounds),
    )


class _Deferred:
    """Pages that wait; see :class:`adapter.pipeline.devices.state.DeferredPages`."""

    __slots__ = ("_pages", "_steady")

    def __init__(self, steady: SteadyPages, pages: tuple[_Page, ...]) -> None:
        self._steady = steady
        self._pages = pages

    def __len__(self) -> int:
        return len(self._pages)

    def contents(self, before: Contents) -> Contents:
        return self._steady.contents(before, self._pages)

    def then(self, page: _Page) -> _Deferred:
        return _Deferred(self._steady, (*self._pages, page))


class SteadyPages:
    """What the next pages of an exporter must be so that they can be taken in later."""

    __slots__ = (
        *("_catalog", "_check", "_node", "_options", "_plan", "_pods", "_refs", "_rows", "_turn"),
    )

    def __init__(
        self,
        plan: PagePlan,
        node: str,
        named: Mapping[PodRef, Pod | None],
        rows: Sequence[_DeviceRow],
        catalog: Catalog,
        options: TelemetryOptions,
    ) -> None:
        self._plan = plan
        self._node = node
        self._refs = tuple(named)
        self._pods = tuple(named.values())
        self._catalog = catalog
        self._options = options
        self._turn = 0
        self._rows = rows
        self._check: _Check | None = None
        if options.cross_checks:
            kinds = tuple((row.places, row.resting) for row in rows)
            self._check = _check(plan.numbers.factors, kinds)

    def after(
        self, before: ExporterState, result: ScrapeResult, find: Find, rejects: Rejects
    ) -> tuple[ExporterState, SteadyPages] | None:
        """Return the state after a page, and what the pages after it must be.

        None for a page of which more than the numbers changed. A page whose numbers may change a
        verdict is taken in at once.

        Args:
            rejects: counts the fields that the page's numbers make doubtful.
        """
        samples = result.samples
        if not isinstance(samples, LayoutSamples) or samples.layout is not self._plan.layout:
            return None
        oldest = max(before.received, result.received - self._options.oldest)
        if (
            result.node != self._node
            or (result.pod is not None and result.pod != before.pod)
            or not oldest < samples.time <= result.received
            or tuple(map(find, self._refs)) != self._pods
            or self._plan.numbers.invalid(samples.values)
        ):
            return None
        page = _Page(samples.time, result.received, array("d", samples.values))
        if self._check is not None and not self._check.passes(samples.values):
            return self._judged(before, page, rejects)
        waiting = before.deferred
        if isinstance(waiting, _Deferred):
            deferred = waiting.then(page)
        else:
            deferred = _Deferred(self, (page,))
            # So that not all exporters whose first page came at the same time take turns together.
            self._turn = self._turn or crc32(before.origin.encode()) % MOST_PAGES + 1
        after = before.after(result.received, deferred)
        if len(deferred) >= self._turn:
            self._turn = MOST_PAGES
            after.contents  # noqa: B018 - takes the pages in
        return after, self

    def _judged(
        self, before: ExporterState, page: _Page, rejects: Rejects
    ) -> tuple[ExporterState, SteadyPages]:
        """Take a page in, with the verdicts on its numbers."""
        found = self._grown(before.contents, (page,), judged=False)
        idle = found.idle.copy()
        judged = at_once(cross_checked(found.all_series, before, idle, self._options, rejects))
        after = before.replaced(page.received, Contents(judged, found.reported, idle))
        rows = [row.of(judged[row.key]) for row in self._rows]
        if rows == self._rows:
            return after, self
        named = dict(zip(self._refs, self._pods, strict=True))
        return after, SteadyPages(self._plan, self._node, named, rows, self._catalog, self._options)

    def contents(self, before: Contents, pages: Sequence[_Page]) -> Contents:
        """Return the contents after more pages."""
        return self._grown(before, pages, judged=True)

    def _grown(self, before: Contents, pages: Sequence[_Page], *, judged: bool) -> Contents:
        """Return the contents after more pages.

        Args:
            judged: the verdicts on these pages are those on the pages before.
        """
        plan, options = self._plan, self._options
        times, last = [page.time for page in pages], pages[-1].received
        factors = plan.numbers.factors
        converted = [list(map(mul, page.numbers, factors)) for page in pages]
        reported = before.reported
        for page in pages:
            reported = still_reported(reported, plan.reported, page.received, options.oldest)
        names = frozenset(reported)
        learns = judged and any(row.resting for row in self._rows)
        idle = before.idle.copy() if learns else before.idle
        learnt: list[list[tuple[Device, IdleRange]]] = [[] for _ in pages]
        all_series: dict[SeriesKey, DeviceSeries] = {}
        for key, (layout, pick, _), resting in self._rows:
            earlier = before.all_series[key]
            history = earlier.history
            window = self._catalog.span(layout, options.window, options.oldest)
            if not (resting and judged):
                numbers = [number for row in converted for number in pick(row)]
                history = history.with_rows(times, numbers, window)
            else:
                for page, row, shown in zip(pages, converted, learnt, strict=True):
                    history = history.with_row(page.time, pick(row), window)
                    device, now = earlier.device, page.received
                    at = Circumstances(now, options.window, options.collect_interval, None)
                    watts = None if device.mig else idle_watts(history, earlier.verdict, at)
                    if watts is not None:
                        shown.append((device, watts))
            all_series[key] = DeviceSeries(
                earlier.device,
                earlier.assignment,
                earlier.origin,
                earlier.node,
                earlier.host,
                last,
                history,
                names,
                earlier.window,
                earlier.shared,
                cut=earlier.cut,
                cluster=earlier.cluster,
                verdict=earlier.verdict if resting and judged else CLEAR,
            )
        for shown in learnt:  # in the order of the pages: the number of models is bounded
            for device, watts in shown:
                idle.learn(device.model, device.board, watts)
        return Contents(all_series, reported, idle)


def steady(
    state: ExporterState, result: ScrapeResult, catalog: Catalog, options: TelemetryOptions
) -> SteadyPages | None:
    """Return what the pages after this one must be so that they can be taken in later.

    None if that depends on more than their numbers and the pods that they name.

    Args:
        state: after the scrape result.
    """
    plan, node = state.plan, result.node
    if plan is None or not node or result.serves:
        return None
    named = _named(state)
    if (
        named is None
        or len(plan.rows) > _MOST_DEVICES
        or state.all_series.keys() != plan.rows.keys()
    ):
        return None
    rows: list[_DeviceRow] = []
    for key, (_, row) in plan.rows.items():
        series = state.all_series[key]
        places = _places(row, series.history.layout)
        if places is None:
            return None
        rows.append(_DeviceRow(key, places, lasts(series.verdict, places.layout)))
    return SteadyPages(plan, node, named, rows, catalog, options)


def _named(state: ExporterState) -> Mapping[PodRef, Pod | None] | None:
    """Return every pod that the labels could name; None if labels of a pod play a part."""
    named: dict[PodRef, Pod | None] = {}
    for belief in state.beliefs.values():
        known = belief.known
        if known.address:
            return None
        if not known.assignable:
            continue
        if known.serves or not belief.lasts:
            return None
        for ref, pod in zip(known.named, belief.pods, strict=True):
            # One that started after the page may be compared with it differently later.
            if pod is not None and pod.born >= state.received:
                return None
            named[ref] = pod
    return named


def _picker(places: tuple[int, ...]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    if not places:
        return lambda _: ()
    if len(places) == 1:
        return lambda numbers: (numbers[places[0]],)
    return itemgetter(*places)

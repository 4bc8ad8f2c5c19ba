"""Take in pages later, when somebody reads their exporter's device series.

Most pages are not read: an HPA asks every 15 s and an exporter is scraped every 5 s, and many
devices have no HPA. So the numbers of a page are only checked when it arrives, and several pages
are taken in together. That is possible while a page changes nothing else: not which device and
pod it is about, no reject, and no verdict. :func:`steady` finds out what the next page must be
for that. Any other page is taken in at once, by :mod:`adapter.devices.ingest`, which gives the same
state.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter, le, lt, mul
from typing import Final, NamedTuple
from zlib import crc32

from adapter.catalog import Catalog
from adapter.catalog.layout import Layout
from adapter.cluster.pod import Find, Pod, PodRef
from adapter.devices.crosschecks import cross_checked
from adapter.devices.options import TelemetryOptions
from adapter.devices.pageplan import PagePlan
from adapter.devices.plausibility import (
    Circumstances,
    idle_watts,
    lasts,
    resting_bounds,
    working_bounds,
)
from adapter.devices.rejects import Rejects
from adapter.devices.series import CLEAR, DeviceSeries, SeriesKey
from adapter.devices.state import Contents, ExporterState, still_reported
from adapter.exposition.pagelayout import LayoutSamples
from adapter.exposition.samples import ScrapeResult
from apiservice.runtime.steps import at_once

MOST_PAGES: Final = 5
"""Pages that wait, at most. Each takes 8 bytes for each of its samples."""


_MOST_DEVICES: Final = 64
"""Device series of an exporter whose pages can be taken in later; they take less than 1 ms."""


class _Page(NamedTuple):
    """A page whose numbers wait. Times are epoch seconds."""

    time: float
    received: float
    numbers: array[float]
    """As on the page, in the order of its samples."""


class _DeviceRow(NamedTuple):
    """Where the numbers of one device series are on a page."""

    key: SeriesKey
    layout: Layout
    places: tuple[int, ...]
    """Of each column of the layout."""
    resting: bool
    """No field has shown work, and the verdict stays the same until one does."""

    def of(self, series: DeviceSeries) -> _DeviceRow:
        """Return the row after another page."""
        resting = lasts(series.verdict, self.layout)
        return self if resting is self.resting else self._replace(resting=resting)


class _Deferred:
    """Pages that wait; see :class:`adapter.devices.state.DeferredPages`."""

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
        *("_catalog", "_checked", "_factors", "_least", "_most", "_node", "_options", "_plan"),
        *("_pods", "_refs", "_rows", "_turn", "_unjudged"),
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
        self._watch(rows)

    def _watch(self, rows: Sequence[_DeviceRow]) -> None:
        self._rows = rows
        self._unjudged = [row._replace(resting=False) for row in rows]
        checked: list[tuple[int, float, float]] = []
        if self._options.cross_checks:
            for row in rows:
                found = resting_bounds(row.layout) if row.resting else working_bounds(row.layout)
                checked += [(row.places[column], above, most) for column, above, most in found]
        places = tuple(place for place, _, _ in checked)
        self._checked = _picker(places)
        self._factors = tuple(map(self._plan.numbers.factors.__getitem__, places))
        self._least = tuple(above for _, above, _ in checked)
        self._most = tuple(most for _, _, most in checked)

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
        checked = tuple(map(mul, self._checked(samples.values), self._factors))
        if not (all(map(lt, self._least, checked)) and all(map(le, checked, self._most))):
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
        found = self._grown(before.contents, (page,), self._unjudged)
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
        return self._grown(before, pages, self._rows)

    def _grown(
        self, before: Contents, pages: Sequence[_Page], rows: Sequence[_DeviceRow]
    ) -> Contents:
        plan, options = self._plan, self._options
        times, last = [page.time for page in pages], pages[-1].received
        factors = plan.numbers.factors
        converted = [list(map(mul, page.numbers, factors)) for page in pages]
        reported = before.reported
        for page in pages:
            reported = still_reported(reported, plan.reported, page.received, options.oldest)
        names = frozenset(reported)
        idle = before.idle.copy() if any(row.resting for row in rows) else before.idle
        all_series: dict[SeriesKey, DeviceSeries] = {}
        for key, layout, places, resting in rows:
            earlier, pick = before.all_series[key], _picker(places)
            history = earlier.history
            window = self._catalog.span(layout, options.window, options.oldest)
            if not resting:
                numbers = [number for row in converted for number in pick(row)]
                history = history.with_rows(times, numbers, window)
            else:
                for page, row in zip(pages, converted, strict=True):
                    history = history.with_row(page.time, pick(row), window)
                    device, now = earlier.device, page.received
                    at = Circumstances(now, options.window, options.collect_interval, None)
                    watts = None if device.mig else idle_watts(history, earlier.verdict, at)
                    if watts is not None:
                        idle.learn(device.model, device.board, watts)
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
                verdict=earlier.verdict if resting else CLEAR,
            )
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
        layout, place_of = series.history.layout, dict(zip(row.spellings, row.places, strict=True))
        if len(place_of) != layout.width or place_of.keys() != set(layout.columns):
            return None
        places = tuple(place_of[column] for column in layout.columns)
        rows.append(_DeviceRow(key, layout, places, lasts(series.verdict, layout)))
    return SteadyPages(plan, node, named, rows, catalog, options)


def _named(state: ExporterState) -> Mapping[PodRef, Pod | None] | None:
    """Return every pod that the labels could name; None if labels of a pod play a part."""
    named: dict[PodRef, Pod | None] = {}
    for belief in state.beliefs.values():
        known = belief.known
        if known.device is None or known.assignment is None:
            continue
        if known.assignment.serves or not belief.lasts:
            return None
        for ref, pod in zip(known.named, belief.pods, strict=True):
            # One that started after the page may be compared with it differently later.
            if pod is not None and pod.born >= state.received:
                return None
            named[ref] = pod
    return named


@lru_cache(maxsize=8192)
def _picker(places: tuple[int, ...]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    if not places:
        return lambda _: ()
    if len(places) == 1:
        return lambda numbers: (numbers[places[0]],)
    return itemgetter(*places)

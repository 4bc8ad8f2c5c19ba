"""The last pages of an exporter, and what they say about its devices.

A page of which only numbers changed adds a row, if its numbers are valid and no device begins or
ends to show work. Nothing else is computed until somebody reads: a device series is then a view of
its columns. If a number may change the verdict on a device, this device is judged at once. The
state is the one that :func:`adapter.pipeline.devices.ingest.absorb` computes from the samples; any
page for which that is not certain goes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from math import inf, isnan, nan
from typing import Final

from adapter.pipeline.catalog.nvidia import POWER
from adapter.pipeline.devices.crosschecks import cross_checked
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.idlepower import IdlePower
from adapter.pipeline.devices.location import KnownCluster
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.pagecheck import PageCheck, page_check
from adapter.pipeline.devices.pageshape import DeviceColumns, PageShape
from adapter.pipeline.devices.plausibility import Circumstances, idle_watts
from adapter.pipeline.devices.quickchecks import lasts
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.ring import Ring, ring_of
from adapter.pipeline.devices.series import CLEAR, NO_FIELDS, DeviceSeries, SeriesKey, Verdict
from adapter.pipeline.devices.state import Contents, ExporterState, still_reported
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import Steps

_Watts = tuple[int, float, float]
"""The place of a resting device's power, and the range in which it teaches nothing."""
_NOTHING: Final[Mapping[int, Set[str]]] = {}
_Rest = tuple[_Watts, ...] | None
"""The power of a device series whose verdict lasts while it rests; None for any other one."""


class _Judgement:
    """What is known about the devices, and the bounds of numbers that leave it as it is."""

    __slots__ = ("check", "idle", "pending", "rest", "verdicts", "watts")

    def __init__(
        self,
        shape: PageShape,
        verdicts: tuple[Verdict, ...],
        rest: tuple[_Rest, ...],
        idle: IdlePower,
    ) -> None:
        self.verdicts = verdicts
        """Of each row of the shape, as ``rest``."""
        self.rest = rest
        self.idle = idle
        columns = tuple(row.columns for row in shape.rows)
        resting = tuple(watts is not None for watts in rest) if shape.options.cross_checks else ()
        self.check: PageCheck = page_check(shape.numbers, columns, resting)
        self.pending = frozenset(
            at
            for at, (verdict, its) in enumerate(zip(verdicts, rest, strict=True))
            if its is None and verdict is not CLEAR
        )
        """The rows whose verdict depends on each page."""
        self.watts = tuple(watts for its in rest if its for watts in its)

    def beyond(self, values: Sequence[float], numbers: Sequence[float]) -> Set[int]:
        """Return the places of numbers that are invalid, may change a verdict, or teach a power.

        Args:
            values: as on the page.
            numbers: the same in the units of the fields.
        """
        odd = self.check.beyond(values)
        more = [at for at, low, high in self.watts if not low <= numbers[at] <= high]
        return odd | set(more) if more else odd


class LastPages:
    """The last pages of an exporter, all of one shape. Immutable."""

    __slots__ = ("_judgement", "_received", "_rejected", "_ring", "_shape")

    def __init__(
        self,
        shape: PageShape,
        ring: Ring,
        received: float,
        rejected: Mapping[int, Set[str]],
        judgement: _Judgement,
    ) -> None:
        self._shape = shape
        self._ring = ring
        self._received = received
        self._rejected = rejected
        """Row of the shape -> fields of which the last scrape result has an invalid number."""
        self._judgement = judgement

    @property
    def outline(self) -> Contents:
        """What the pages are about, without samples."""
        return self._shape.outline

    @property
    def idle(self) -> IdlePower:
        """See :class:`adapter.pipeline.devices.state.Contents`."""
        return self._judgement.idle

    def verdict(self, key: SeriesKey) -> Verdict | None:
        """Return the verdict on a device series; None if there is no such series."""
        at = self._shape.index.get(key)
        if at is not None:
            return self._judgement.verdicts[at]
        series = self._shape.standing.get(key)
        return None if series is None else series.verdict

    def contents(self) -> Contents:
        """Return the device series."""
        shape = self._shape
        reported = still_reported(
            shape.outline.reported, shape.reported, self._received, shape.options.oldest
        )
        views = self._views(range(len(shape.rows)), frozenset(reported))
        return Contents(shape.standing | views, reported, self.idle)

    def after(
        self, before: ExporterState, result: ScrapeResult, rejects: Rejects, cluster: KnownCluster
    ) -> Steps[ExporterState | None]:
        """Return the state after one more page, in steps; None if its samples must be read.

        Args:
            before: the state with these pages.
            rejects: counts what is left out of the page, and the doubted fields.
        """
        samples, shape, judgement = result.samples, self._shape, self._judgement
        if not isinstance(samples, LayoutSamples) or not shape.fits(before, result, cluster):
            return None
        if samples.rows[0][0] <= self._ring.times[-1]:
            return None
        ring, odd, invalid = self._ring, set[int](), Rejects()
        rejected: dict[int, set[str]] = {}
        for time, values in samples.rows:
            numbers = shape.numbers.in_units(values)
            beyond = judgement.beyond(values, numbers)
            holes = {at: wrong for at in beyond if (wrong := shape.numbers.wrong(at, values[at]))}
            for place, (spelling, reason) in holes.items():
                numbers[place], row = nan, judgement.check.row_of[place]
                rejected.setdefault(row, set()).add(spelling.field.name)
                reject = Reject(reason, spelling.name, shape.rows[row].key.device)
                invalid.add(reject, result.received, values[place])
            if holes and any(
                all(isnan(numbers[at]) for at in shape.rows[row].columns.places) for row in rejected
            ):
                return None  # a device without a valid number keeps its old samples
            odd.update(beyond)
            keep, oldest = shape.window, shape.options.oldest
            ring = ring.with_row(time, numbers, keep, oldest, hole=bool(holes))
        rejects.merge(invalid)
        shape.count(len(samples.rows), result.received, rejects)
        pages = LastPages(shape, ring, result.received, rejected or _NOTHING, judgement)
        if shape.options.cross_checks:
            check, suspects = judgement.check, judgement.pending
            if odd:
                suspects |= {check.row_of[place] for place in odd if place in check.compared}
            if suspects or shape.of_parts:
                pages = yield from pages._judged(suspects, before, rejects)
        return before.after(result.received, pages)

    def _judged(
        self, suspects: Set[int], before: ExporterState, rejects: Rejects
    ) -> Steps[LastPages]:
        """Return these pages with the verdicts on devices whose numbers may change them, in steps.

        The instances of boards are judged together, and so are the containers of devices.
        """
        shape, options = self._shape, self._shape.options
        rows = [
            at
            for at, row in enumerate(shape.rows)
            if shape.of_parts or row.series.mig or at in suspects
        ]
        idle = self.idle.copy()
        views = self._views(rows, NO_FIELDS, judged=False)
        judged = yield from cross_checked(views, before, idle, options, rejects)
        verdicts, rest = list(self._judgement.verdicts), list(self._judgement.rest)
        for at, series in zip(rows, judged.values(), strict=True):
            verdicts[at] = series.verdict
            rest[at] = _rest(shape.rows[at].columns, series, idle, options)
        judgement = _Judgement(shape, tuple(verdicts), tuple(rest), idle)
        return LastPages(shape, self._ring, self._received, self._rejected, judgement)

    def _views(
        self, rows: Iterable[int], names: frozenset[str], *, judged: bool = True
    ) -> dict[SeriesKey, DeviceSeries]:
        """Return device series of the pages.

        Args:
            rows: of the shape.
            names: the fields that the exporter reports.
            judged: with the verdicts.
        """
        verdicts = self._judgement.verdicts
        views = {}
        for at in rows:
            key, columns, _, made = self._shape.rows[at]
            views[key] = DeviceSeries(
                made.device,
                made.assignment,
                made.origin,
                made.node,
                made.host,
                self._received,
                self._history(columns),
                names,
                made.window,
                made.shared,
                cut=made.cut,
                cluster=made.cluster,
                rejected=frozenset(self._rejected.get(at, NO_FIELDS)),
                verdict=verdicts[at] if judged else CLEAR,
            )
        return views

    def _history(self, columns: DeviceColumns) -> History:
        """Return the samples of a device series."""
        ring, shape = self._ring, self._shape
        its = History(columns.layout, ring.times, ring.numbers, columns.places, ring.width)
        whole, window = ring.hole == -inf, shape.span(columns.layout)
        if not whole:
            window = max(window, shape.options.oldest)
        if window < shape.window:
            its = its.after(ring.times[-1] - window)
        return its if whole else its.with_numbers()


def first_pages(shape: PageShape, state: ExporterState) -> LastPages | None:
    """Return the pages whose samples a state has; None if a device has others.

    Args:
        state: after a page of this shape.
    """
    histories = [state.all_series[row.key].history for row in shape.rows]
    newest = max(samples.newest for samples in histories)
    for row, samples in zip(shape.rows, histories, strict=True):
        if (
            not samples.times
            or samples.newest < newest
            or not set(samples.layout.columns) <= set(row.columns.layout.columns)
        ):
            return None
    ring = ring_of(shape, histories)
    all_series = [state.all_series[row.key] for row in shape.rows]
    rest = (
        _rest(row.columns, series, state.idle, shape.options)
        for row, series in zip(shape.rows, all_series, strict=True)
    )
    verdicts = tuple(series.verdict for series in all_series)
    judgement = _Judgement(shape, verdicts, tuple(rest), state.idle)
    rejected = {at: series.rejected for at, series in enumerate(all_series) if series.rejected}
    return LastPages(shape, ring, state.received, rejected, judgement)


def _rest(
    columns: DeviceColumns, series: DeviceSeries, idle: IdlePower, options: TelemetryOptions
) -> _Rest:
    """Return the power of a device series whose verdict lasts while it rests, if it is known."""
    if not lasts(series.verdict, columns.layout):
        return None
    device = series.device
    places = [columns.places[at] for at in columns.layout.of_field.get(POWER, ())]
    if device.mig or not places:
        return ()
    at = Circumstances(series.received, options.window, options.collect_interval, None)
    if idle_watts(series.history, series.verdict, at) is None:
        return None
    own = idle.own(device.model, device.board)
    return () if own is None else tuple((place, own.low, own.high) for place in places)

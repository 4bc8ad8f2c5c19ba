"""The last pages of an exporter, and what they say about its devices.

A page of which only numbers changed adds a row, if its numbers are valid and no device begins or
ends to show work. Nothing else is computed until somebody reads: a device series is then a view of
its columns. If a number may change the verdict on a device, this device is judged at once. The
state is the one that :func:`adapter.pipeline.devices.ingest.absorb` computes from the samples; any
page for which that is not certain goes there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Final

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.nvidia import POWER
from adapter.pipeline.devices.crosschecks import cross_check
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.idlepower import IdlePower
from adapter.pipeline.devices.location import KnownCluster
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.pagecheck import PageCheck, page_check
from adapter.pipeline.devices.pageshape import DeviceColumns, PageShape
from adapter.pipeline.devices.plausibility import Circumstances, idle_watts
from adapter.pipeline.devices.quickchecks import lasts
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.rows import NumberRows
from adapter.pipeline.devices.series import CLEAR, NO_FIELDS, DeviceSeries, SeriesKey, Verdict
from adapter.pipeline.devices.state import Contents, ExporterState, OnDemand, still_reported_fields
from adapter.pipeline.devices.validity import Invalid, complaint
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import Steps

_Watts = tuple[int, float, float]
"""The place of a resting device's power, and the range in which it teaches nothing."""
_Invalid = tuple[int, Spelling, Invalid, float]
"""An invalid number: its place, its field, why, and the number."""
_Longer = tuple[NumberRows, float, set[int], list[_Invalid]]
"""Rows, the time of the newest gap, the places of numbers beyond their bounds, and invalid ones."""
_NOTHING: Final[Mapping[int, Set[str]]] = {}
Rest = tuple[_Watts, ...] | None
"""The power of a device series whose verdict lasts while it rests; None for any other one."""


class DeviceJudgement:
    """What is known about the devices, and the bounds of numbers that leave it as it is."""

    __slots__ = ("check", "idle", "pending", "rest", "verdicts", "watts")

    def __init__(
        self,
        shape: PageShape,
        verdicts: tuple[Verdict, ...],
        rest: tuple[Rest, ...],
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
            index
            for index, (verdict, its) in enumerate(zip(verdicts, rest, strict=True))
            if its is None and verdict is not CLEAR
        )
        """The rows whose verdict depends on each page."""
        self.watts = tuple(watts for its in rest if its for watts in its)

    def places_beyond(self, values: Sequence[float], numbers: Sequence[float]) -> Set[int]:
        """Return the places of numbers that are invalid, may change a verdict, or teach a power.

        Args:
            values: as on the page.
            numbers: the same in the units of the fields.
        """
        odd = self.check.places_beyond(values)
        more = [place for place, low, high in self.watts if not low <= numbers[place] <= high]
        return odd | set(more) if more else odd


@dataclass(slots=True, eq=False)
class LastPages:
    """The last pages of an exporter, all of one shape. Treated as immutable."""

    shape: PageShape
    rows: NumberRows
    """All of the page's numbers at each time."""
    hole: float
    """Epoch seconds of the newest row with a missing number; minus infinity for none."""
    received: float
    """Epoch seconds."""
    rejected: Mapping[int, Set[str]]
    """Row of the shape -> fields of which the last scrape result has an invalid number."""
    judgement: DeviceJudgement

    @property
    def outline(self) -> Contents:
        """See :class:`adapter.pipeline.devices.state.NumberPages`."""
        return self.shape.outline

    @property
    def idle(self) -> IdlePower:
        """See :class:`adapter.pipeline.devices.state.Contents`."""
        return self.judgement.idle

    def verdict(self, key: SeriesKey) -> Verdict | None:
        """Return the verdict on a device series; None if there is no such series."""
        row = self.shape.index.get(key)
        if row is not None:
            return self.judgement.verdicts[row]
        series = self.shape.standing.get(key)
        return None if series is None else series.verdict

    def contents(self) -> Contents:
        """Return the device series."""
        shape, outline, received = self.shape, self.shape.outline, self.received
        names = shape.reported
        if outline.reported:
            past = still_reported_fields(outline.reported, (), received, shape.options.oldest)
            names = names.union(past)

        def series_of(key: SeriesKey) -> DeviceSeries:
            row = shape.index.get(key)
            return shape.standing[key] if row is None else self._view(row, names)

        all_series = OnDemand(outline.all_series, series_of)
        return Contents(
            all_series,
            OnDemand(names, lambda n: received if n in shape.reported else outline.reported[n]),
            self.judgement.idle,
            OnDemand(outline.pods, lambda ref: tuple(all_series[s.key] for s in outline.pods[ref])),
            OnDemand(
                outline.devices, lambda at: tuple(all_series[s.key] for s in outline.devices[at])
            ),
        )

    def after(
        self, before: ExporterState, result: ScrapeResult, rejects: Rejects, cluster: KnownCluster
    ) -> Steps[ExporterState | None]:
        """Return the state after one more page, in steps; None if its samples must be read.

        Args:
            before: the state with these pages.
            rejects: counts what is left out of the page, and the doubted fields.
        """
        samples, shape, judgement = result.samples, self.shape, self.judgement
        if not isinstance(samples, LayoutSamples) or not shape.fits(before, result, cluster):
            return None
        longer = self._append_pages(samples.rows)
        if longer is None:
            return None
        rows, hole, odd, invalid = longer
        rejected: dict[int, set[str]] = {}
        for place, spelling, reason, value in invalid:
            row = judgement.check.row_of[place]
            rejected.setdefault(row, set()).add(spelling.field.name)
            reject = Reject(reason, spelling.name, shape.rows[row].key.device)
            rejects.add(reject, result.received, value)
        shape.count(len(samples.rows), result.received, rejects)
        after = LastPages(shape, rows, hole, result.received, rejected or _NOTHING, judgement)
        if shape.options.cross_checks:
            check, suspects = judgement.check, judgement.pending
            if odd:
                suspects |= {check.row_of[place] for place in odd if place in check.compared}
            if suspects or shape.of_parts:
                after = yield from after._judge_suspects(suspects, before, rejects)
        return before.after(result.received, after)

    def _append_pages(self, pages: Sequence[tuple[float, Sequence[float]]]) -> _Longer | None:
        """Return the rows with more pages, oldest first.

        None if a page is not newer, or if a device has no valid number: it keeps its old samples.
        """
        rows, hole, shape, judgement = self.rows, self.hole, self.shape, self.judgement
        odd: set[int] = set()
        invalid: list[_Invalid] = []
        if pages[0][0] <= rows.times[-1]:
            return None
        for time, values in pages:
            numbers = shape.numbers.in_units(values)
            hole = hole if hole > time - shape.options.oldest else -inf
            if beyond := judgement.places_beyond(values, numbers):
                odd.update(beyond)
                holes = [
                    (place, spelling, why, values[place])
                    for place in beyond
                    if (spelling := shape.numbers.spellings[place]) is not None
                    and (why := complaint(values[place], spelling.low, spelling.high)) is not None
                ]
                for place, *_ in holes:
                    numbers[place], hole = nan, time
                touched = {judgement.check.row_of[place] for place, *_ in holes}
                if any(_is_empty(shape.rows[row].columns, numbers) for row in touched):
                    return None
                invalid += holes
            rows = rows.with_row(time, numbers, shape.kept_seconds(whole=hole == -inf))
        return rows, hole, odd, invalid

    def _judge_suspects(
        self, suspects: Set[int], before: ExporterState, rejects: Rejects
    ) -> Steps[LastPages]:
        """Return these pages with the verdicts on devices whose numbers may change them, in steps.

        The instances of boards are judged together, and so are the containers of devices.
        """
        shape, options = self.shape, self.shape.options
        rows = [
            index
            for index, row in enumerate(shape.rows)
            if shape.of_parts or row.series.mig or index in suspects
        ]
        idle = self.judgement.idle.copy()
        views = {shape.rows[row].key: self._view(row, NO_FIELDS, judged=False) for row in rows}
        judged = yield from cross_check(views, before, idle, options, rejects)
        verdicts, rest = list(self.judgement.verdicts), list(self.judgement.rest)
        for row, series in zip(rows, judged.values(), strict=True):
            verdicts[row] = series.verdict
            rest[row] = rest_of(shape.rows[row].columns, series, idle, options)
        judgement = DeviceJudgement(shape, tuple(verdicts), tuple(rest), idle)
        return LastPages(shape, self.rows, self.hole, self.received, self.rejected, judgement)

    def _view(self, at: int, names: frozenset[str], *, judged: bool = True) -> DeviceSeries:
        """Return a device series of the pages.

        Args:
            at: its row of the shape.
            names: the fields that the exporter reports.
            judged: with its verdict.
        """
        _, columns, _, made = self.shape.rows[at]
        return DeviceSeries(
            made.device,
            made.assignment,
            made.origin,
            made.node,
            made.host,
            self.received,
            self._history(columns),
            names,
            made.window,
            made.shared,
            cut=made.cut,
            cluster=made.cluster,
            rejected=frozenset(self.rejected.get(at, NO_FIELDS)),
            verdict=self.judgement.verdicts[at] if judged else CLEAR,
        )

    def _history(self, columns: DeviceColumns) -> History:
        """Return the samples of a device series."""
        whole = self.hole == -inf
        its = History(columns.layout, self.rows, columns.places)
        window = self.shape.kept_seconds(columns.layout, whole=whole)
        if window < self.shape.kept_seconds(whole=whole):
            its = its.after(its.newest - window)
        return its if whole else its.with_numbers()


def _is_empty(columns: DeviceColumns, numbers: Sequence[float]) -> bool:
    return all(isnan(numbers[place]) for place in columns.places)


def rest_of(
    columns: DeviceColumns, series: DeviceSeries, idle: IdlePower, options: TelemetryOptions
) -> Rest:
    """Return the power of a device series whose verdict lasts while it rests, if it is known."""
    if not lasts(series.verdict, columns.layout):
        return None
    device = series.device
    places = [columns.places[column] for column in columns.layout.of_field.get(POWER, ())]
    if device.mig or not places:
        return ()
    circumstances = Circumstances(series.received, options.window, options.collect_interval, None)
    if idle_watts(series.history, series.verdict, circumstances) is None:
        return None
    watts = idle.of_device(device.model, device.board)
    return () if watts is None else tuple((place, watts.low, watts.high) for place in places)

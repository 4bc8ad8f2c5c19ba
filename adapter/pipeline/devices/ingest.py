"""Update an exporter's state with a scrape result: build, merge and age its device series.

Apart from the reject counters there are no side effects. The order of the samples does not change
the result. The cost is proportional to the scrape result and independent of the rest of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.accounting import Accounted, compare_pod_samples
from adapter.pipeline.devices.boards import lend_board_values
from adapter.pipeline.devices.builder import Holders, SeriesBuilder, find_superseded, holders
from adapter.pipeline.devices.crosschecks import cross_check
from adapter.pipeline.devices.earlierpages import (
    NO_EARLIER_PAGES,
    EarlierPages,
    forget_pages,
    pages_with,
)
from adapter.pipeline.devices.firstpages import first_pages
from adapter.pipeline.devices.history import history
from adapter.pipeline.devices.idlepower import IdlePower
from adapter.pipeline.devices.location import KnownCluster, Location
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.pageshape import shape_of
from adapter.pipeline.devices.reader import DEVICES, TOO_MANY_TIMES, PageReader
from adapter.pipeline.devices.rejects import Rejects
from adapter.pipeline.devices.series import NO_FIELDS, DeviceSeries, SeriesKey
from adapter.pipeline.devices.state import ExporterState, contents_of, still_reported_fields
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import StepBudget, Steps

_DEVICE: Final = 32
"""Work on a device, in units of four values that are merged."""


def absorb(
    before: ExporterState | None,
    result: ScrapeResult,
    catalog: Catalog,
    options: TelemetryOptions,
    rejects: Rejects,
    cluster: KnownCluster,
) -> Steps[ExporterState]:
    """Compute an exporter's state after a scrape result, in steps.

    The pods may change between two steps, and each sample is compared with the pods at its step.
    This is safe: the next scrape result sees the pods that have changed since, and each answer
    checks again which pod may have the device.

    A device series that is not in the scrape result is kept until the age limit, because labels
    can disappear for one scrape (dcgm-exporter#428). If the scrape result assigns its device to
    another pod, the device series is marked as superseded, and
    :mod:`adapter.pipeline.attribution.sharing` decides whether the two pods share the device.
    """
    reader = PageReader(before, result, catalog, options, rejects, cluster)
    yield from reader.read()
    made = _SeriesMaker(before, result, catalog, options, reader, cluster, _boards(reader.by_key))
    past = find_superseded(reader.by_key)
    earlier_fields = before.reported if before else {}
    reported = still_reported_fields(
        earlier_fields, reader.reported, result.received, options.oldest
    )
    names, held = frozenset(reported), holders(reader.by_key.keys() - past)
    earlier = before.all_series if before else {}
    counts = yield from compare_pod_samples(reader.by_key, earlier, rejects, options.oldest)
    lent = yield from lend_board_values(reader.by_key.values())
    if len(reader.by_key) > DEVICES:
        yield
    all_series = {}
    left_out, step = 0, StepBudget(DEVICES * _DEVICE)
    for key, builder in reader.by_key.items():
        all_series[key] = series = made.series(key, builder, names, held, counts, past=key in past)
        left_out += builder.left_out
        # A page with one time appends to the history. Other pages are merged into it.
        merged = len(series.history) if len(builder.frames) > 1 else 0
        if step.spent(_DEVICE + merged // 4):
            yield
    if left_out:
        rejects.count(TOO_MANY_TIMES, left_out)
    idle = before.idle.copy() if before else IdlePower()
    if options.cross_checks:
        all_series = yield from cross_check(all_series, before, idle, options, rejects)
    standing = yield from made.standing_series(all_series, held)
    state = ExporterState(
        origin=result.origin,
        received=result.received,
        pod=reader.pod,
        contents=contents_of(standing | all_series, reported, idle),
        scale=reader.scale,
        beliefs=reader.beliefs,
        disowned=reader.disowned,
        rejected=reader.rejected,
        earlier=made.pages_after(all_series),
    )
    samples = result.samples
    if counts.per_process or counts.judged or lent or result.serves:
        return state
    if not isinstance(samples, LayoutSamples):
        return state
    shape = shape_of(reader, result, samples, state, catalog, options)
    rows = first_pages(shape, state) if shape is not None else None
    return state if rows is None else state.after(result.received, rows)


def _boards(reader: Mapping[SeriesKey, SeriesBuilder]) -> frozenset[str]:
    devices = (builder.identity.device for builder in reader.values() if builder.mig)
    return frozenset(device.board for device in devices if device is not None)


class _SeriesMaker:
    """Makes the device series of one exporter, both new and kept ones."""

    def __init__(
        self,
        before: ExporterState | None,
        result: ScrapeResult,
        catalog: Catalog,
        options: TelemetryOptions,
        reader: PageReader,
        cluster: KnownCluster,
        cut: frozenset[str],
    ) -> None:
        self._before = before
        self._result = result
        self._catalog = catalog
        self._options = options
        self._exporter_pod = reader.pod
        self._undecided = reader.undecided
        self._incomplete = reader.incomplete
        self._cut = cut
        self._builders = reader.by_key
        same_pod = before is not None and before.pod == reader.pod
        self._pages = before.earlier if before and same_pod else NO_EARLIER_PAGES
        self._parts = before.all_series if before and same_pod else {}
        self._location = Location(result, reader.pod, cluster)

    def series(
        self,
        key: SeriesKey,
        builder: SeriesBuilder,
        reported: frozenset[str],
        pods_by_device: Holders,
        counts: Accounted,
        *,
        past: bool,
    ) -> DeviceSeries:
        """Return the device series of a builder, with its earlier samples."""
        window, oldest = self._options.window, self._options.oldest
        last = self._before.all_series.get(key) if self._before else None
        earlier = None if last is None else last.history
        if self._result.serves:
            earlier = self._pages.before(key, builder.frames, earlier, self._options)
        if earlier is not None:
            window = self._catalog.span(earlier.layout, window, oldest)
        if earlier is not None and builder.frames:
            samples = earlier.with_frames(builder.frames, window, oldest)
        else:
            samples = history(builder.frames, window, oldest) if earlier is None else earlier
        if samples.newest > self._result.received:
            # The clock was set back: earlier samples would count as new until it catches up.
            samples = history(builder.frames, window, oldest)
        for name, time in self._undecided.get(key.device, {}).items():
            samples = samples.without(name, time)
        device, assigned = builder.identity.device, builder.identity.assignment
        assert device is not None  # noqa: S101 - a builder without a device is never made
        if assigned is not None and not assigned.serves and assigned.pod == self._exporter_pod:
            assigned = assigned._replace(suspect=True)
        return DeviceSeries(
            device=device,
            assignment=assigned,
            origin=self._result.origin,
            node=self._location.node(builder.identity),
            host=builder.identity.host,
            received=self._result.received,
            history=samples,
            reported=reported,
            window=self._options.window,
            shared=builder.identity.hides_pods
            or (
                key.pod is not None
                and not past
                and (builder.replica or len(pods_by_device[key.device]) > 1)
            ),
            per_process=key in counts.per_process,
            judged=counts.judged.get(key, 0.0),
            cut=key.pod is not None and not device.mig and key.device in self._cut,
            cluster=builder.identity.cluster,
            superseded=past,
            rejected=frozenset(builder.rejected),
            incomplete=self._incomplete if builder.identity.serves else NO_FIELDS,
        )

    def pages_after(self, all_series: Mapping[SeriesKey, DeviceSeries]) -> EarlierPages:
        """Return what the pages show of series that they do not have, with this page.

        Args:
            all_series: its device series.
        """
        result, builders = self._result, self._builders.values()
        if not result.serves or not result.direct:
            return NO_EARLIER_PAGES
        if self._incomplete:
            return forget_pages(result.received, self._options)
        times = {time for builder in builders for time in builder.frames}
        rejected = NO_FIELDS.union(*(builder.rejected for builder in builders))
        sought = result.sought if any(map(_has_server_series, builders)) else None
        return pages_with(
            *(self._pages, sought, times, rejected, self._parts, all_series, self._options)
        )

    def _drop_undecided(self, series: DeviceSeries) -> DeviceSeries:
        """Return an earlier device series without the samples that a later one makes ambiguous."""
        samples = series.history
        for name, time in self._undecided.get(series.device.id, {}).items():
            samples = samples.without(name, time)
        return series if samples is series.history else replace(series, history=samples)

    def standing_series(
        self, fresh: Mapping[SeriesKey, DeviceSeries], pods_by_device: Holders
    ) -> Steps[dict[SeriesKey, DeviceSeries]]:
        """Return the earlier device series that the scrape result does not contain."""
        if self._before is None:
            return {}
        now = self._result.received
        too_old = now - self._options.oldest - self._options.window
        standing = (
            (
                key,
                self._drop_undecided(series)
                if key.pod is None
                else _mark_superseded(self._drop_undecided(series), pods_by_device.get(key.device)),
            )
            for key, series in self._before.all_series.items()
            # A server's page is complete: a part that is not on it is no longer served.
            if key not in fresh and too_old < series.received <= now and not series.serves
        )
        options = self._options
        most = options.server_series if self._result.serves else options.max_series
        earlier: dict[SeriesKey, DeviceSeries] = {}
        for key, series in islice(standing, max(0, most - len(fresh))):
            earlier[key] = series
            if not len(earlier) % DEVICES:
                yield
        return earlier


def _mark_superseded(series: DeviceSeries, pods: set[PodRef] | None) -> DeviceSeries:
    """Return an earlier device series, superseded if its device is now assigned to ``pods``."""
    if pods is None or series.superseded or (series.assignment and series.assignment.pod in pods):
        return series
    return replace(series, superseded=True, shared=False)


def _has_server_series(builder: SeriesBuilder) -> bool:
    """Return whether a page has a series of the catalogue about its server, not a user's own."""
    return any(
        spelling.server and spelling.field.part_labels is not None
        for frame in builder.frames.values()
        for spelling in frame
    )

"""From an exporter's samples to its device series.

Pure but for the counting of rejects: the same scrape results in any order of samples make the same
exporter. Its cost is proportional to the scrape result, whatever else the store holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from adapter.catalog import Catalog
from adapter.cluster.pod import PodRef
from adapter.devices.accounting import Accounted, accounted
from adapter.devices.builder import Holders, SeriesBuilder, holders, superseded
from adapter.devices.crosschecks import cross_checked
from adapter.devices.history import history
from adapter.devices.idlepower import IdlePower
from adapter.devices.location import KnownCluster, Location
from adapter.devices.options import TelemetryOptions
from adapter.devices.reader import DEVICES, PageReader
from adapter.devices.rejects import Rejects
from adapter.devices.series import DeviceSeries, SeriesKey
from adapter.devices.state import ExporterState
from adapter.exposition.samples import ScrapeResult
from apiservice.runtime.steps import Steps


def absorb(
    before: ExporterState | None,
    result: ScrapeResult,
    catalog: Catalog,
    options: TelemetryOptions,
    rejects: Rejects,
    cluster: KnownCluster,
) -> Steps[ExporterState]:
    """An exporter's state after a scrape result, in steps.

    The pods may change between two steps. Each sample is judged by the pods at that time: the
    next scrape result looks at the pods that have changed since, and each answer checks which
    pod may have the device.

    A device series that is not in the scrape result stays until the age limit (labels come and
    go: dcgm-exporter#428). If the scrape result assigns its device to another pod, it is marked
    superseded: :mod:`adapter.attribution.sharing` decides whether the two share the device.
    """
    reader = PageReader(before, result, catalog, options, rejects, cluster.pod)
    yield from reader.read()
    made = _SeriesMaker(before, result, catalog, options, reader, cluster, _boards(reader.by_key))
    past = superseded(reader.by_key)
    reported = _reported(before, result, options, reader)
    names, held = frozenset(reported), holders(reader.by_key.keys() - past)
    earlier = before.all_series if before else {}
    counts = accounted(reader.by_key, earlier, rejects, options.oldest)
    if len(reader.by_key) > DEVICES:
        yield
    all_series = {}
    for number, (key, builder) in enumerate(reader.by_key.items(), 1):
        all_series[key] = made.series(key, builder, names, held, counts, past=key in past)
        if not number % DEVICES:
            yield
    idle = before.idle.copy() if before else IdlePower()
    if options.cross_checks:
        all_series = yield from cross_checked(all_series, before, idle, options, rejects)
    standing = yield from made.standing(all_series, held)
    return ExporterState(
        origin=result.origin,
        received=result.received,
        pod=reader.pod,
        all_series=standing | all_series,
        reported=reported,
        scale=reader.scale,
        idle=idle,
        beliefs=reader.beliefs,
        disowned=reader.disowned,
    )


def _boards(reader: Mapping[SeriesKey, SeriesBuilder]) -> frozenset[str]:
    """Boards whose MIG instances have samples of their own."""
    devices = (builder.identity.device for builder in reader.values() if builder.mig)
    return frozenset(device.board for device in devices if device is not None)


def _reported(
    before: ExporterState | None,
    result: ScrapeResult,
    options: TelemetryOptions,
    reader: PageReader,
) -> dict[str, float]:
    """Fields that the exporter has written within the age limit."""
    earlier = before.reported if before else {}
    since = result.received - options.oldest
    recent = {name: t for name, t in earlier.items() if since < t <= result.received}
    return recent | dict.fromkeys(reader.reported, result.received)


class _SeriesMaker:
    """The device series of one exporter, old and new."""

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
        self._cut = cut
        self._location = Location(result, reader.pod, cluster)

    def series(
        self,
        key: SeriesKey,
        builder: SeriesBuilder,
        reported: frozenset[str],
        held: Holders,
        counts: Accounted,
        *,
        past: bool,
    ) -> DeviceSeries:
        """The device series that a builder becomes, with its earlier samples."""
        window, oldest = self._options.window, self._options.oldest
        earlier = self._before.all_series.get(key) if self._before else None
        if earlier is not None:
            window = self._catalog.span(earlier.history.layout, window, oldest)
        if earlier is not None and builder.frames:
            samples = earlier.history.extended(builder.frames, window, oldest)
        else:
            samples = earlier.history if earlier else history(builder.frames, window, oldest)
        if samples.newest > self._result.received:
            # The clock was set back: what came before would pass for new until it catches up.
            samples = history(builder.frames, window, oldest)
        for name, time in self._undecided.get(key.device, {}).items():
            samples = samples.without(name, time)
        at, assigned = builder.identity.device, builder.identity.assignment
        assert at is not None  # noqa: S101 - a builder without a device is never made
        if assigned is not None and not assigned.serves and assigned.pod == self._exporter_pod:
            assigned = assigned._replace(suspect=True)
        return DeviceSeries(
            device=at,
            assignment=assigned,
            origin=self._result.origin,
            node=self._location.node(builder.identity),
            host=builder.identity.host,
            received=self._result.received,
            history=samples,
            reported=reported,
            window=self._options.window,
            shared=key.pod is not None
            and not past
            and (builder.replica or len(held[key.device]) > 1),
            per_process=key in counts.per_process,
            judged=counts.judged.get(key, 0.0),
            cut=key.pod is not None and not at.mig and key.device in self._cut,
            cluster=builder.identity.cluster,
            superseded=past,
        )

    def _decided(self, series: DeviceSeries) -> DeviceSeries:
        """An earlier device series without the samples that a later one makes doubtful."""
        samples = series.history
        for name, time in self._undecided.get(series.device.id, {}).items():
            samples = samples.without(name, time)
        return series if samples is series.history else replace(series, history=samples)

    def standing(
        self, fresh: Mapping[SeriesKey, DeviceSeries], held: Holders
    ) -> Steps[dict[SeriesKey, DeviceSeries]]:
        """Earlier device series that are not in the scrape result."""
        if self._before is None:
            return {}
        now = self._result.received
        too_old = now - self._options.oldest - self._options.window
        standing = (
            (
                key,
                self._decided(series)
                if key.pod is None
                else _after(self._decided(series), held.get(key.device)),
            )
            for key, series in self._before.all_series.items()
            # A server's page is whole: what it no longer tells of, it no longer serves.
            if key not in fresh and too_old < series.received <= now and not series.serves
        )
        options = self._options
        most = options.server_series if self._result.serves else options.max_series
        kept: dict[SeriesKey, DeviceSeries] = {}
        for key, series in islice(standing, max(0, most - len(fresh))):
            kept[key] = series
            if not len(kept) % DEVICES:
                yield
        return kept


def _after(series: DeviceSeries, pods: set[PodRef] | None) -> DeviceSeries:
    """An earlier device series, superseded if the scrape result assigns its device to ``pods``."""
    if pods is None or series.superseded or (series.assignment and series.assignment.pod in pods):
        return series
    return replace(series, superseded=True, shared=False)

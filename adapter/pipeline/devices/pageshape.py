"""What does not change from page to page of an exporter: which device and field each number is of.

What a label set names, which device a sample is about, and which field it is of, follow from the
text around the numbers. So a page that was read sample by sample gives the shape of the pages that
have the same text; :mod:`adapter.pipeline.devices.pages` takes in their numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.layout import Layout, layout
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.history import NO_SAMPLES, sort_columns
from adapter.pipeline.devices.location import KnownCluster, Location
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.reader import PageReader
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.series import CLEAR, NO_FIELDS, DeviceSeries, SeriesKey
from adapter.pipeline.devices.state import Belief, ExporterState, Identity, contents_of
from adapter.pipeline.devices.tenantlabels import keeps_address
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult

_PAGE_FIELDS: Final = 512
"""Sets of fields that different exporters write, and of which the numbers are kept."""


class PageNumbers:
    """The fields of a page's numbers, in the order of its samples.

    All exporters that write the same fields for equally many devices share one.
    """

    __slots__ = ("_converted", "factors", "spellings")

    def __init__(self, spellings: tuple[Spelling | None, ...]) -> None:
        self.spellings = spellings
        """Of each sample; None for one that is not taken in."""
        self.factors = tuple(1.0 if s is None else s.factor for s in spellings)
        """From the unit on the page to that of the field."""
        self._converted = [(i, factor) for i, factor in enumerate(self.factors) if factor != 1.0]

    def in_units(self, values: Sequence[float]) -> array[float]:
        """Return the numbers of a page in the units of their fields."""
        numbers = array("d", values)
        for place, factor in self._converted:
            numbers[place] *= factor
        return numbers


class DeviceColumns:
    """Where the numbers of a device series are on a page. Equal device series share one."""

    __slots__ = ("layout", "places")

    def __init__(self, places: tuple[int, ...], spellings: tuple[Spelling, ...]) -> None:
        self.layout: Layout = layout(sort_columns(spellings))
        place_of = dict(zip(spellings, places, strict=True))
        self.places = tuple(place_of[spelling] for spelling in self.layout.columns)
        """The place of each column."""


page_numbers = lru_cache(maxsize=_PAGE_FIELDS)(PageNumbers)
field_set = lru_cache(maxsize=_PAGE_FIELDS)(frozenset[str])
columns_of = lru_cache(maxsize=_PAGE_FIELDS * 16)(DeviceColumns)


class DeviceRow(NamedTuple):
    """One device series of the pages."""

    key: SeriesKey
    columns: DeviceColumns
    identity: Identity | None
    """None if the source knows the node."""
    series: DeviceSeries
    """Without samples."""


class PageShape:
    """What an exporter's pages have in common. Immutable to its readers."""

    __slots__ = (
        *("_addressed", "_aside", "_catalog", "_certain", "_left_out", "_pods", "_refs", "_window"),
        *("index", "layout", "numbers", "of_parts", "options", "outline"),
        *("reported", "rows", "standing"),
    )

    def __init__(
        self,
        layout: object,
        numbers: PageNumbers,
        rows: tuple[DeviceRow, ...],
        left_out: Mapping[str, int],
        state: ExporterState,
        certain: str | None,
        catalog: Catalog,
        options: TelemetryOptions,
    ) -> None:
        self.layout = layout
        """That of the samples."""
        self.numbers = numbers
        self.rows = rows
        self.options = options
        self.index = {row.key: index for index, row in enumerate(rows)}
        whole = (row.columns.layout for row in rows if not row.series.mig)
        self.reported = field_set(tuple(sorted({n for columns in whole for n in columns.of_field})))
        """Fields for which whole devices have samples."""
        self.of_parts = any(row.columns.layout.exact for row in rows)
        """Whether some numbers are about what a container does on a device."""
        self.standing: dict[SeriesKey, DeviceSeries] = {
            key: series for key, series in state.all_series.items() if key not in self.index
        }
        """The device series of earlier pages."""
        its = self.standing | {row.key: row.series for row in rows}
        earlier = {n: time for n, time in state.reported.items() if n not in self.reported}
        self.outline = contents_of(its, earlier, state.idle)
        """What the pages are about, without samples, and the fields of earlier pages."""
        self._catalog = catalog
        self._window = max(self.kept_seconds(row.columns.layout, whole=True) for row in rows)
        self._left_out = left_out
        """Samples that are left out regardless of their number, by reason."""
        self._certain = certain
        """The exporter's node, if the source knows it."""
        beliefs = state.beliefs.values()
        named_pods = {
            ref: pod
            for belief in beliefs
            if belief.known.assignable and not belief.known.serves
            for ref, pod in zip(belief.known.named, belief.pods, strict=True)
        }
        self._refs = tuple(named_pods)
        """Every pod that labels could name."""
        self._pods = tuple(named_pods.values())
        """The same pods, as they were when they were last compared."""
        self._addressed = tuple(belief for belief in beliefs if belief.known.address)
        self._aside = tuple(
            Reject(reason, "", device.id if (device := belief.identity.device) else "")
            for belief in beliefs
            for reason in belief.aside
        )
        """Labels that each page has and that are ignored."""

    def kept_seconds(self, columns: Layout | None = None, *, whole: bool) -> float:
        """Return the seconds of pages that are kept, or of samples of a device series.

        Args:
            columns: of the device series.
            whole: whether no number is missing.
        """
        options = self.options
        if columns is None:
            window = self._window
        else:
            window = self._catalog.span(columns, options.window, options.oldest)
        return window if whole else max(window, options.oldest)

    def count(self, rows: int, received: float, rejects: Rejects) -> None:
        """Count what is left out of each page.

        Args:
            rows: samples of each series.
        """
        for reason, samples in self._left_out.items():
            rejects.count(reason, rows * samples)
        for reject in self._aside:
            rejects.add(reject, received)

    def fits(
        self,
        before: ExporterState,
        result: ScrapeResult,
        cluster: KnownCluster,
    ) -> bool:
        """Return whether a page differs from the one before only in its numbers.

        So do the pods that it could name, and the nodes of its devices.
        """
        samples, options = result.samples, self.options
        return (
            isinstance(samples, LayoutSamples)
            and samples.layout is self.layout
            and (result.pod is None or result.pod == before.pod)
            and before.received <= result.received
            and result.received - options.oldest < samples.rows[0][0]
            and samples.time <= result.received
            and self._names_alike(cluster)
            and all(keeps_address(belief, cluster) for belief in self._addressed)
            and self._stays(before, result, cluster)
            and not self._ends(result.received - options.oldest - options.window)
        )

    def _names_alike(self, cluster: KnownCluster) -> bool:
        """Return whether the labels name the same devices and pods, though pods may have changed.

        What else depends on the pods is computed again: objections, holdings and readings.
        """
        now = tuple(map(cluster.pod, self._refs))
        if now == self._pods:
            return True
        alike = all(map(_names_equally, now, self._pods))
        if alike:
            self._pods = now
        return alike

    def _stays(self, before: ExporterState, result: ScrapeResult, cluster: KnownCluster) -> bool:
        """Return whether the devices are on the same nodes."""
        if result.node or self._certain:
            return result.node == self._certain
        location = Location(result, before.pod, cluster)
        return all(
            row.identity is not None and location.node(row.identity) == row.series.node
            for row in self.rows
        )

    def _ends(self, too_old: float) -> bool:
        """Return whether an earlier device series is no longer kept."""
        return any(series.received <= too_old for series in self.standing.values())


def shape_of(
    reader: PageReader,
    result: ScrapeResult,
    samples: LayoutSamples,
    state: ExporterState,
    catalog: Catalog,
    options: TelemetryOptions,
) -> PageShape | None:
    """Return the shape of a page that was read, or None if a number alone does not say enough.

    That is so if its meaning depends on other samples of the page, on the time, on a pod's labels,
    or on a scrape target that the samples name as a pod.

    Args:
        samples: of the page.
        state: after the page.
    """
    if (
        not reader.plain
        or not all(belief.lasts for belief in reader.beliefs.values())
        or _name_several_targets(reader.beliefs.values())
    ):
        return None
    spellings: list[Spelling | None] = []
    taken: dict[SeriesKey, list[tuple[int, Spelling]]] = {key: [] for key in reader.by_key}
    left_out: dict[str, int] = {}
    for place, (name, labels, _, _) in enumerate(samples[:: len(samples.rows)]):
        spelling = catalog.spellings.get(name)
        if spelling is not None:
            if spelling.special:
                return None
            flaw, builder = reader.flaw_and_builder(labels, spelling)
            if builder is None or (builder.mig and not spelling.on_mig):
                left_out[flaw] = left_out.get(flaw, 0) + 1
                spelling = None
            else:
                taken[builder.identity.key].append((place, spelling))
        spellings.append(spelling)
    if not taken or not _is_unambiguous(taken, reader.by_key, len(samples.rows)):
        return None
    rows = tuple(
        DeviceRow(
            key,
            columns_of(*zip(*taken[key], strict=True)),
            None if result.node else builder.identity,
            _drop_numbers(state.all_series[key]),
        )
        for key, builder in reader.by_key.items()
    )
    shape = PageShape(
        *(samples.layout, page_numbers(tuple(spellings)), rows, left_out),
        *(state, result.node, catalog, options),
    )
    # A container's values are compared with those of earlier pages.
    return None if shape.of_parts and shape.standing else shape


def _names_equally(now: Pod | None, before: Pod | None) -> bool:
    """Return whether labels that name a pod mean the same beside another state of it.

    They are all of a pod that :func:`adapter.pipeline.devices.tenantlabels.form_belief` and
    :func:`adapter.pipeline.devices.scrapetarget.find_mismatches` look at.
    """
    if now is None or before is None:
        return now is before
    return (
        now.labels == before.labels
        and now.holds_gpu == before.holds_gpu
        and now.may_hold_gpu == before.may_hold_gpu
        and now.finished == before.finished
    )


def _drop_numbers(series: DeviceSeries) -> DeviceSeries:
    nothing = NO_FIELDS
    return replace(series, history=NO_SAMPLES, verdict=CLEAR, reported=nothing, rejected=nothing)


def _name_several_targets(beliefs: Iterable[Belief]) -> bool:
    """Return whether the labels name the pods of several scrape targets.

    Then the exporter's pod is the only one of them that exists, which can change without a change
    of the page. :meth:`PageShape.fits` compares only the pods that samples could be about. If the
    labels name one target, it is the exporter's pod whether it exists or not.
    """
    return len({belief.identity.target for belief in beliefs} - {None}) > 1


def _is_unambiguous(
    rows: Mapping[SeriesKey, Sequence[tuple[int, Spelling]]],
    builders: Mapping[SeriesKey, SeriesBuilder],
    times: int,
) -> bool:
    """Return whether each series has numbers, one of each field at each of the page's times.

    The samples of a pod beside those of its device may be accounted per process.
    """
    for key, row in rows.items():
        fields = [spelling for _, spelling in row]
        if not fields or len(set(fields)) < len(fields) or len(builders[key].frames) > times:
            return False
        if key.pod is not None and SeriesKey(key.device, None, "", "") in builders:
            return False
    return True

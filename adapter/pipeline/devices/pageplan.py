"""Take in a page of which only the numbers differ from the page before.

What a label set names, which device a sample is about, and which field it is of, are the same on
both pages. So the plan that the first page made says where each number goes, and the new state
differs from the old one only in the histories, the verdicts and the times. It is the state that
:func:`adapter.pipeline.devices.ingest.absorb` computes from the samples; any page for which that
is not certain goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter, mul
from typing import Final

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.layout import Layout
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.crosschecks import cross_checked
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.location import KnownCluster, Location
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.reader import DEVICES, PageReader
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.series import NO_FIELDS, DeviceSeries, SeriesKey
from adapter.pipeline.devices.state import (
    Belief,
    Contents,
    ExporterState,
    PagePlan,
    Row,
    still_reported,
)
from adapter.pipeline.devices.tenantlabels import stands
from adapter.pipeline.devices.validity import Invalid, PageNumbers
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import Steps

_PAGE_FIELDS: Final = 512
"""Sets of fields that different exporters write, and of which the numbers are kept."""


_numbers = lru_cache(maxsize=_PAGE_FIELDS)(PageNumbers)


_row = lru_cache(maxsize=_PAGE_FIELDS * 16)(Row)


@lru_cache(maxsize=_PAGE_FIELDS * 16)
def columns_of(row: Row, layout: Layout) -> Callable[[Sequence[float]], tuple[float, ...]] | None:
    """Return what picks a row of the layout from a page's numbers; None if a field lacks either."""
    place_of = dict(zip(row.spellings, row.places, strict=True))
    if len(place_of) < 2 or len(place_of) != layout.width:
        return None
    places = [place_of.get(column) for column in layout.columns]
    known = [place for place in places if place is not None]
    return itemgetter(*known) if len(known) == len(places) else None


def fits(
    plan: PagePlan,
    before: ExporterState,
    result: ScrapeResult,
    oldest: float,
    cluster: KnownCluster,
) -> bool:
    """Return whether a plan gives the state after this page.

    Args:
        oldest: seconds after which a sample is too old.
    """
    samples = result.samples
    return (
        isinstance(samples, LayoutSamples)
        and samples.layout is plan.layout
        and (result.pod is None or result.pod == before.pod)
        and before.received <= result.received
        and result.received - oldest < samples.time <= result.received
        and _newer(samples.time, before)
        and before.all_series.keys() == plan.rows.keys()
        and all(stands(belief, cluster) for belief in before.beliefs.values())
    )


def _newer(time: float, before: ExporterState) -> bool:
    """Return whether a time is after all samples. Those of a store are older than its answer."""
    if before.received < time:
        return True
    return all(series.history.newest < time for series in before.all_series.values())


def plan_of(reader: PageReader, result: ScrapeResult, catalog: Catalog) -> PagePlan | None:
    """Return the plan of a page that was read, or None if a number alone does not say enough.

    That is so if its meaning depends on other samples of the page, on the time, or on a scrape
    target that the samples name as a pod.
    """
    samples = result.samples
    if (
        not isinstance(samples, LayoutSamples)
        or not reader.plain
        or _name_several_targets(reader.beliefs)
    ):
        return None
    layout = samples.layout
    spellings: list[Spelling | None] = []
    rows: dict[SeriesKey, list[tuple[int, Spelling]]] = {key: [] for key in reader.by_key}
    left_out: dict[str, int] = {}
    for place, (name, labels) in enumerate(
        zip(layout.names, map(layout.sets.__getitem__, layout.set_of), strict=True)
    ):
        spelling = catalog.spellings.get(name)
        if spelling is not None:
            if spelling.special:
                return None
            flaw, builder = reader.taken(labels, spelling)
            if builder is None or (builder.mig and not spelling.on_mig):
                left_out[flaw] = left_out.get(flaw, 0) + 1
                spelling = None
            else:
                rows[builder.identity.key].append((place, spelling))
        spellings.append(spelling)
    if not _single(rows, reader.by_key):
        return None
    return PagePlan(
        layout,
        _numbers(tuple(spellings)),
        {
            key: (builder.identity, _row(*zip(*rows[key], strict=True)))
            for key, builder in reader.by_key.items()
        },
        frozenset(
            spelling.field.name
            for key, builder in reader.by_key.items()
            if not builder.mig
            for _, spelling in rows[key]
        ),
        left_out,
    )


def _name_several_targets(beliefs: Mapping[int, Belief]) -> bool:
    """Return whether the labels name the pods of several scrape targets.

    Then the exporter's pod is the only one of them that exists, which can change without a change
    of the page. :func:`fits` compares only the pods that samples could be about. If the
    labels name one target, it is the exporter's pod whether it exists or not.
    """
    return len({belief.identity.target for belief in beliefs.values()} - {None}) > 1


def _single(
    rows: Mapping[SeriesKey, Sequence[tuple[int, Spelling]]],
    builders: Mapping[SeriesKey, SeriesBuilder],
) -> bool:
    """Return whether each series has numbers, one of each field, of one time.

    The samples of a pod beside those of its device may be accounted per process.
    """
    for key, row in rows.items():
        fields = [spelling for _, spelling in row]
        if not fields or len(set(fields)) < len(fields) or len(builders[key].frames) > 1:
            return False
        if key.pod is not None and SeriesKey(key.device, None, "", "") in builders:
            return False
    return True


def renewed(
    before: ExporterState,
    plan: PagePlan,
    result: ScrapeResult,
    catalog: Catalog,
    options: TelemetryOptions,
    rejects: Rejects,
    cluster: KnownCluster,
) -> Steps[ExporterState]:
    """Compute an exporter's state after a page that the plan fits, in steps."""
    samples = result.samples
    assert isinstance(samples, LayoutSamples)  # noqa: S101 - see fits
    values, time, received = samples.values, samples.time, result.received
    for reason, times in plan.left_out.items():
        rejects.count(reason, times)
    for belief in before.beliefs.values():
        at = belief.identity.device
        for reason in belief.aside:
            rejects.add(Reject(reason, "", at.id if at else ""), received)
    invalid = plan.numbers.invalid(values)
    if invalid:
        _count(plan, invalid, values, received, rejects)
    converted = list(map(mul, values, plan.numbers.factors))
    reported = still_reported(before.reported, plan.reported, received, options.oldest)
    names = frozenset(reported)
    location = Location(result, before.pod, cluster)
    all_series: dict[SeriesKey, DeviceSeries] = {}
    for key, (identity, row) in plan.rows.items():
        earlier = before.all_series[key]
        all_series[key] = DeviceSeries(
            earlier.device,
            earlier.assignment,
            earlier.origin,
            location.node(identity),
            earlier.host,
            received,
            _history(earlier.history, row, converted, invalid, time, catalog, options),
            names,
            options.window,
            earlier.shared,
            cut=earlier.cut,
            cluster=earlier.cluster,
            rejected=_rejected(row, invalid) if invalid else NO_FIELDS,
        )
        if not len(all_series) % DEVICES:
            yield
    idle = before.idle.copy()
    if options.cross_checks:
        all_series = yield from cross_checked(all_series, before, idle, options, rejects)
    return ExporterState(
        origin=before.origin,
        received=received,
        pod=before.pod,
        contents=Contents(all_series, reported, idle),
        scale=before.scale,
        beliefs=before.beliefs,
        disowned=before.disowned,
        rejected=before.rejected,
        plan=plan,
    )


def _rejected(row: Row, invalid: Mapping[int, Invalid]) -> frozenset[str]:
    """Return the fields of a device series that have an invalid number."""
    places = zip(row.spellings, row.places, strict=True)
    return frozenset(spelling.field.name for spelling, place in places if place in invalid)


def _history(
    earlier: History,
    row: Row,
    values: Sequence[float],
    invalid: Iterable[int],
    time: float,
    catalog: Catalog,
    options: TelemetryOptions,
) -> History:
    window = catalog.span(earlier.layout, options.window, options.oldest)
    if not invalid:
        picked = columns_of(row, earlier.layout)
        if picked is not None:
            return earlier.with_row(time, picked(values), window)
    places = zip(row.spellings, row.places, strict=True)
    frame = {spelling: values[place] for spelling, place in places if place not in invalid}
    if not frame:
        return earlier
    return earlier.extended({time: frame}, window, options.oldest)


def _count(
    plan: PagePlan,
    invalid: Mapping[int, Invalid],
    values: Sequence[float],
    received: float,
    rejects: Rejects,
) -> None:
    device_of = {place: key.device for key, (_, row) in plan.rows.items() for place in row.places}
    for place, reason in invalid.items():
        spelling = plan.numbers.spellings[place]
        name = spelling.name if spelling else ""
        rejects.add(Reject(reason, name, device_of[place]), received, values[place])

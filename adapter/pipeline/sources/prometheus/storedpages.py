"""Put the samples of an exporter together from the answers of a round.

From round to round, an exporter has the same series in the same order, and each has new samples of
the same times: one, or several after a late round. Then only the numbers differ, as on the pages of
an exporter that is scraped directly, and they are handed over as such pages
(:mod:`adapter.pipeline.devices.pages`).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from adapter.pipeline.exposition.pagelayout import LayoutSamples, share_equal
from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from apiservice.runtime.steps import Steps

MOST_SAMPLES: Final = 4096
"""Samples of a page with a layout: 16 GPUs with 7 instances each, and 32 fields, have as many.

A query that drops the exporters' labels gives one page for the whole store. It changes with each
pod that comes or goes, and a layout of it is long work.
"""


_MOST_TIMES: Final = 8
"""Times of such pages: a round that is seven intervals late has as many."""


class SampleLayout:
    """The names and label sets of samples. Immutable.

    Args:
        samples: equal label sets are one object.
    """

    __slots__ = ("_names", "_set_of", "sets")

    def __init__(self, samples: Sequence[Sample]) -> None:
        sets = {id(sample.labels): sample.labels for sample in samples}
        place_of = {address: place for place, address in enumerate(sets)}
        self.sets = tuple(sets.values())
        """The distinct label sets."""
        self._set_of = share_equal(tuple(place_of[id(sample.labels)] for sample in samples))
        """The label set of each sample, as an index."""
        self._names = share_equal(tuple(sample.name for sample in samples))

    def samples(self, rows: Sequence[tuple[float, Sequence[float]]]) -> list[Sample]:
        """Return the samples of times, each with a number of each series, the oldest first."""
        labels = map(self.sets.__getitem__, self._set_of)
        return [
            Sample(*series, numbers[place], time)
            for place, series in enumerate(zip(self._names, labels, strict=True))
            for time, numbers in rows
        ]


class _Known(NamedTuple):
    """The series of an exporter's last page."""

    digest: int
    """Hash of the texts of their labels, and of how many there are in each answer."""
    layout: SampleLayout

    def is_of(self, page: _Page) -> bool:
        """Return whether a page has these series, with the same label sets: a round without the
        exporter may have forgotten them."""
        return self.digest == page.digest and self.layout.sets[0] is page.labels


class StoredPages:
    """The layouts of the exporters' pages in a store."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def forget(self, origin: str) -> None:
        """Forget an exporter."""
        self._known.pop(origin, None)

    def of(self, origin: str, answers: Sequence[QueryAnswer]) -> Steps[Sequence[Sample]]:
        """Return an exporter's samples, oldest first within a series, in steps.

        Args:
            answers: the answers of the round, always in the same order of groups.
        """
        # The layout has the label sets of the last round. After another result, those of now may be
        # other objects, which are identified again.
        series = self._known.pop(origin, None)
        page = _page(origin, answers)
        if page is None:
            return (yield from _join_samples(origin, answers))
        if series is None or not series.is_of(page):
            newest: list[Sample] = []
            for answer in answers:
                newest += yield from answer.newest_of(origin)
            series = _Known(page.digest, SampleLayout(newest))
        self._known[origin] = series
        *earlier, (time, numbers) = page.rows
        make = partial(series.layout.samples, page.rows)
        return LayoutSamples(series.layout, numbers, time, make, earlier)


class _Page(NamedTuple):
    """An exporter's samples of some scrapes."""

    digest: int
    """That of :class:`_Known`."""
    labels: Mapping[str, str]
    """Of the first series."""
    rows: list[tuple[float, array[float]]]
    """Times, each with a number of each series; the oldest first."""


def _page(origin: str, answers: Sequence[QueryAnswer]) -> _Page | None:
    """Return an exporter's samples; None if there are many, or if not all series have the same
    times."""
    if sum(len(answer.places.get(origin, ())) for answer in answers) > MOST_SAMPLES:
        return None
    digests = array("q")
    labels: Mapping[str, str] | None = None
    columns: list[tuple[array[float], list[array[float]]]] = []
    for answer in answers:
        if origin in answer.standing:
            return None
        places = answer.places.get(origin, ())
        digests.append(len(places))
        digests.extend(map(answer.digests.__getitem__, places))
        if places:
            rows = _rows(answer, places)
            if rows is None or (columns and columns[0][0] != rows[0]):
                return None
            columns.append(rows)
            labels = answer.sets[places[0]].labels if labels is None else labels
    if labels is None:
        return None
    times = columns[0][0]
    joined = [
        array("d", chain.from_iterable(some))
        for some in zip(*(its for _, its in columns), strict=True)
    ]
    return _Page(hash(digests.tobytes()), labels, list(zip(times, joined, strict=True)))


def _rows(
    answer: QueryAnswer, places: Sequence[int]
) -> tuple[array[float], list[array[float]]] | None:
    """Return the times of series, and a number of each series for each of them, oldest first.

    None if the series have different times, or many.
    """
    newest = set(map(answer.times.__getitem__, places))
    spans = [answer.earlier_span(place) for place in places] if answer.earlier_times else []
    start, end = spans[0] if spans else (0, 0)
    its = {answer.earlier_times[first:last].tobytes() for first, last in spans}
    if len(newest) > 1 or len(its) > 1 or end - start >= _MOST_TIMES:
        return None
    times = array("d", (time - answer.ahead for time in answer.earlier_times[start:end]))
    times.append(newest.pop() - answer.ahead)
    rows = [
        array("d", [answer.earlier_numbers[first + row] for first, _ in spans])
        for row in range(end - start)
    ]
    return times, [*rows, array("d", map(answer.numbers.__getitem__, places))]


def _join_samples(origin: str, answers: Sequence[QueryAnswer]) -> Steps[list[Sample]]:
    """Return an exporter's samples of any times, in steps."""
    samples: list[Sample] = []
    for answer in answers:
        samples += yield from answer.samples_of(origin)
    return samples

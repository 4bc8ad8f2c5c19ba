"""Put the samples of an exporter together from the answers of a round.

From round to round, an exporter has the same series in the same order, and each has one new sample,
all of one scrape. Then only the numbers differ, as on the pages of an exporter that is scraped
directly, and they are handed over as such a page (:mod:`adapter.pipeline.devices.pages`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.pipeline.exposition.pagelayout import LayoutSamples, SampleLayout
from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from apiservice.runtime.steps import Steps

MOST_SAMPLES: Final = 4096
"""Samples of a page with a layout: 16 GPUs with 7 instances each, and 32 fields, have as many.

A query that drops the exporters' labels gives one page for the whole store. It changes with each
pod that comes or goes, and a layout of it is long work.
"""


class _Known(NamedTuple):
    """The series of an exporter's last page."""

    digest: int
    """Hash of the texts of their labels, and of how many there are in each answer."""
    layout: SampleLayout


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
        known = self._known.pop(origin, None)
        page = _page(origin, answers)
        if page is None:
            return (yield from _joined(origin, answers))
        if known is None or known.digest != page.digest:
            samples = yield from _joined(origin, answers)
            layout = SampleLayout((row.name for row in samples), [row.labels for row in samples])
            known = _Known(page.digest, layout)
        self._known[origin] = known
        return LayoutSamples(known.layout, page.numbers, page.time)


class _Page(NamedTuple):
    """An exporter's samples of one scrape."""

    digest: int
    """That of :class:`_Known`."""
    numbers: array[float]
    time: float


def _page(origin: str, answers: Sequence[QueryAnswer]) -> _Page | None:
    """Return an exporter's samples; None if there are many, or if they are of several scrapes."""
    if sum(len(answer.places.get(origin, ())) for answer in answers) > MOST_SAMPLES:
        return None
    digests, numbers = array("q"), array("d")
    times: set[float] = set()
    for answer in answers:
        if origin in answer.standing or _has_earlier(answer, origin):
            return None
        places = answer.places.get(origin, ())
        digests.append(len(places))
        digests.extend(map(answer.digests.__getitem__, places))
        numbers.extend(map(answer.numbers.__getitem__, places))
        whens = set(map(answer.times.__getitem__, places))
        times.update(when - answer.ahead for when in whens)
    return _Page(hash(digests.tobytes()), numbers, times.pop()) if len(times) == 1 else None


def _has_earlier(answer: QueryAnswer, origin: str) -> bool:
    return bool(answer.earlier_times) and any(
        answer.earlier_of(place) for place in answer.places.get(origin, ())
    )


def _joined(origin: str, answers: Sequence[QueryAnswer]) -> Steps[list[Sample]]:
    """Return an exporter's samples of any times, in steps."""
    samples: list[Sample] = []
    for answer in answers:
        samples += yield from answer.samples_of(origin)
    return samples

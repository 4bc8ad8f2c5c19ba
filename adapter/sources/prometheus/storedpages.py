"""Put the samples of an exporter together from the answers of a round.

From round to round, an exporter has the same series in the same order, and each has one new sample,
all of one scrape. Then only the numbers differ, as on the pages of an exporter that is scraped
directly, and they are handed over as such a page (:mod:`adapter.devices.pageplan`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from adapter.exposition.pagelayout import LayoutSamples, SampleLayout
from adapter.exposition.samples import Sample
from adapter.sources.prometheus.answer import QueryAnswer


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

    def of(self, origin: str, answers: Sequence[QueryAnswer]) -> Sequence[Sample]:
        """Return an exporter's samples, oldest first within a series.

        Args:
            answers: the answers of the round, always in the same order of groups.
        """
        # The layout has the label sets of the last round. After another result, those of now may be
        # other objects, which are identified again.
        known = self._known.pop(origin, None)
        digests, numbers = array("q"), array("d")
        times: set[float] = set()
        for answer in answers:
            if origin in answer.standing or _has_earlier(answer, origin):
                return _several(origin, answers)
            places = answer.places.get(origin, ())
            digests.append(len(places))
            digests.extend(map(answer.digests.__getitem__, places))
            numbers.extend(map(answer.numbers.__getitem__, places))
            whens = set(map(answer.times.__getitem__, places))
            times.update(when - answer.ahead for when in whens)
        if len(times) != 1:
            return _several(origin, answers)
        digest = hash(digests.tobytes())
        if known is None or known.digest != digest:
            known = _Known(digest, _layout(origin, answers))
        self._known[origin] = known
        return LayoutSamples(known.layout, numbers, times.pop())


def _has_earlier(answer: QueryAnswer, origin: str) -> bool:
    return bool(answer.earlier_times) and any(
        answer.earlier_of(place) for place in answer.places.get(origin, ())
    )


def _layout(origin: str, answers: Sequence[QueryAnswer]) -> SampleLayout:
    samples = _several(origin, answers)
    return SampleLayout((row.name for row in samples), [row.labels for row in samples])


def _several(origin: str, answers: Sequence[QueryAnswer]) -> list[Sample]:
    """Return samples of several times."""
    return [sample for answer in answers for sample in answer.samples_of(origin)]

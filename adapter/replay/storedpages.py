"""The pages of exporters from the series of a store.

A scrape gives all samples of an exporter one time, so the samples of one time are one page. If the
exporter states times of its own, the samples of one scrape interval are one page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from adapter.exposition.samples import Sample, ScrapeResult
from adapter.recording.events import PageRead
from adapter.replay.storequeries import StoredSeries


def pages(found: Iterable[StoredSeries], scrape_interval: float) -> Iterator[PageRead]:
    """Yield the pages of all exporters, in no order.

    Args:
        found: the exporters' series in one span.
        scrape_interval: seconds between two scrapes.
    """
    of: defaultdict[str, list[StoredSeries]] = defaultdict(list)
    for row in found:
        of[row.origin].append(row)
    for origin, rows in of.items():
        by_time = _by_time(rows)
        if len(by_time) > 2 * max(len(row.points) for row in rows):
            by_time = _by_interval(by_time, scrape_interval)
        for samples in by_time.values():
            received = max(sample.time for sample in samples)
            yield PageRead(received, ScrapeResult(origin, None, samples, received))


def _by_time(rows: Sequence[StoredSeries]) -> dict[float, list[Sample]]:
    found: defaultdict[float, list[Sample]] = defaultdict(list)
    for row in rows:
        for time, value in row.points:
            found[time].append(Sample(row.name, row.labels, value, time))
    return found


def _by_interval(by_time: dict[float, list[Sample]], interval: float) -> dict[float, list[Sample]]:
    found: defaultdict[float, list[Sample]] = defaultdict(list)
    for time, samples in sorted(by_time.items()):
        found[time // interval].extend(samples)
    return found

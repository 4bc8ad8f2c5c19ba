"""Read spans of raw samples from a store with the Prometheus query API.

A span is the instant query of a range selector (``metric[1h]``) at its end. Its answer has the
samples with their own times, and none where there was none. A range query would evaluate each step
from the last five minutes, and so fill in samples that are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.pipeline.sources.prometheus.labelsets import origin_of
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.retries import attempts
from adapter.pipeline.sources.prometheus.seriesreader import SeriesAnswer, reader_of

MOST_BYTES: Final = 16 << 20
"""Bytes of one answer. It takes up to seven times as many while it is decoded."""


class StoredSeries(NamedTuple):
    """The samples of one series in one span."""

    name: str
    labels: Mapping[str, str]
    origin: str
    """The exporter; see :mod:`adapter.pipeline.sources.prometheus.labelsets`."""
    points: Sequence[tuple[float, float]]
    """Epoch seconds and value, oldest first."""


@dataclass(slots=True)
class StoredSpan:
    """What a store has of some series, in one span."""

    all_series: list[StoredSeries] = field(default_factory=list)
    rejects: Counter[str] = field(default_factory=Counter)
    partial: str = ""
    """Why series may be missing, by the engine; empty if it is complete."""
    size: int = 0
    """Bytes of its text."""


class StoreQueries:
    """Queries one store.

    Args:
        options: its address and login; ``timeout`` bounds one query.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        self._retries = options.retries
        most = min(options.max_bytes, MOST_BYTES)
        self._reader = reader_of(replace(options, max_bytes=most))
        self.url = self._reader.url

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()

    async def read(self, expression: str, start: float, end: float) -> StoredSpan:
        """Return the samples after ``start``, up to ``end``.

        Args:
            expression: a selector without a range.

        Raises:
            SourceError: the store failed, or the answer is above a limit.
        """
        query = f"{expression}[{round((end - start) * 1000)}ms]"
        answer: SeriesAnswer = await attempts(self._retries)(self._reader.instant, query, end)
        # Engines differ in whether a span is closed.
        in_span = [(series, series.points.between(start, end)) for series in answer.series]
        return StoredSpan(
            [
                StoredSeries(series.name, series.labels, origin_of(series.labels), points)
                for series, points in in_span
                if points
            ],
            answer.left_out,
            answer.partial,
            answer.size,
        )

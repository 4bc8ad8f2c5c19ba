"""Read spans of raw samples from a store with the Prometheus query API.

A span is the instant query of a range selector (``metric[1h]``) at its end. Its answer has the
samples with their own times, and none where there was none. A range query would evaluate each step
from the last five minutes, and so fill in samples that are missing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import aiohttp

from adapter.sources.errors import SourceError, describe
from adapter.sources.prometheus.answer import QueryAnswer
from adapter.sources.prometheus.labelsets import SeriesMemo
from adapter.sources.prometheus.options import PrometheusOptions
from adapter.sources.prometheus.queryapi import QueryApi
from adapter.sources.prometheus.querygroup import QueryGroup
from adapter.sources.prometheus.reader import AnswerReader
from adapter.sources.prometheus.retries import attempts
from apiservice.runtime.steps import at_once

MOST_SAMPLES: Final = 5_000_000
"""Samples of one span that are held."""


class StoredSeries(NamedTuple):
    """The samples of one series in one span."""

    name: str
    labels: Mapping[str, str]
    origin: str
    """The exporter; see :mod:`adapter.sources.prometheus.labelsets`."""
    points: Sequence[tuple[float, float]]
    """Epoch seconds and value, oldest first."""


@dataclass(slots=True)
class StoredSpan:
    """What a store has of some series, in one span."""

    all_series: list[StoredSeries] = field(default_factory=list)
    rejects: Counter[str] = field(default_factory=Counter)
    partial: str = ""
    """Why series may be missing, by the engine; empty if it is complete."""


class StoreQueries:
    """Queries one store.

    Args:
        options: its address and login; ``timeout`` and ``max_bytes`` bound one query.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        self._options = options
        self._api = QueryApi(options)
        self._session: aiohttp.ClientSession | None = None
        self._memo = SeriesMemo()
        self.url = self._api.url

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def turn(self) -> None:
        """End a span: forget the label sets that it did not contain."""
        self._memo.turn()

    async def read(self, expression: str, start: float, end: float) -> StoredSpan:
        """Return the samples after ``start``, up to ``end``.

        Args:
            expression: a selector without a range.

        Raises:
            SourceError: the store failed, or the answer is above a limit.
        """
        query = f"{expression}[{round((end - start) * 1000)}ms]"
        try:
            answer: QueryAnswer = await attempts(self._options.retries)(self._ask, query, end)
        except Exception as error:
            raise self._api.discreet(describe(error)) from error
        partial = "; ".join(answer.warnings[:2])[:300] or "the engine says so"
        found = StoredSpan(rejects=answer.rejects, partial=partial if answer.partial else "")
        found.all_series += _series(answer, start, end)
        return found

    async def _ask(self, query: str, end: float) -> QueryAnswer:
        if self._session is None:
            headers = {"User-Agent": "gpu-metrics-adapter", "Accept-Encoding": "gzip"}
            self._session = aiohttp.ClientSession(
                auto_decompress=False, headers=headers | dict(self._options.headers)
            )
        read: list[QueryAnswer] = []

        async def taken(parts: AsyncIterator[bytes], _: float) -> bytes:
            # The store's own times count: nothing is compared with this machine's clock.
            reader = AnswerReader(self._memo, QueryGroup("", ()))
            async for part in parts:
                at_once(reader.feed(part))
                if reader.count > MOST_SAMPLES:
                    raise SourceError("too_large", f"the answer has over {MOST_SAMPLES} samples")
            read.append(at_once(reader.finish()))
            return b""

        try:
            async with asyncio.timeout(10 * self._options.timeout):
                await self._api.ask(self._session, query, read=taken, at=end)
        except Exception as error:
            raise describe(error) from error
        return read[0]


def _series(answer: QueryAnswer, start: float, end: float) -> Iterator[StoredSeries]:
    """Yield the series of an answer, within the span: engines differ in whether it is closed."""
    for origin, places in answer.places.items():
        for place, sample in zip(places, at_once(answer.newest_of(origin)), strict=True):
            points = [*answer.earlier_of(place), (sample.time, sample.value)]
            within = [point for point in points if start < point[0] <= end]
            if within:
                yield StoredSeries(sample.name, sample.labels, origin, within)

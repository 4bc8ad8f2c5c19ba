"""Read series from a store: the reader of every tool and controller that is not a source.

``prometheus-api-client`` asks and decodes. It is synchronous, it holds an answer as a whole, and it
has no bound in bytes and no login of a cloud. So it works in a thread, and what it sends goes
through a :class:`QueryPort`, which has these. It drops the warnings of an answer: they are read
before it gets the answer. The sources read parts of much larger answers as they arrive
(:mod:`adapter.pipeline.sources.prometheus.reader`).
"""

from __future__ import annotations

import asyncio
import io
from array import array
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, overload

import msgspec
import requests

from adapter.pipeline.sources.errors import SourceError, describe
from adapter.pipeline.sources.prometheus.answer import (
    QueryResult,
    not_json_error,
    result_of,
    sample_number,
)
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.queryapi import QueryApi
from apiservice.runtime.requesterror import RequestError

if TYPE_CHECKING:
    from prometheus_api_client import PrometheusConnect

MOST_BYTES: Final = 64 << 20
"""Bytes of one answer, after decompression."""
MOST_PARTS: Final = 4_000_000
"""Commas of one answer: each takes up to 80 bytes of memory while the answer is decoded. A sample
has two."""
MOST_OBJECTS: Final = 800_000
"""Braces of one answer: each takes up to 350 bytes, and a series has two."""
_PATH: Final = "/api/v1/"


class QueryPort(Protocol):
    """Sends one request to a store."""

    @property
    def url(self) -> str:
        """The store's name in messages."""

    def fetch(self, path: str, form: Mapping[str, str]) -> Coroutine[Any, Any, bytes]:
        """Return the answer of a path below ``/api/v1/``; its status is 200.

        Raises:
            SourceError: the store rejected the request, or does not answer.
        """

    def hide_credentials(self, error: SourceError) -> SourceError:
        """Return the error without credentials, which a store may repeat."""

    async def close(self) -> None:
        """Close the connections."""


class Points(Sequence[tuple[float, float]]):
    """Epoch seconds and value of each sample, in the answer's order: 16 bytes each."""

    __slots__ = ("times", "values")

    def __init__(self, points: Sequence[tuple[float, float]] = ()) -> None:
        self.times = array("d", [time for time, _ in points])
        self.values = array("d", [value for _, value in points])

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self.times, self.values, strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[float, float]: ...
    @overload
    def __getitem__(self, index: slice) -> Points: ...
    def __getitem__(self, index: int | slice) -> tuple[float, float] | Points:
        if isinstance(index, int):
            return self.times[index], self.values[index]
        some = Points()
        some.times, some.values = self.times[index], self.values[index]
        return some

    def between(self, start: float, end: float) -> Points:
        """Return the samples after ``start``, up to ``end``."""
        return Points([point for point in self if start < point[0] <= end])


class QueriedSeries(NamedTuple):
    """The samples of one series."""

    name: str
    """Empty for a result of an expression that drops it."""
    labels: Mapping[str, str]
    """Without the name."""
    points: Points
    """Values may be NaN or infinite."""


@dataclass(slots=True)
class SeriesAnswer:
    """What a store answers to one query."""

    series: list[QueriedSeries] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Series and samples that are left out, by reason: ``bad_series``, ``duplicate_series``,
    ``histogram`` (native histograms have no value), ``bad_value`` (no number, or a time after the
    year 9999)."""
    partial: str = ""
    """Why existing series may be missing, by the engine; empty if the answer is complete."""
    size: int = 0
    """Bytes of its text."""


class SeriesReader:
    """Sends queries to one store.

    Raises of its methods:
        SourceError: the store does not answer in time, rejects the query, or answers with more
            than the bounds or in another form. The text is one line.
    """

    def __init__(self, store: QueryPort) -> None:
        self._store = store
        self.url = store.url
        """The store's name in messages."""

    async def instant(self, query: str, at: float | None = None) -> SeriesAnswer:
        """Return the vector or matrix of a query, now or at a time in epoch seconds."""
        time = {} if at is None else {"time": f"{at:.3f}"}
        return await self._read(lambda library: library.custom_query(query, time))

    async def range(self, query: str, start: float, end: float, step: float) -> SeriesAnswer:
        """Return the matrix of a query, evaluated each ``step`` seconds; see the class."""
        first, last = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)
        return await self._read(
            lambda library: library.custom_query_range(query, first, last, f"{step:g}")
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._store.close()

    async def _read(self, ask: Callable[[PrometheusConnect], Any]) -> SeriesAnswer:
        session = _Session(self._store, asyncio.get_running_loop())
        try:
            return await asyncio.to_thread(_ask_library, self._store.url, session, ask)
        except (SourceError, RequestError, OSError) as error:
            raise self._store.hide_credentials(describe(error)) from None
        finally:
            session.cancel()


def reader_of(options: PrometheusOptions) -> SeriesReader:
    """Return a reader with the address, login, and limits of ``options``.

    Raises:
        CredentialError: a TLS file cannot be used.
    """
    return SeriesReader(QueryApi(replace(options, max_bytes=min(options.max_bytes, MOST_BYTES))))


class _Session(requests.Session):
    """What the library sends goes to a store, from the library's thread."""

    def __init__(self, store: QueryPort, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._store = store
        self._loop = loop
        self._asked: Future[bytes] | None = None
        self._cancelled = False
        self.result: QueryResult | None = None
        """The result in the last answer."""
        self.size = 0
        """Bytes of the last answer."""

    def cancel(self) -> None:
        """End the request in progress, or the next one: nobody waits for the thread any more."""
        self._cancelled = True
        if self._asked is not None:
            self._asked.cancel()

    def request(  # type: ignore[override]  # of its parameters, the library uses these
        self, method: str, url: str, *, params: Mapping[str, object], **_: object
    ) -> requests.Response:
        path = url.rpartition(_PATH)[2]
        form = {name: str(value) for name, value in params.items()}
        sent = self._store.fetch(path, form)
        self._asked = asyncio.run_coroutine_threadsafe(sent, self._loop)
        if self._cancelled:  # before the request was known
            self._asked.cancel()
        body = self._asked.result()
        if body.count(b",") > MOST_PARTS:
            raise SourceError("too_large", f"the answer has over {MOST_PARTS} labels and samples")
        if body.count(b"{") > MOST_OBJECTS:
            raise SourceError("too_large", f"the answer has over {MOST_OBJECTS // 2} series")
        self.result, self.size = result_of(body), len(body)
        try:
            body.decode()  # the library would replace what is not UTF-8
        except UnicodeDecodeError as error:
            raise not_json_error(body, error) from None
        response = requests.Response()
        response.status_code, response.encoding = 200, "utf-8"
        response.raw = io.BytesIO(body)
        return response


def _ask_library(
    url: str, session: _Session, ask: Callable[[PrometheusConnect], Any]
) -> SeriesAnswer:
    # Here, because it takes a tenth of a second.
    from prometheus_api_client import PrometheusConnect  # noqa: PLC0415

    try:
        rows = ask(PrometheusConnect(url, session=session))
    except (ValueError, RecursionError) as error:
        raise not_json_error(b"", error) from None
    result = session.result
    if result is None or result.type not in ("matrix", "vector") or not isinstance(rows, list):
        kind = result.type[:20] if result is not None else "nothing"
        raise SourceError("result_type", f"the query returns a {kind}, not a vector or matrix")
    answer = SeriesAnswer(size=session.size)
    if result.partial:
        answer.partial = "; ".join(result.warnings[:2])[:300] or "the engine says so"
    keys: set[frozenset[tuple[str, str]]] = set()
    rows.reverse()
    while rows:  # each is freed once it is read
        series = _series(rows.pop(), answer.left_out)
        if series is None:
            continue
        key = frozenset((*series.labels.items(), ("__name__", series.name)))
        if key in keys:
            answer.left_out["duplicate_series"] += 1
        elif series.points:
            keys.add(key)
            answer.series.append(series)
    return answer


_Sample = tuple[float, str]


class _Row(msgspec.Struct):
    metric: dict[str, str]
    value: _Sample | None = None
    values: list[_Sample] = []
    histogram: Any = None
    histograms: list[Any] = []


def _series(row: Any, left_out: Counter[str]) -> QueriedSeries | None:
    """Return a series of an answer; count what is left out of it."""
    try:
        decoded = msgspec.convert(row, _Row)
    except msgspec.ValidationError:
        left_out["bad_series"] += 1
        return None
    histograms = len(decoded.histograms) + (decoded.histogram is not None)
    samples = decoded.values or ([decoded.value] if decoded.value else [])
    points = Points()
    for time, text in samples:
        number = sample_number(time, text)
        if number is not None:
            points.times.append(time)
            points.values.append(number)
    left_out.update(_nonzero_counts(histogram=histograms, bad_value=len(samples) - len(points)))
    name = decoded.metric.pop("__name__", "")
    return QueriedSeries(name, decoded.metric, points)


def _nonzero_counts(**counts: int) -> dict[str, int]:
    """Return the counts that are not 0: every reason that an answer names has occurred."""
    return {reason: count for reason, count in counts.items() if count}

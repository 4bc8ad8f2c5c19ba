"""Parse the answers of the Prometheus query API.

Queries are range selectors evaluated at the current time, because only a matrix of raw samples
contains the time at which each value was scraped. An instant vector has the time of
the query, and shows a series for five minutes after its last sample (Prometheus,
"Querying basics", Staleness). The ``query`` setting may still produce a vector; its values
count as measured at the time of the query.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from adapter.devices.device import cluster
from adapter.exposition.samples import Sample
from adapter.sources.errors import SourceError
from adapter.sources.prometheus.querygroup import QueryGroup

_ORIGIN_LABELS = ("instance", "Hostname", "hostname", "node")
"""Labels that distinguish exporters, best first. ``instance`` is the scrape target's address."""
NO_ORIGIN = "prometheus"
"""The origin of samples that name none."""


@dataclass(slots=True)
class QueryAnswer:
    """A decoded answer."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    """Origin -> the new samples: the newest of every series, and earlier ones that the last round
    did not have; oldest first within a series.
    """
    newest: dict[str, list[Sample]] = field(default_factory=dict)
    """Origin -> the newest sample of each series."""
    rejects: Counter[str] = field(default_factory=Counter)
    """Series and samples that could not be read, by reason."""
    warnings: tuple[str, ...] = ()
    """The engine's remarks on the answer, for example that it did not reach a store."""
    partial: bool = False
    """Whether existing series may be missing."""
    times: list[tuple[_Series, float]] = field(default_factory=list)
    """Series, and the newest sample's time by the engine's clock."""

    def accept(self) -> None:
        """Note that the samples are handed over, so that later answers leave them out.

        This is not called for an answer that is rejected or late, so that the next answer
        contains its samples again.
        """
        for series, time in self.times:
            series.seen = time


@dataclass(slots=True, eq=False)
class _Series:
    name: str
    labels: Mapping[str, str]
    origin: str
    key: bytes
    seen: float = -math.inf
    """Epoch seconds, by the engine's clock, of the newest sample handed over."""


class SeriesMemo:
    """The label sets of the last round, so that equal texts are parsed once and share one
    object."""

    def __init__(self) -> None:
        self._old: dict[bytes, _Series] = {}
        self._new: dict[bytes, _Series] = {}
        self._sets: dict[bytes, Mapping[str, str]] = {}

    def __len__(self) -> int:
        return len(self._old.keys() | self._new.keys())

    def turn(self) -> None:
        """End a round: drop the label sets that it did not contain."""
        self._old, self._new = self._new, {}
        # A list, because the thread of a query that timed out may still add to it.
        self._sets = {series.key: series.labels for series in list(self._old.values())}

    def series(self, raw: bytes) -> _Series:
        """Return the series of a ``metric`` object; raises msgspec.DecodeError."""
        digest = blake2b(raw, digest_size=16).digest()
        known = self._new.get(digest) or self._old.get(digest)
        if known is None:
            labels = _labels.decode(raw)
            name = labels.pop("__name__", "")
            rest = msgspec.json.encode(labels, order="sorted")
            key = blake2b(rest, digest_size=16).digest()
            shared = self._sets.setdefault(key, labels)
            known = _Series(name, shared, _origin(shared), key)
        self._new[digest] = known
        return known


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 - the wire's name
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    errorType: str = ""  # noqa: N815 - as the API spells it
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    isPartial: bool = False  # noqa: N815 - VictoriaMetrics' word


class _Result(msgspec.Struct):
    metric: msgspec.Raw
    values: list[tuple[float, str]] | None = None
    value: tuple[float, str] | None = None

    def samples(self) -> Sequence[tuple[float, str]]:
        """(Epoch seconds, number as text), oldest first; empty for a native histogram."""
        return self.values or ([self.value] if self.value else [])


_answer = msgspec.json.Decoder(_Answer)
_labels = msgspec.json.Decoder(dict[str, str])
_raw_results = msgspec.json.Decoder(list[msgspec.Raw])
_result = msgspec.json.Decoder(_Result)


def decode(body: bytes, memo: SeriesMemo, group: QueryGroup, ahead: float = 0.0) -> QueryAnswer:
    """Parse an answer of ``/api/v1/query``. A malformed series costs only that series.

    Args:
        ahead: seconds by which the engine's clock is ahead of the local clock.

    Raises:
        SourceError: ``not_json``, ``query`` for an error of the engine, or
            ``result_type`` for a scalar or string.
    """
    said = result_of(body)
    if said.type not in ("matrix", "vector"):
        raise SourceError(
            "result_type",
            f"the query returns a {said.type[:20]}; it must return a vector or matrix",
        )
    found = QueryAnswer(warnings=said.warnings, partial=said.partial)
    name = group.series[0] if len(group.series) == 1 else ""
    for result in _decode_results(said.result, found.rejects):
        _add(found, result, memo, name, ahead)
    return found


class QueryResult(NamedTuple):
    """The result of a query that the engine answered, not decoded yet."""

    type: str
    """``vector``, ``matrix``, ``scalar`` or ``string``."""
    result: msgspec.Raw
    warnings: tuple[str, ...]
    partial: bool
    """Whether existing series may be missing."""


def result_of(body: bytes) -> QueryResult:
    """Return the result in an answer of ``/api/v1/query``.

    Raises:
        SourceError: ``not_json``, or ``query`` for an error of the engine.
    """
    answer = _decode_answer(body)
    if answer.status != "success" or answer.data is None:
        said = f"{answer.errorType or answer.status}: {answer.error}"
        raise SourceError("query", shortened(said))
    return QueryResult(
        answer.data.resultType,
        answer.data.result,
        (*(answer.warnings or ()), *(answer.infos or ())),
        answer.isPartial or any(map(means_loss, answer.warnings or ())),
    )


def means_loss(warning: str) -> bool:
    """Return whether a warning means that series may be missing.

    Thanos and Prometheus' remote reads report unavailable stores in the same list in which
    the engine puts its remarks on the expression (Prometheus, ``util/annotations``).
    """
    return not warning.startswith(("PromQL warning", "PromQL info"))


def error_text(body: bytes) -> str:
    """Return the engine's error text in the body of an error status; empty if there is none."""
    try:
        answer = _answer.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if not answer.error:
        return ""
    kind = answer.errorType
    return shortened(answer.error if kind.isdigit() else f"{kind}: {answer.error}")


def shortened(text: str) -> str:
    """Return a text in one line; VictoriaMetrics repeats a long query before the error."""
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:120]} … {line[-260:]}"


def _decode_answer(body: bytes) -> _Answer:
    try:
        return _answer.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        start = body[:60].decode("utf-8", "replace").strip()
        raise SourceError(
            "not_json",
            f"the answer is not the query API's ({error}; it begins {start!r}); "
            "check the URL and its path prefix",
        ) from error


def _decode_results(raw: msgspec.Raw, rejects: Counter[str]) -> Iterator[_Result]:
    # One by one, so that a malformed series costs only itself, and so that no long call blocks the
    # thread of the event loop.
    try:
        parts = _raw_results.decode(raw)
    except msgspec.ValidationError as error:
        raise SourceError("not_json", f"the result is not a list: {error}") from error
    for part in parts:
        try:
            yield _result.decode(part)
        except (msgspec.ValidationError, UnicodeDecodeError):
            rejects["bad_series"] += 1


def _add(
    found: QueryAnswer, result: _Result, memo: SeriesMemo, only_name: str, ahead: float
) -> None:
    try:
        series = memo.series(bytes(result.metric))
    except (msgspec.DecodeError, UnicodeDecodeError):
        found.rejects["bad_series"] += 1
        return
    name = only_name or series.name  # a query for one series says which it is
    if not name:
        found.rejects["unnamed_series"] += 1
        return
    samples = result.samples()
    first = len(samples) - 1
    while first > 0 and samples[first - 1][0] > series.seen:
        first -= 1
    kept = []
    newest = -math.inf
    for time, text in samples[max(first, 0) :]:
        value = _number(text)
        if value is None or not math.isfinite(time):
            found.rejects["bad_value"] += 1
        else:
            kept.append(Sample(name, series.labels, value, time - ahead))
            newest = time
    if not kept:
        return
    found.times.append((series, newest))
    found.samples.setdefault(series.origin, []).extend(kept)
    found.newest.setdefault(series.origin, []).append(kept[-1])


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _origin(labels: Mapping[str, str]) -> str:
    of = cluster(labels)
    return f"{of}/{_address(labels)}" if of else _address(labels)


def _address(labels: Mapping[str, str]) -> str:
    found = next((labels[key] for key in _ORIGIN_LABELS if labels.get(key)), NO_ORIGIN)
    _, colon, port = found.rpartition(":")
    if colon and not port.isdigit():
        # Google's managed Prometheus: "<pod>:<port name>", which may exist in several namespaces.
        return f"{labels.get('namespace', '')}/{found}"
    return found

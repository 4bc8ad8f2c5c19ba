"""The answers of the Prometheus query API.

Queries are range selectors evaluated at the current time, because only a matrix of raw samples
contains the time at which each value was scraped. An instant vector has the time of
the query, and shows a series for five minutes after its last sample (Prometheus,
"Querying basics", Staleness). The ``query`` setting may still produce a vector; its values
count as measured at the time of the query.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from adapter.exposition.samples import Sample
from adapter.sources.errors import SourceError
from adapter.sources.prometheus.labelsets import LabelSet
from apiservice.runtime.steps import Steps

_STEP: Final = 1024
"""Series of a step."""


class Earlier(NamedTuple):
    """Samples of a series before its newest one.

    The first answers have several samples of each series, so these take little memory.
    """

    name: str
    labels: Mapping[str, str]
    numbers: array[float]
    """Time by the local clock and value of each sample in turn, oldest first."""


@dataclass(slots=True)
class QueryAnswer:
    """A decoded answer."""

    newest: dict[str, list[Sample]] = field(default_factory=dict)
    """Origin -> the newest sample of each series."""
    earlier: dict[str, list[Earlier]] = field(default_factory=dict)
    """Origin -> earlier samples that the last round did not have."""
    count: int = 0
    """Samples in both."""
    rejects: Counter[str] = field(default_factory=Counter)
    """Series and samples that could not be read, by reason."""
    warnings: tuple[str, ...] = ()
    """The engine's remarks on the answer, for example that it did not reach a store."""
    partial: bool = False
    """Whether existing series may be missing."""
    round: int = 0
    """The round in which the answer was read."""
    _sets: list[LabelSet] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)

    def add(self, labels: LabelSet, name: str, time: float, sample: Sample) -> None:
        """Add the newest sample of a series.

        Args:
            labels: the labels of the series.
            name: its own name.
            time: the sample's time by the engine's clock.
            sample: the sample.
        """
        self._sets.append(labels)
        self._names.append(name)
        self._times.append(time)
        samples = self.newest.get(labels.origin)
        if samples is None:
            self.newest[labels.origin] = [sample]
        else:
            samples.append(sample)
        self.count += 1

    @property
    def samples(self) -> dict[str, list[Sample]]:
        """Return origin -> its samples."""
        return {origin: self.samples_of(origin) for origin in self.newest}

    def samples_of(self, origin: str) -> list[Sample]:
        """Return an exporter's samples, oldest first within a series."""
        expanded = [
            Sample(name, labels, value, time)
            for name, labels, numbers in self.earlier.get(origin, ())
            for time, value in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        return expanded + self.newest.get(origin, [])

    def accept(self) -> Steps[None]:
        """Note that the samples are handed over, so that later answers leave them out.

        This is not called for an answer that is rejected or late, so that the next answer
        contains its samples again.
        """
        series = zip(self._sets, self._names, self._times, strict=True)
        for number, (labels, name, time) in enumerate(series, 1):
            labels.accept(name, time, self.round)
            if number % _STEP == 0:
                yield
        while self._sets:  # freeing a million references at once would block the event loop
            del self._sets[-_STEP:], self._names[-_STEP:], self._times[-_STEP:]
            yield


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


_answer = msgspec.json.Decoder(_Answer)


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
        raise not_json(body, error) from error


def not_json(text: bytes, error: Exception) -> SourceError:
    """Return the error of a text that cannot be decoded."""
    start = text[:60].decode("utf-8", "replace").strip()
    return SourceError(
        "not_json",
        f"the answer is not the query API's ({error}; it begins {start!r}); "
        "check the URL and its path prefix",
    )

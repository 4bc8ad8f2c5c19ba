"""The answers of the Prometheus query API.

Queries are range selectors evaluated at the current time, because only a matrix of raw samples
contains the time at which each value was scraped. An instant vector has the time of
the query, and shows a series for five minutes after its last sample (Prometheus,
"Querying basics", Staleness). The ``query`` setting may still produce a vector; its values
count as measured at the time of the query.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Final, NamedTuple

import msgspec

from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.errors import SourceError
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.runtime.steps import Steps, at_once, parts

LATEST: Final = 253_402_300_799.0
"""The end of the year 9999, in epoch seconds."""
_STEP: Final = 1024
"""Series of a step."""
_ORIGINS: Final = 8
"""Exporters of a step."""


@dataclass(slots=True, eq=False)
class LabelSet:
    """The labels of the series of one device, without their names."""

    key: int
    """Hash of the text of the labels."""
    labels: Mapping[str, str]
    origin: str
    round: int = -1
    """The last round that contained them."""


@dataclass(slots=True)
class QueryAnswer:
    """A decoded answer. Its samples are columns, in the order of the answer's series.

    The first answers have several samples of each series, which take 16 bytes each this way.
    """

    name: str = ""
    """The series' name, if the query is for one series; empty if each sample has its own."""
    ahead: float = 0.0
    """Seconds by which the engine's clock was ahead of the local clock."""
    sets: list[LabelSet] = field(default_factory=list)
    """The labels of each series."""
    names: list[str] = field(default_factory=list)
    """The series' names, as in the answer."""
    digests: array[int] = field(default_factory=lambda: array("q"))
    """Hashes of the texts of the series' labels and names."""
    times: array[float] = field(default_factory=lambda: array("d"))
    """The times of the newest samples, by the engine's clock."""
    numbers: array[float] = field(default_factory=lambda: array("d"))
    """The values of the newest samples."""
    standing: dict[str, list[Sample]] = field(default_factory=dict)
    """Origin -> samples of an earlier answer, for origins that a partial answer lacks."""
    earlier_times: array[float] = field(default_factory=lambda: array("d"))
    """The times of earlier samples that the last round did not have, series after series, the
    oldest first."""
    earlier_numbers: array[float] = field(default_factory=lambda: array("d"))
    """The values of these."""
    earlier_ends: array[int] = field(default_factory=lambda: array("I"))
    """Where in these columns the samples of each series end."""
    count: int = 0
    """Samples, newest and earlier ones."""
    rejects: Counter[str] = field(default_factory=Counter)
    """Series and samples that could not be read, by reason."""
    warnings: tuple[str, ...] = ()
    """The engine's remarks on the answer, for example that it did not reach a store."""
    partial: bool = False
    """Whether existing series may be missing."""
    round: int = 0
    """The round in which the answer was read."""
    repeats: bool | None = None
    """Whether it contains a series twice; None until that was looked for."""
    accepted: Callable[[QueryAnswer], None] | None = None
    """Takes the answer when it is handed over."""
    places: dict[str, array[int]] = field(default_factory=dict)
    """Origin -> the places of its series in the columns. A complete answer has them."""
    _of_origin: dict[str, dict[tuple[int, str], float]] = field(default_factory=dict)

    def group(self) -> Steps[None]:
        """Find the places of each exporter's series if they are not known, in steps."""
        if self.places:
            return
        places: dict[str, array[int]] = {}
        for start in range(0, len(self.sets), _STEP):
            for place, labels in enumerate(self.sets[start : start + _STEP], start):
                of_origin = places.get(labels.origin)
                if of_origin is None:
                    places[labels.origin] = array("I", (place,))
                else:
                    of_origin.append(place)
            yield
        self.places = places

    def reorder(self, order: Sequence[int]) -> Steps[None]:
        """Put the series in another order, in steps.

        Args:
            order: the present place of each series.
        """
        old = replace(self)
        self.sets, self.names, self.digests = [], [], array("q")
        self.times, self.numbers = array("d"), array("d")
        self.earlier_times, self.earlier_numbers = array("d"), array("d")
        self.earlier_ends = array("I")
        self.places = {}
        for some in parts(order, _STEP):
            self.sets += map(old.sets.__getitem__, some)
            self.names += map(old.names.__getitem__, some)
            self.digests.extend(map(old.digests.__getitem__, some))
            self.times.extend(map(old.times.__getitem__, some))
            self.numbers.extend(map(old.numbers.__getitem__, some))
            for place in some if old.earlier_times else ():
                start, end = old.earlier_span(place)
                self.earlier_times += old.earlier_times[start:end]
                self.earlier_numbers += old.earlier_numbers[start:end]
                self.earlier_ends.append(len(self.earlier_times))
            if not old.earlier_times:
                self.earlier_ends.extend(repeat(0, len(some)))
            yield

    def share_columns(self, before: QueryAnswer) -> None:
        """Share the columns that are equal to those of an earlier answer, which saves memory."""
        if self.sets == before.sets and self.digests == before.digests:
            self.sets, self.names, self.digests = before.sets, before.names, before.digests
            self.places, self.repeats = before.places, before.repeats

    @property
    def origins(self) -> list[str]:
        """Return the exporters that have samples."""
        return [*self.standing, *self.places]

    @property
    def newest(self) -> dict[str, list[Sample]]:
        """Return origin -> the newest sample of each series."""
        return {origin: at_once(self.newest_of(origin)) for origin in self.origins}

    @property
    def samples(self) -> dict[str, list[Sample]]:
        """Return origin -> its samples."""
        return {origin: at_once(self.samples_of(origin)) for origin in self.origins}

    def newest_of(self, origin: str) -> Steps[list[Sample]]:
        """Return the newest samples of an exporter, in steps."""
        places = self.places.get(origin)
        if places is None:
            return self.standing.get(origin, [])
        samples: list[Sample] = []
        for some in parts(places, _STEP):
            samples += [
                Sample(
                    self.name or self.names[place],
                    self.sets[place].labels,
                    self.numbers[place],
                    self.times[place] - self.ahead,
                )
                for place in some
            ]
            yield
        return samples

    def samples_of(self, origin: str) -> Steps[list[Sample]]:
        """Return an exporter's samples, oldest first within a series, in steps."""
        samples: list[Sample] = []
        for some in parts(self.places.get(origin, ()) if self.earlier_times else (), _STEP):
            samples += [
                Sample(self.name or self.names[place], self.sets[place].labels, value, time)
                for place in some
                for time, value in self.earlier_of(place)
            ]
            yield
        samples += yield from self.newest_of(origin)
        return samples

    def earlier_of(self, place: int) -> list[tuple[float, float]]:
        """Return the earlier samples of a series: time by the local clock, and value."""
        if not self.earlier_times:
            return []
        start, end = self.earlier_span(place)
        times = [time - self.ahead for time in self.earlier_times[start:end]]
        return list(zip(times, self.earlier_numbers[start:end], strict=True))

    def earlier_span(self, place: int) -> tuple[int, int]:
        """Return where the earlier samples of a series begin and end."""
        return self.earlier_ends[place - 1] if place else 0, self.earlier_ends[place]

    def forget_earlier(self) -> None:
        """Free the earlier samples, after they were handed over."""
        self.earlier_times, self.earlier_numbers = array("d"), array("d")

    def accept(self) -> Steps[None]:
        """Note that the samples are handed over, so that later answers leave them out.

        This is not called for an answer that is rejected or late, so that the next answer
        contains its samples again.
        """
        if self.accepted is not None:
            yield from self.has_repeats()
            self.accepted(self)

    def has_repeats(self) -> Steps[bool]:
        """Return whether the answer contains a series twice, or two with the same hash."""
        if self.repeats is None:
            yield from self.group()
            self.repeats = False
            for places in self.places.values():
                series: set[int] = set()  # many tuples take long to free
                for some in parts(places, _STEP):
                    series.update(hash((id(self.sets[place]), self.names[place])) for place in some)
                    yield
                if len(series) < len(places):
                    self.repeats = True
                    break
        return self.repeats

    def newest_time(self, labels: LabelSet, name: str) -> Steps[float]:
        """Return the time of a series' newest sample, by the engine's clock; else -infinity."""
        its = self._of_origin.get(labels.origin)
        if its is None:
            its = {}
            for some in parts(self.places.get(labels.origin, ()), _STEP):
                its.update(
                    ((id(self.sets[place]), self.names[place]), self.times[place]) for place in some
                )
                yield
            self._of_origin[labels.origin] = its
        return its.get((id(labels), name), -math.inf)

    def complete(self, before: QueryAnswer, since: float) -> Steps[None]:
        """Add the samples of the answer before for the exporters that this answer lacks.

        Args:
            since: epoch seconds; exporters without a later sample are left out.
        """
        for number, origin in enumerate(before.origins, 1):
            if origin not in self.places:
                samples = yield from before.newest_of(origin)
                for some in parts(samples, _STEP):
                    if any(sample.time > since for sample in some):
                        self.standing[origin] = samples
                        break
                    yield
            if number % _ORIGINS == 0:
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
"""Errors of the decoder: also those of text that is not UTF-8, and of a thousand brackets."""


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
        message = f"{answer.errorType or answer.status}: {answer.error}"
        raise SourceError("query", shorten_text(message))
    return QueryResult(
        answer.data.resultType,
        answer.data.result,
        (*(answer.warnings or ()), *(answer.infos or ())),
        answer.isPartial or any(map(means_loss, answer.warnings or ())),
    )


def sample_number(time: float, text: str) -> float | None:
    """Return the number of a sample; None if it is not one, or if its time is not one.

    Args:
        time: epoch seconds.
        text: the value as the API spells it; NaN and infinite ones are numbers.
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if "_" not in text and is_time(time) else None


def is_time(time: float) -> bool:
    """Return whether a sample's time is in the years 1970 to 9999, which dates can express."""
    return 0 <= time <= LATEST


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
    except UNREADABLE:
        return ""
    if not answer.error:
        return ""
    kind = answer.errorType
    return shorten_text(answer.error if kind.isdigit() else f"{kind}: {answer.error}")


def shorten_text(text: str) -> str:
    """Return a text in one line; VictoriaMetrics repeats a long query before the error."""
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:120]} … {line[-260:]}"


def _decode_answer(body: bytes) -> _Answer:
    try:
        return _answer.decode(body)
    except UNREADABLE as error:
        raise not_json_error(body, error) from error


def not_json_error(text: bytes, error: Exception) -> SourceError:
    """Return the error of a text that cannot be decoded."""
    start = text[:60].decode("utf-8", "replace").strip()
    return SourceError(
        "not_json",
        f"the answer is not the query API's ({error}; it begins {start!r}); "
        "check the URL and its path prefix",
    )

"""Read an answer of the query API part by part, as it arrives.

An answer for 40,000 GPUs is more than 100 MB of text. Only the part that is not read yet is held:
the samples are what remains. The work is in steps, so that it does not block the event loop.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from adapter.exposition.samples import Sample
from adapter.sources.errors import SourceError
from adapter.sources.prometheus.answer import Earlier, QueryAnswer, not_json, result_of
from adapter.sources.prometheus.labelsets import LabelSet, SeriesMemo
from adapter.sources.prometheus.querygroup import QueryGroup
from apiservice.runtime.steps import Steps, at_once

_HEAD: Final = re.compile(
    rb'\{"status":"success",(?:"isPartial":(?:true|false),)?'
    rb'"data":\{"resultType":"(?:matrix|vector)","result":\[(?=\{"metric":\{)'
)
"""How Prometheus, Thanos, Mimir and VictoriaMetrics begin an answer with series."""
_LONGEST_HEAD: Final = 128
_NEXT: Final = b'},{"metric":{'
"""Between two series. No text contains it, because its quotes would be escaped; and a label has a
text as its value, so it is not within a series either.
"""
_PART: Final = 1 << 16
"""Bytes of a part: about 150 series, which take less than a millisecond."""
_STEP: Final = 128
"""Series of a step."""


class _Value(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    time: float
    """Epoch seconds."""
    text: str


class _Series(msgspec.Struct, gc=False):
    # Without gc=False, the collector would visit millions of objects that live for a moment.
    metric: msgspec.Raw
    values: list[_Value] | None = None
    """Oldest first; absent for a native histogram."""
    value: _Value | None = None


_new: Final = tuple.__new__
"""Makes a named tuple in half the time."""
_several = msgspec.json.Decoder(list[_Series])
_raw_results = msgspec.json.Decoder(list[msgspec.Raw])
_result = msgspec.json.Decoder(_Series)


class AnswerReader:
    """Reads one answer. A malformed series costs only that series.

    An answer in another form than that of the common engines is held until it is complete.

    Args:
        memo: the label sets.
        group: what was queried.
        ahead: seconds by which the engine's clock is ahead of the local clock.
    """

    def __init__(self, memo: SeriesMemo, group: QueryGroup, ahead: float = 0.0) -> None:
        self._memo = memo
        self._name = group.series[0] if len(group.series) == 1 else ""
        self._ahead = ahead
        self._found = QueryAnswer(round=memo.round)
        self._head: bytes | None = None
        """The text before the first series; empty if the form is another one."""
        self._text = bytearray()
        """What is not read yet."""

    @property
    def held(self) -> int:
        """Return the bytes of text that are not read yet."""
        return len(self._text)

    @property
    def count(self) -> int:
        """Return the samples that are read."""
        return self._found.count

    def feed(self, part: bytes) -> Steps[None]:
        """Read the series that are complete with the next part of the text.

        Raises:
            SourceError: ``not_json``.
        """
        searched = max(0, len(self._text) - len(_NEXT))
        self._text += part
        if self._head is None:
            if len(self._text) < _LONGEST_HEAD:
                return
            self._open()
            searched = 0
        if self._head:
            yield from self._take(searched)

    def finish(self) -> Steps[QueryAnswer]:
        """Read the rest, and return the answer.

        Raises:
            SourceError: ``not_json``, ``query`` for an error of the engine, or
                ``result_type`` for a scalar or string.
        """
        whole = (self._head or b"") + bytes(self._text)
        self._text.clear()
        said = result_of(whole)
        del whole
        if said.type not in ("matrix", "vector"):
            raise SourceError(
                "result_type",
                f"the query returns a {said.type[:20]}; it must return a vector or matrix",
            )
        found = self._found
        found.warnings, found.partial = said.warnings, said.partial
        yield from self._add_all(_each(said.result, found.rejects))
        return found

    def _open(self) -> None:
        match = _HEAD.match(self._text)
        self._head = match[0] if match else b""
        del self._text[: len(self._head)]

    def _take(self, searched: int) -> Steps[None]:
        """Read all series but the last, which may be incomplete."""
        end = self._text.rfind(_NEXT, searched)
        if end < 0:
            return
        ready = bytes(self._text[: end + 1])
        del self._text[: end + 2]
        start = 0
        while start < len(ready):
            cut = ready.find(_NEXT, start + _PART) + 1 or len(ready)
            yield from self._add_all(self._decoded(b"[%b]" % ready[start:cut]))
            start = cut + 1

    def _decoded(self, text: bytes) -> Iterator[_Series]:
        try:
            yield from _several.decode(text)
        except (msgspec.ValidationError, UnicodeDecodeError):
            # One of them is malformed. It costs only itself.
            yield from _each(msgspec.Raw(text), self._found.rejects)
        except msgspec.DecodeError as error:
            raise not_json(text, error) from error

    def _add_all(self, results: Iterator[_Series]) -> Steps[None]:
        for number, result in enumerate(results, 1):
            self._add(result)
            if number % _STEP == 0:
                yield
        yield

    def _add(self, result: _Series) -> None:
        """Add a series. An answer may have a million, so this makes few calls."""
        found = self._found
        try:
            labels, own = self._memo.series(bytes(result.metric))
        except (msgspec.DecodeError, UnicodeDecodeError):
            found.rejects["bad_series"] += 1
            return
        name = self._name or own  # a query for one series says which it is
        if not name:
            found.rejects["unnamed_series"] += 1
            return
        values = result.values or ([result.value] if result.value else [])
        if len(values) > 1 and labels.round == found.round - 1:
            values = _since(values, labels.seen.get(own, -math.inf))
        while values and (number := _number(values[-1])) is None:
            found.rejects["bad_value"] += 1
            values.pop()
        if not values:
            return
        time = values[-1].time
        if len(values) > 1:
            self._add_earlier(labels, name, values)
        when = time - self._ahead
        if when != labels.time:
            labels.time = when
        if when == time:
            time = labels.time
        sample = _new(Sample, (name, labels.labels, number, labels.time))
        found.add(labels, own, time, sample)

    def _add_earlier(self, labels: LabelSet, name: str, values: list[_Value]) -> None:
        """Add all but the newest of a series' values."""
        numbers = array("d")
        for value in values[:-1]:
            number = _number(value)
            if number is None:
                self._found.rejects["bad_value"] += 1
            else:
                numbers.extend((value.time - self._ahead, number))
        if numbers:
            earlier = Earlier(name, labels.labels, numbers)
            self._found.earlier.setdefault(labels.origin, []).append(earlier)
            self._found.count += len(numbers) // 2


def _since(values: list[_Value], seen: float) -> list[_Value]:
    """Return the values that are newer than ``seen``, and at least the last one."""
    if values[-2].time <= seen:  # most series have one new sample in a round
        return values[-1:]
    first = len(values) - 1
    while first > 0 and values[first - 1].time > seen:
        first -= 1
    return values[first:]


def _number(value: _Value) -> float | None:
    """Return the number of a value; None if it is not one, or has no time."""
    try:
        number = float(value.text)
    except ValueError:
        return None
    return None if "_" in value.text or not math.isfinite(value.time) else number


def decode(body: bytes, memo: SeriesMemo, group: QueryGroup, ahead: float = 0.0) -> QueryAnswer:
    """Read an answer of ``/api/v1/query`` that is complete; see :class:`AnswerReader`."""
    reader = AnswerReader(memo, group, ahead)
    at_once(reader.feed(body))
    return at_once(reader.finish())


def _each(raw: msgspec.Raw, rejects: Counter[str]) -> Iterator[_Series]:
    """Decode series one by one."""
    try:
        parts = _raw_results.decode(raw)
    except msgspec.DecodeError as error:
        raise SourceError("not_json", f"the result is not a list: {error}") from error
    for part in parts:
        try:
            yield _result.decode(part)
        except (msgspec.ValidationError, UnicodeDecodeError):
            rejects["bad_series"] += 1

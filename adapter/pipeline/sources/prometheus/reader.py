"""Read an answer of the query API part by part, as it arrives.

An answer for 40,000 GPUs is more than 100 MB of text. Only the part that is not read yet is held:
the samples are what remains. The work is in steps, so that it does not block the event loop.

From round to round, the series of an answer and their order seldom change. So the text of each
series' labels is compared with that of the same place in the answer before, by its hash (see
:mod:`adapter.pipeline.exposition.pagelayout`), and an equal text is not decoded. The series of a
block in which each is the same, and has one new sample, are added together.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from operator import itemgetter, le
from typing import Final

import msgspec

from adapter.pipeline.catalog.field import Role
from adapter.pipeline.exposition.bucketnames import bucket_name
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import (
    LATEST,
    LabelSet,
    QueryAnswer,
    not_json_error,
    result_of,
    sample_number,
)
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.nativehistograms import (
    TOTAL,
    NativeHistogram,
    classic_series,
)
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.seriesblock import (
    NEXT,
    SeriesBlock,
    SeriesValues,
    split_series,
)
from apiservice.runtime.steps import Steps, at_once

_HEAD: Final = re.compile(
    rb'\{"status":"success",(?:"isPartial":(?:true|false),)?'
    rb'"data":\{"resultType":"(?:matrix|vector)","result":\[(?=\{"metric":\{)'
)
"""How Prometheus, Thanos, Mimir and VictoriaMetrics begin an answer with series."""
_LONGEST_HEAD: Final = 128
_PART: Final = 1 << 16
"""Bytes of a part: about 150 series, which take less than a millisecond."""
_STEP: Final = 128
"""Series of a step."""
_AHEAD: Final = 256
"""Series of the answer before among which a series is searched that is not at its place."""
_INDEXED: Final = 4096
"""Series that a step looks up, or sorts."""


_Histogram = tuple[float, NativeHistogram]


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
    histograms: list[_Histogram] | None = None
    """The same of a native histogram: epoch seconds and sample."""
    histogram: _Histogram | None = None


_labelled = msgspec.json.Decoder(list[_Series])
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
        self._name = group.names[0] if len(group.names) == 1 else ""
        self._found = QueryAnswer(
            self._name, ahead, round=memo.round, accepted=partial(memo.accept, group.name)
        )
        before = memo.accepted_answer(group.name)
        self._before = before
        """The answer of the last round."""
        self._ordered = before if before is not None and not before.repeats else None
        """The same, if each place in it is one series."""
        self._place = 0
        """Where the next series was in it, if nothing has changed."""
        self._index: dict[int, int] | None = None
        """Hash -> its place in the answer before, if the order is another one."""
        self._at = array("i")
        """Where each series of the answer was in the answer before; -1 for a new one."""
        self._head: bytes | None = None
        """The text before the first series; empty if the form is another one."""
        self._text = bytearray()
        """What is not read yet."""

    @property
    def held(self) -> int:
        """Return the bytes of text that are not read yet."""
        return len(self._text)

    def feed(self, part: bytes) -> Steps[None]:
        """Read the series that are complete with the next part of the text.

        Raises:
            SourceError: ``not_json``.
        """
        searched = max(0, len(self._text) - len(NEXT))
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
        query_result = result_of(whole)
        del whole
        if query_result.type not in ("matrix", "vector"):
            raise SourceError(
                "result_type",
                f"the query returns a {query_result.type[:20]}; it must return a vector or matrix",
            )
        answer = self._found
        answer.warnings, answer.partial = query_result.warnings, query_result.partial
        yield from self._add_all(_decode_each(query_result.result, answer.rejects))
        if self._ordered is not None:
            # Of a series that occurs twice, the last one says which samples are old.
            if self._index is not None and not (yield from answer.has_repeats()):
                yield from self._restore_order(self._ordered)
            answer.share_columns(self._ordered)
        yield from answer.group()
        return answer

    def _open(self) -> None:
        match = _HEAD.match(self._text)
        self._head = match[0] if match else b""
        del self._text[: len(self._head)]

    def _take(self, searched: int) -> Steps[None]:
        """Read all series but the last, which may be incomplete."""
        end = self._text.rfind(NEXT, searched)
        if end < 0:
            return
        ready = bytes(self._text[: end + 1])
        del self._text[: end + 2]
        start = 0
        while start < len(ready):
            cut = ready.find(NEXT, start + _PART) + 1 or len(ready)
            yield from self._read(ready[start:cut])
            start = cut + 1

    def _read(self, text: bytes) -> Steps[None]:
        """Read a block of series."""
        before = self._ordered
        block = split_series(text) if before is not None else None
        if before is None or block is None:
            yield from self._add_all(self._decode_series(b"[%b]" % text))
            return
        start, digests = self._place, block.digests
        places: Sequence[int | None] = range(start, start + len(digests))
        if before.digests[start : start + len(digests)] != digests:
            places = yield from self._locate_series(before, digests)
            if not block.is_sound(places):
                yield from self._add_all(self._decode_series(b"[%b]" % text))
                return
        if places[-1] is not None:
            self._place = places[-1] + 1
        if not self._add_block(before, block, places):
            rows = zip(places, block.texts, digests, block.values, strict=True)
            for number, (place, labels, digest, values) in enumerate(rows, 1):
                if place is None:
                    yield from self._add_new(labels, digest, values)
                else:
                    self._add_same(before, place, digest, values)
                if number % _STEP == 0:
                    yield
        yield

    def _locate_series(self, before: QueryAnswer, digests: array[int]) -> Steps[list[int | None]]:
        """Return where series were in the answer before: where they are expected, or nearby.

        If most of them are not, the order is another one: VictoriaMetrics answers range selectors
        in any order. Then all places are looked up.
        """
        if self._index is None:
            places = [self._find_place(digest) for digest in digests]
            if 2 * places.count(None) <= len(places):
                return places
            self._index = {}
            numbered = enumerate(before.digests)
            while some := list(islice(numbered, _INDEXED)):
                self._index.update((digest, place) for place, digest in some)
                yield
        return list(map(self._index.get, digests))

    def _restore_order(self, before: QueryAnswer) -> Steps[None]:
        """Put the series in the order of the answer before, and new ones at the end.

        So each exporter has its series in one order.
        """
        now = array("i", [-1]) * len(before.digests)
        rest, moved, last = array("i"), False, -1
        for number, place in enumerate(self._at):
            if place < 0 or now[place] >= 0:
                rest.append(number)
            else:
                now[place] = number
                moved, last = moved or place < last, place
            if number % _INDEXED == 0:
                yield
        if moved:
            order = array("i", [number for number in now if number >= 0]) + rest
            yield from self._found.reorder(order)

    def _add_block(
        self, before: QueryAnswer, block: SeriesBlock, places: Sequence[int | None]
    ) -> bool:
        """Add series that were in the answer before, each with one new sample.

        Args:
            places: where they were; None for one that was not.

        Returns:
            False if they are not such series, and nothing is added.
        """
        answer = self._found
        known_places = [place for place in places if place is not None]
        if len(known_places) < max(2, len(places)):
            return False
        try:
            newest = [values[-1] for values in block.values]
            numbers = array("d", [float(text) for _, text in newest])
        except (ValueError, IndexError):
            return False
        if any("_" in text for _, text in newest):  # which Python accepts in a number
            return False
        times = [time for time, _ in newest]
        if min(times) < 0 or max(times) > LATEST:
            return False
        pick = itemgetter(*known_places)
        second = [values[-2][0] if len(values) > 1 else -math.inf for values in block.values]
        if not all(map(le, second, pick(before.times))):
            return False
        sets = pick(before.sets)
        self._memo.keep(sets)
        answer.sets += sets
        answer.names += pick(before.names)
        answer.digests += block.digests
        answer.times.extend(times)
        answer.numbers += numbers
        answer.earlier_ends.extend(repeat(len(answer.earlier_times), len(numbers)))
        answer.count += len(numbers)
        self._at.extend(known_places)
        return True

    def _add_same(self, before: QueryAnswer, place: int, digest: int, values: SeriesValues) -> None:
        """Add a series that has a place in the answer before."""
        labels, name = before.sets[place], before.names[place]
        self._memo.keep((labels,))
        if len(values) > 1:
            values = _newer_values(values, before.times[place])
        self._add_values(labels, name, digest, values, place)

    def _add_new(self, text: bytes, digest: int, values: SeriesValues) -> Steps[None]:
        """Add a series with other labels than those in the answer before."""
        try:
            labels, name = self._memo.series(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._found.rejects["bad_series"] += 1
            return
        if len(values) > 1 and self._before is not None:
            values = _newer_values(values, (yield from self._before.newest_time(labels, name)))
        self._add_values(labels, name, digest, values, -1)

    def _add_native(self, text: bytes, counted: Sequence[_Histogram]) -> Steps[None]:
        """Add the samples of a native histogram as those of a classic one."""
        try:
            labels, family = self._memo.series(text)
            every = bucket_name(family + Role.BUCKET, TOTAL)
            since = -math.inf
            if self._before is not None:
                since = yield from self._before.newest_time(labels, every)
            newer = [point for point in counted if point[0] > since] or counted[-1:]
            samples: dict[str, SeriesValues] = {}
            for time, histogram in newer:
                for name, number in classic_series(family, histogram):
                    samples.setdefault(name, []).append((time, number))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            self._found.rejects["bad_series"] += 1
            return
        for name, values in samples.items():
            self._add_values(labels, name, hash((text, name)), values, -1)
        yield

    def _find_place(self, digest: int) -> int | None:
        """Return where a series was in the answer before; None if it is not near."""
        before, place = self._ordered, self._place
        if before is None:
            return None
        try:
            place = before.digests.index(digest, place, place + _AHEAD + 1)
        except ValueError:
            return None
        self._place = place + 1
        return place

    def _decode_series(self, text: bytes) -> Iterator[_Series]:
        try:
            yield from _labelled.decode(text)
        except (msgspec.ValidationError, UnicodeDecodeError):
            # One of them is malformed. It costs only itself.
            yield from _decode_each(msgspec.Raw(text), self._found.rejects)
        except msgspec.DecodeError as error:
            raise not_json_error(text, error) from error

    def _add_all(self, results: Iterator[_Series]) -> Steps[None]:
        for number, result in enumerate(results, 1):
            yield from self._add(result)
            if number % _STEP == 0:
                yield
        yield

    def _add(self, result: _Series) -> Steps[None]:
        """Add a series that was decoded."""
        text = bytes(result.metric)
        counted = result.histograms or ([result.histogram] if result.histogram else [])
        if counted:
            yield from self._add_native(text, counted)
            return
        digest = hash(text)
        index = self._index
        place = self._find_place(digest) if index is None else index.get(digest)
        some = result.values or ([result.value] if result.value else [])
        values = [(value.time, value.text) for value in some]
        if place is None or self._ordered is None:
            yield from self._add_new(text, digest, values)
        else:
            self._add_same(self._ordered, place, digest, values)

    def _add_values(
        self,
        labels: LabelSet,
        written_name: str,
        digest: int,
        values: SeriesValues,
        place: int,
    ) -> None:
        """Add the samples of a series.

        Args:
            written_name: the series' name in the answer.
            values: those that the last round did not have, and at least the last one.
            place: where the series was in the answer before; -1 if that is not known.
        """
        answer = self._found
        name = self._name or written_name  # a query for one series says which it is
        if not name:
            answer.rejects["unnamed_series"] += 1
            return
        number = None
        while values and (number := sample_number(*values[-1])) is None:
            answer.rejects["bad_value"] += 1
            values.pop()
        if number is None:
            return
        for time, text in values[:-1]:
            earlier = sample_number(time, text)
            if earlier is None:
                answer.rejects["bad_value"] += 1
            else:
                answer.earlier_times.append(time)
                answer.earlier_numbers.append(earlier)
        answer.count += (
            1 + len(answer.earlier_times) - (answer.earlier_ends[-1] if answer.earlier_ends else 0)
        )
        answer.earlier_ends.append(len(answer.earlier_times))
        self._at.append(place)
        answer.sets.append(labels)
        answer.names.append(written_name)
        answer.digests.append(digest)
        answer.times.append(values[-1][0])
        answer.numbers.append(number)


def _newer_values(values: SeriesValues, since: float) -> SeriesValues:
    """Return the values that are newer than ``since``, and at least the last one."""
    if values[-2][0] <= since:  # most series have one new sample in a round
        return values[-1:]
    first = len(values) - 1
    while first > 0 and values[first - 1][0] > since:
        first -= 1
    return values[first:]


def decode(body: bytes, memo: SeriesMemo, group: QueryGroup, ahead: float = 0.0) -> QueryAnswer:
    """Read an answer of ``/api/v1/query`` that is complete; see :class:`AnswerReader`."""
    reader = AnswerReader(memo, group, ahead)
    at_once(reader.feed(body))
    return at_once(reader.finish())


def _decode_each(raw: msgspec.Raw, rejects: Counter[str]) -> Iterator[_Series]:
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

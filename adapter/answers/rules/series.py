"""The answers of ``/api/v1/series``: the names of series, and the labels that each has.

Rules need no label's value. So series that differ in values only are one shape, and the shapes of
a large store are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from adapter.answers.rules.vector import MAX_PARTS
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import error_text, shorten_text
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.runtime.steps import Steps

MAX_SERIES: Final = 500_000
"""Series of one answer that are read."""
MAX_SHAPES: Final = 50_000
"""Shapes of one answer that are kept."""
MAX_NAME: Final = 256
"""Characters of a metric's or label's name."""
_STEP: Final = 256
_FIRST: Final = b'[{"'
_NEXT: Final = b'"},{"'
_LAST: Final = b'"}]'


class SeriesShape(NamedTuple):
    """A series' name and the names of its labels."""

    name: str
    labels: frozenset[str]


class Shapes(NamedTuple):
    """The shapes in an answer, in its order: the last place of each."""

    found: tuple[SeriesShape, ...] = ()
    left_out: int = 0
    """Series that are malformed, have too long names, or are beyond the bounds."""
    warnings: tuple[str, ...] = ()


class _Answer(msgspec.Struct):
    status: str
    data: list[msgspec.Raw] = []
    errorType: str = ""  # noqa: N815 - as the API spells it
    error: str = ""
    warnings: list[str] | None = None


_answer = msgspec.json.Decoder(_Answer)
_labels = msgspec.json.Decoder(dict[str, str])


def decode(body: bytes) -> Steps[Shapes]:
    """Read an answer in steps.

    Raises:
        SourceError: ``not_json``, ``too_large``, or ``query`` for an error of the engine.
    """
    envelope, rows = _split_answer(body)
    try:
        answer = _answer.decode(envelope)
    except UNREADABLE as error:
        message = error_text(body)
        raise SourceError(
            "query" if message else "not_json",
            message or f"the answer is not the series API's ({error})",
        ) from None
    if answer.status != "success":
        raise SourceError("query", shorten_text(f"{answer.errorType}: {answer.error}"))
    last: dict[SeriesShape, None] = {}
    sets: dict[frozenset[str], frozenset[str]] = {}
    left_out = 0
    for place, raw in enumerate(answer.data if rows is None else rows):
        if place % _STEP == 0:
            yield
        shape = _shape(raw, sets) if place < MAX_SERIES else None
        if shape is None or (shape not in last and len(last) >= MAX_SHAPES):
            left_out += 1
            continue
        last.pop(shape, None)
        last[shape] = None
    return Shapes(tuple(last), left_out, tuple(answer.warnings or ()))


def _split_answer(body: bytes) -> tuple[bytes, Iterator[bytes] | None]:
    """Return a large answer without its list, and the elements of the list.

    Decoding a list creates an object for each element: a hostile answer of 64 MiB would take 2 GiB.
    So a list with very many parts is cut where one object of texts ends and the next one begins. A
    small answer is returned as it is, without elements.
    """
    if body.count(b",") <= MAX_PARTS:
        return body, None
    start, end = body.find(_FIRST), body.rfind(_LAST)
    envelope = body[:start] + b"[]" + body[end + len(_LAST) :]
    if not 0 <= start < end or envelope.count(b",") > MAX_PARTS:
        raise SourceError("too_large", f"the answer has more than {MAX_PARTS} labels")
    return envelope, _elements(body, start + 1, end + 2)


def _elements(body: bytes, start: int, end: int) -> Iterator[bytes]:
    """Cut where the quote closes a text: a text may be, or end with, what is between objects."""
    counted, within = start, False
    while (cut := body.find(_NEXT, counted, end)) >= 0:
        within ^= bool(_quotes(body[counted : cut + 2]) % 2)
        counted = cut + 2
        if not within:
            yield body[start:counted]
            start = counted + 1
    yield body[start:end]


def _quotes(text: bytes) -> int:
    """Return the number of quotes that are not escaped."""
    text = text.replace(b"\\\\", b"")
    return text.count(b'"') - text.count(b'\\"')


def _shape(
    raw: msgspec.Raw | bytes, sets: dict[frozenset[str], frozenset[str]]
) -> SeriesShape | None:
    try:
        labels = _labels.decode(raw)
    except UNREADABLE:
        return None
    name = labels.pop("__name__", "")
    names = frozenset(labels)
    if not name or len(name) > MAX_NAME:
        return None
    shared = sets.get(names)
    if shared is None:
        if any(len(label) > MAX_NAME for label in names):
            return None
        shared = sets[names] = names
    return SeriesShape(name, shared)

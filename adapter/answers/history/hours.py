"""A closed hour of the history: the minutes of a few subjects in each block, deflated.

Between two replicas and in a file, an hour is one JSON object: ``version``, ``states``, ``hour``
(epoch hours) and ``blocks``. A block is deflated JSON (RFC 1951): subject -> metric and columns.
"""

from __future__ import annotations

import math
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

MINUTES: Final = 60
"""Minutes of an hour: the points of one subject in a block."""
TOGETHER: Final = 16
"""Subjects of a block. More of them take fewer bytes, and reading one of them takes longer."""
MOST_BLOCK: Final = 256 << 10
"""Bytes of a block when it is inflated. Sixteen subjects with full columns take 64 KiB."""
VERSION: Final = 1
_LEVEL: Final = 6
_RAW: Final = -15
"""No header and no checksum: a block is never read by others."""
_OVERHEAD: Final = 96
"""Bytes of a block beside its content: Python's objects, and its place in the lists."""
_DIGITS: Final = 7
"""Digits that a 32-bit number keeps."""
_WHOLE: Final = 10**_DIGITS

Column = list[float | None]


class Minutes(NamedTuple):
    """The minutes of one subject in one hour."""

    metric: str
    """The metric of the first two columns; empty for a subject without one."""
    columns: list[Column]


class HourError(ValueError):
    """An hour of another process cannot be used; the message says why."""


class StoredHour(msgspec.Struct, frozen=True):
    """An hour as it is handed to another process."""

    version: int
    states: list[str]
    """The names of the states, by their numbers."""
    hour: int
    blocks: list[bytes]


class Hour(NamedTuple):
    """A closed hour."""

    firsts: Sequence[str]
    """The first subject of each block, in order."""
    blocks: Sequence[bytes]

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return sum(len(block) + len(first) + _OVERHEAD for first, block in zip(*self, strict=True))

    def find(self, subject: str) -> Minutes | None:
        """Return the minutes of a subject; None if it has none in this hour."""
        place = bisect_right(self.firsts, subject) - 1
        if place < 0:
            return None
        # The other subjects of the block are skipped, and not built.
        raw = _raws(inflate_block(self.blocks[place])).get(subject)
        return None if raw is None else _minutes(raw)

    def each(self) -> Iterator[dict[str, Minutes]]:
        """Yield the subjects of each block."""
        for block in self.blocks:
            yield subjects_of(block)


_raws = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_minutes = msgspec.json.Decoder(Minutes).decode
_block = msgspec.json.Decoder(dict[str, Minutes]).decode
_encode = msgspec.json.Encoder().encode


def deflate_hour(rows: Mapping[str, tuple[str, int, array[float]]]) -> Iterator[tuple[str, bytes]]:
    """Yield the first subject and the bytes of each block.

    Args:
        rows: subject -> metric, number of columns, and the points one after the other.
    """
    names = sorted(rows)
    for first in range(0, len(names), TOGETHER):
        some = names[first : first + TOGETHER]
        block = {name: _columns(*rows[name]) for name in some}
        packer = zlib.compressobj(_LEVEL, wbits=_RAW)
        yield names[first], packer.compress(_encode(block)) + packer.flush()


def _columns(metric: str, width: int, points: array[float]) -> Minutes:
    return Minutes(
        metric, [[noted_point(point) for point in points[at::width]] for at in range(width)]
    )


def noted_point(number: float) -> float | None:
    """Return a point as it was noted: None for NaN, without the digits of a 32-bit number."""
    if math.isnan(number):
        return None
    if number == (whole := int(number)) and -_WHOLE < whole < _WHOLE:
        return whole
    return float(f"{number:.{_DIGITS}g}")


def inflate_block(block: bytes) -> bytes:
    """Return the JSON of a block.

    Raises:
        HourError: it is damaged, or larger than a block may be.
    """
    unpacker = zlib.decompressobj(_RAW)
    try:
        text = unpacker.decompress(block, MOST_BLOCK)
    except zlib.error as error:
        raise HourError(f"a block is damaged: {error}") from None
    if not unpacker.eof:
        raise HourError(f"a block is cut off, or larger than {MOST_BLOCK >> 10} KiB")
    return text


def subjects_of(block: bytes) -> dict[str, Minutes]:
    """Return the subjects of a block with their minutes.

    Raises:
        HourError: it has another form.
    """
    try:
        return _block(inflate_block(block))
    except msgspec.DecodeError as error:
        raise HourError(f"a block has another form: {error}") from None


def read_hour(blocks: Iterable[bytes], columns: Mapping[str, Sequence[str]], states: int) -> Hour:
    """Return the hour of blocks that another process has made.

    Args:
        blocks: as they were stored.
        columns: kind of a subject -> the names of its columns.
        states: how many there are. Those in a column named ``state`` are numbered from 0.

    Raises:
        HourError: a block has another form.
    """
    numbers = frozenset((None, *range(states)))
    firsts: list[str] = []
    taken: list[bytes] = []
    for block in blocks:
        subjects = subjects_of(block)
        if not subjects:
            continue
        names = list(subjects)
        if names != sorted(names) or (firsts and names[0] <= firsts[-1]):
            raise HourError("the subjects are not in order")
        for name, minutes in subjects.items():
            kind = columns.get(name.partition(" ")[0], ())
            longest = max(map(len, minutes.columns), default=0)
            if not kind or len(minutes.columns) != len(kind) or longest > MINUTES:
                raise HourError(f"{name} has other columns")
            if "state" in kind and not numbers.issuperset(minutes.columns[kind.index("state")]):
                raise HourError(f"{name} has another state")
        firsts.append(names[0])
        taken.append(block)
    return Hour(tuple(firsts), tuple(taken))

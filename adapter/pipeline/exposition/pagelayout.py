"""Read a page of which only the numbers differ from the exporter's last page.

From scrape to scrape the names and labels of a page seldom change. So the text around the numbers
is compared as a whole, by its hash, and the numbers are taken from where they were. Every page that
is not exactly of this kind is parsed line by line.

The hash is Python's keyed hash of bytes (SipHash, 64 bits): the author of a page cannot construct a
second text with the same hash, because the key is random for each process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, overload

import msgspec

from adapter.pipeline.exposition.line import DUPLICATE_LABEL
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS, Sample

_END: Final = (b"", b"# EOF")
"""What may follow the last line feed of a complete page."""
_NO_NAME: Final = b"# \t\r\v\f"
"""What a line without a name begins with."""


_JSON: Final = msgspec.json.Decoder(list[float])
_NUMBER: Final = re.compile(rb"} ([^\n]*)")
"""The number of a line with labels."""
_WITHOUT_LABELS: Final = re.compile(rb"\n[^#\s{][^\n{]*+(?!{)")
"""A line with a number and without labels, after a line feed. With ``^`` the search takes seven
times as long."""


class _Lines(NamedTuple):
    """A page, taken apart."""

    digest: int
    """Hash of everything except the numbers."""
    heads: list[bytes]
    """What precedes each number; its last line is ``name{labels``."""
    tails: list[bytes]
    """The numbers."""


_TakenApart = Callable[[bytes], "_Lines | None"]


class PageLayout:
    """Where the numbers of a page's samples are. Immutable.

    It has no labels: they are read again where somebody asks for the samples, so that an exporter
    whose pages nobody reads sample by sample keeps none. ``held`` and ``rejects`` are those of
    :class:`adapter.pipeline.exposition.page.Page`.
    """

    __slots__ = ("_at", "_digest", "_take_apart", "held", "rejects")

    def __init__(
        self,
        digest: int,
        at: tuple[int, ...],
        rejects: dict[str, int],
        held: int,
        take_apart: _TakenApart,
    ) -> None:
        self._digest = digest
        self._take_apart = take_apart
        self._at = share_equal(at)
        """The number of each sample."""
        self.rejects = rejects
        self.held = held

    def samples(
        self, page: bytes, time: float, make: Callable[[], Sequence[Sample]]
    ) -> LayoutSamples | None:
        """Return the samples of a page that has this layout, else None.

        Args:
            time: epoch seconds of the scrape.
            make: reads the samples with their labels.
        """
        lines = self._take_apart(page)
        if lines is None or lines.digest != self._digest:
            return None
        tails = list(map(lines.tails.__getitem__, self._at))
        values = _numbers(tails)
        if values is None:
            return None
        if 1.0 in values:
            _mark_decimals(values, tails)
        return LayoutSamples(self, values, time, make)


class LayoutSamples(Sequence[Sample]):
    """The samples of a page with a known layout. They are made when they are asked for.

    Args:
        make: returns the samples; those of one series follow each other, the oldest first.
        earlier: the times and numbers of samples of the same series before them, the oldest first.
    """

    __slots__ = ("_earlier", "_made", "_make", "layout", "time", "values")

    def __init__(
        self,
        layout: object,
        values: Sequence[float],
        time: float,
        make: Callable[[], Sequence[Sample]],
        earlier: Sequence[tuple[float, Sequence[float]]] = (),
    ) -> None:
        self._earlier = earlier
        self.layout = layout
        """One object for all pages of an exporter that differ only in their numbers."""
        self.values = values
        """Of each series' newest sample, as on the page."""
        self.time = time
        """Epoch seconds of all of these."""
        self._make = make
        self._made: Sequence[Sample] | None = None

    @property
    def rows(self) -> Sequence[tuple[float, Sequence[float]]]:
        """The times, in epoch seconds, each with a number of each series; the oldest first."""
        return (*self._earlier, (self.time, self.values))

    def __len__(self) -> int:
        return len(self.values) * len(self.rows)

    def numbers(self) -> Iterator[tuple[float, float]]:
        """Yield the number and the time of each sample, without making them."""
        rows = self.rows
        return ((row[place], time) for place in range(len(self.values)) for time, row in rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self._all()) == list(other)

    def __repr__(self) -> str:
        return repr(self._all())

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        return self._all()[index]

    def _all(self) -> Sequence[Sample]:
        if self._made is None:
            self._made = self._make()
        return self._made


class LayoutMemo:
    """Finds the layout of an exporter's pages: a page and the one before it have the same text.

    The first page gets a layout too, because most exporters never change theirs: the second page
    then costs an eighth. A page that changes each time costs its hash, and no other layout.
    """

    __slots__ = ("_digest", "_first", "layout")

    def __init__(self) -> None:
        self._digest: int | None = None
        self._first = True
        self.layout: PageLayout | None = None

    def read(
        self, page: bytes, time: float, room: int, make: Callable[[], Sequence[Sample]]
    ) -> tuple[PageLayout, LayoutSamples] | None:
        """Return the last page's layout and the samples of a page that has it, else None.

        Args:
            room: bytes of label sets that may be kept.
            make: reads the samples with their labels.
        """
        layout = self.layout
        if layout is None or layout.held > room:
            return None
        samples = layout.samples(page, time, make)
        return None if samples is None else (layout, samples)

    def learn(
        self,
        page: bytes,
        samples: list[Sample],
        rejects: dict[str, int],
        held: int,
        time: float,
        texts: Container[bytes],
    ) -> Sequence[Sample]:
        """Note a page that was parsed; return its samples, with their layout if it has one.

        Args:
            texts: the page's texts between braces. Another text ends in an exemplar's labels.
        """
        self.layout = None
        regular = samples and not rejects.keys() - {DUPLICATE_LABEL}
        take_apart = _split_at_lines if _WITHOUT_LABELS.search(b"\n" + page) else _split_at_labels
        lines = take_apart(page) if regular else None
        before, self._digest = self._digest, lines.digest if lines else None
        first, self._first = self._first, False
        if lines is None or not (first or lines.digest == before):
            return samples
        places = _places(lines, samples, time, texts)
        if places is None:
            return samples
        self.layout = PageLayout(lines.digest, places, rejects, held, take_apart)
        return LayoutSamples(
            self.layout, [sample.value for sample in samples], time, lambda: samples
        )


def _split_at_labels(page: bytes) -> _Lines | None:
    """Take a page apart whose numbers all follow labels; None if its last line is cut.

    It takes half the time of :func:`_split_at_lines`. A line that it does not recognize is a part
    of a head, with its number.
    """
    if page[page.rfind(b"\n") + 1 :].strip() not in _END:
        return None
    parts = _NUMBER.split(page)
    heads = parts[::2]
    return _Lines(hash(b"} ".join(heads)), heads, parts[1::2])


def _split_at_lines(page: bytes) -> _Lines | None:
    """Take any page apart, a line at a time; None if its last line is cut."""
    lines = page.split(b"\n")
    if lines[-1].strip() not in _END:
        return None
    cut = [line.rpartition(b"} ") for line in lines]
    heads = [head or brace or _name(tail) for head, brace, tail in cut]
    return _Lines(hash(b"\n".join(heads)), heads, [tail for _, _, tail in cut])


def _name(line: bytes) -> bytes:
    """Return what must not change of a line without labels: its name, or all of a comment.

    The line feed distinguishes ``foo 5`` from ``foo} 5``: no other head is empty or has one.
    """
    if line[:1] in _NO_NAME:
        return b"\n" + line
    return b"\n" + line.partition(b" ")[0]


def _places(
    lines: _Lines, samples: Sequence[Sample], time: float, texts: Container[bytes]
) -> tuple[int, ...] | None:
    """Return the number of each sample; None unless each has labels, a number and no time."""
    places: list[int] = []
    wanted = {sample.name for sample in samples}
    unplaced = iter(samples)
    for place, (head, tail) in enumerate(zip(lines.heads, lines.tails)):  # noqa: B905 - a rest
        written, brace, text = head.rpartition(b"\n")[2].partition(b"{")
        name = written.strip().decode("latin-1")
        if name not in wanted:
            continue
        sample = next(unplaced, None)
        if not brace or sample is None or sample.name != name or sample.time != time:
            return None
        if text not in texts or not _equals(tail, sample.value):
            return None
        places.append(place)
    return tuple(places) if len(places) == len(samples) else None


def _numbers(tails: Sequence[bytes]) -> list[float] | None:
    """Return the numbers; None if one is not a number.

    Most are numbers of JSON too, whose decoder takes a fifth of the time of ``float`` and gives the
    same values. It does not know the sign of ``-0``.
    """
    text = b",".join(tails)
    if b"-0" not in text:
        try:
            values = _JSON.decode(b"[%b]" % text)
        except msgspec.DecodeError:
            pass
        else:
            return values if len(values) == len(tails) else None
    if b"_" in text:  # which Python accepts in a number
        return None
    try:
        return list(map(float, tails))
    except ValueError:
        return None


def _equals(tail: bytes, value: float) -> bool:
    try:
        number = float(tail)
    except ValueError:
        return False
    return number == value or number != number  # noqa: PLR0124 - both are not a number


def _mark_decimals(values: list[float], tails: Sequence[bytes]) -> None:
    """Mark the ones with decimals, see :class:`adapter.pipeline.exposition.samples.Decimals`."""
    place = -1
    for _ in range(values.count(1.0)):
        place = values.index(1.0, place + 1)
        if b"." in tails[place]:
            values[place] = ONE_WITH_DECIMALS


@lru_cache(maxsize=512)
def share_equal(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the first tuple that was equal to this one: most exporters write alike pages."""
    return values

"""The text that exporters speak, read line by line: one bad line costs one line.

Strict parsers reject a page for one duplicate label name (dcgm-exporter up to 4.8.2 writes
them), and a page is read every few seconds, so this one is built around two facts. Nothing
on a page changes from scrape to scrape but the numbers, so the text between the braces is
read once and remembered. And a line that is not plain ``name{labels} number`` is so rare
that it may go through the strict, slow :mod:`adapter.exposition.line`.

The author of a page may be hostile. :mod:`adapter.exposition.limits` bounds what a page may
cost in time and what is remembered of it, and its cost grows linearly with its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adapter.exposition.limits import (
    EXPORTER,
    LABEL_BYTES,
    OVER_BUDGET,
    SET_BYTES,
    TEXT_BYTES,
    PageLimits,
)
from adapter.exposition.line import (
    DUPLICATE_LABEL,
    Labels,
    LineError,
    label_set,
    sample_line,
    sample_name,
    sample_time,
)
from adapter.exposition.lines import TOO_LONG, lines_of, open_metrics
from adapter.exposition.samples import ONE_WITH_DECIMALS, Sample
from apiservice.runtime.steps import Steps, at_once, parts

TOO_MANY: Final = "too_many_rows"
TOO_COSTLY: Final = "too_costly"

_MAX_LINE: Final = 1 << 14
"""Bytes of a line that is read closely."""
_PASSED_OVER: Final = frozenset((b"", b"#"))
"""What lines without a sample begin with."""
_LINES: Final = 512
"""Lines that one step reads, unless it looks closely at some: some 0.3 ms."""
_WORK: Final = 64
"""Closer looks in one step."""
_MAX_NAMES: Final = 4096
_MAX_SERIES_NAME: Final = 512
"""Bytes of a series' name that is remembered while its page is read."""


class _TooCostlyError(Exception):
    """The page has used up its work."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one answer of an exporter said."""

    samples: list[Sample]
    rejects: dict[str, int]
    """Lines that were left out, by reason; and ``duplicate_label``, where the line was kept."""
    held: int = field(default=0, compare=False)
    """Bytes that the page's label sets take at most, for as long as they are remembered."""

    @property
    def abandoned(self) -> bool:
        """The page costs more than it may, so nothing of it was kept."""
        return TOO_COSTLY in self.rejects


class LabelMemo:
    """The label sets of one exporter's last page, so that the next page need not parse them.

    One per exporter. It holds exactly what the last page held: labels that churn leave with
    the page that had them last.
    """

    __slots__ = ("flawed", "sets")

    def __init__(self) -> None:
        self.sets: dict[bytes, Mapping[str, str]] = {}
        self.flawed: dict[bytes, Labels] = {}
        """Label texts that are counted each time they are met, so never on the fast path."""

    def __len__(self) -> int:
        return len(self.sets) + len(self.flawed)


def parse(
    page: bytes,
    *,
    time: float,
    memo: LabelMemo | None = None,
    wanted: Container[str] | None = None,
    limits: PageLimits = EXPORTER,
) -> Page:
    """Read a page at once. See :func:`parsing`."""
    return at_once(parsing(page, time=time, memo=memo, wanted=wanted, limits=limits))


def parsing(
    page: bytes,
    *,
    time: float,
    memo: LabelMemo | None = None,
    wanted: Container[str] | None = None,
    limits: PageLimits = EXPORTER,
) -> Steps[Page]:
    """Read a Prometheus or OpenMetrics text page, in steps.

    Args:
        page: the body, decompressed.
        time: epoch seconds of the scrape; samples with a timestamp of their own keep that.
        memo: what was learnt from this exporter's last page; updated.
        wanted: series names to keep; the others are passed over uncounted. None keeps all.
        limits: what the page may cost.

    Never raises: what cannot be read is left out and counted. A last line without a line
    feed is a cut line, since its number may be cut too.
    """
    memo = LabelMemo() if memo is None else memo
    reader = _Reader(time, memo, wanted, limits, seconds=open_metrics(page))
    left = limits.lines
    try:
        for lines in lines_of(page, reader.rejects):
            left -= len(lines)
            if left < 0:
                raise _TooCostlyError
            for some in parts(lines, _LINES):
                yield from reader.read(some)
                yield
            if len(reader.samples) > limits.samples:
                reader.rejects[TOO_MANY] += len(reader.samples) - limits.samples
                del reader.samples[limits.samples :]
                break
    except _TooCostlyError:
        return Page([], {TOO_COSTLY: 1})
    memo.sets, memo.flawed = reader.sets, reader.flawed
    return Page(reader.samples, dict(reader.rejects), reader.held)


class _Reader:
    """One page's reading: samples and rejects so far, and the label sets met."""

    def __init__(
        self,
        time: float,
        memo: LabelMemo,
        wanted: Container[str] | None,
        limits: PageLimits,
        *,
        seconds: bool,
    ) -> None:
        self.held = 0
        self.samples: list[Sample] = []
        self.rejects: Counter[str] = Counter()
        self.sets: dict[bytes, Mapping[str, str]] = {}
        self.flawed: dict[bytes, Labels] = {}
        self._time = time
        self._old = memo
        self._wanted = wanted
        self._room = limits.held
        self._work = limits.work
        self._pause = limits.work - _WORK
        """The work left at which the step ends."""
        self._seconds = seconds
        self._names: dict[bytes, str] = {}
        """Name as written -> name, or "" for a name that is not wanted."""

    def read(self, lines: Sequence[bytes]) -> Steps[None]:
        """Read whole lines. This loop is the cost of a scrape; the rest is rare."""
        names, sets, time = self._names, self.sets, self._time
        append, make = self.samples.append, tuple.__new__
        for line in lines:
            written, _, rest = line.partition(b"{")
            name = names.get(written)
            if not name:
                if name is None:
                    name = self._name(line, written)
                if not name:
                    continue
            text, brace, tail = rest.rpartition(b"} ")
            labels = sets.get(text)
            if labels is None or not brace or b"_" in tail:
                labels = self._new(text, tail) if brace and b"_" not in tail else None
                if self._pause >= self._work:
                    self._pause = self._work - _WORK
                    yield
                if labels is None:
                    self._slow(line)
                    continue
            try:
                value = float(tail)
                if value == 1.0 and b"." in tail:
                    value = ONE_WITH_DECIMALS
                append(make(Sample, (name, labels, value, time)))
            except ValueError:
                self._slow(line)

    def _spend(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise _TooCostlyError

    def _name(self, line: bytes, written: bytes) -> str:
        """The wanted name that a line with labels begins with; settles every other line."""
        if line[:1] in _PASSED_OVER:
            return ""
        try:
            name = sample_name(written)
        except LineError as error:
            if line.strip():
                self.rejects[error.reason] += 1
            return ""
        if self._wanted is not None and name not in self._wanted:
            name = ""
        if len(written) < len(line):
            if len(self._names) < _MAX_NAMES and len(written) <= _MAX_SERIES_NAME:
                self._names[written] = name
            return name
        if name:
            self._slow(line)
        return ""

    def _new(self, text: bytes, tail: bytes) -> Mapping[str, str] | None:
        """The labels of a text not yet met on this page; None if the line needs a closer look.

        Nothing new is remembered of a line whose number is bad.
        """
        known = self._old.sets.get(text)
        if known is None:
            try:
                float(tail)
                known, duplicates = self._read_set(text)
            except ValueError:
                return None
            if duplicates:
                return None
        held = self.held + SET_BYTES + TEXT_BYTES * len(text) + LABEL_BYTES * len(known)
        if held > self._room:
            return None
        self.held = held
        self.sets[text] = known
        return known

    def _read_set(self, text: bytes) -> Labels:
        if len(text) > _MAX_LINE:
            raise LineError(TOO_LONG)
        self._spend(2)
        found = label_set(text)
        self._spend(len(found.labels) >> 2)
        return found

    def _remember(self, text: bytes, labels: Labels) -> bool:
        """Keep a label set for later lines and the next page; False if there is no room."""
        if text in self.sets or text in self.flawed:
            return True
        size = SET_BYTES + TEXT_BYTES * len(text) + LABEL_BYTES * len(labels.labels)
        held = self.held + size
        if held > self._room:
            self.rejects[OVER_BUDGET] += 1
            return False
        self.held = held
        if labels.duplicates:
            self.flawed[text] = labels
        else:
            self.sets[text] = labels.labels
        return True

    def _slow(self, line: bytes) -> None:
        """Read what is not plain ``name{labels} number``."""
        self._spend(2)
        if len(line) > _MAX_LINE:
            self.rejects[TOO_LONG] += 1
            return
        try:
            name, text, value, stamp = sample_line(line)
            labels = self._any_set(text)
            time = sample_time(stamp, self._time, seconds=self._seconds)
        except LineError as error:
            self.rejects[error.reason] += 1
            return
        if self._wanted is not None and name not in self._wanted:
            return
        if not self._remember(text, labels):
            return
        if labels.duplicates:
            self.rejects[DUPLICATE_LABEL] += 1
        self.samples.append(Sample(name, labels.labels, value, time))

    def _any_set(self, text: bytes) -> Labels:
        plain = self.sets.get(text) or self._old.sets.get(text)
        if plain is not None:
            return Labels(plain, 0)
        return self.flawed.get(text) or self._old.flawed.get(text) or self._read_set(text)

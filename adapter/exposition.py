"""The text that exporters speak, read line by line: one bad line costs one line.

Strict parsers reject a page for one duplicate label name (dcgm-exporter up to 4.8.2 writes
them), and a page is read every few seconds, so this one is built around two facts. Nothing
on a page changes from scrape to scrape but the numbers, so the text between the braces is
read once and remembered. And a line that is not plain ``name{labels} number`` is so rare
that it may go through the strict, slow :mod:`adapter.sampleline`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.batch import Row
from adapter.sampleline import (
    DUPLICATE_LABEL,
    Labels,
    LineError,
    label_set,
    sample_line,
    sample_name,
    sample_time,
)

CUT_LINE: Final = "cut_line"
TOO_LONG: Final = "line_too_long"
TOO_MANY: Final = "too_many_rows"

_CHUNK: Final = 1 << 18
"""Bytes split into lines at once: a page of nothing but line feeds stays cheap."""
_MAX_LINE: Final = 1 << 16
_MAX_ROWS: Final = 1 << 16
"""Rows of the catalogue on one page: three times what 16 GPUs with 48 replicas each have."""
_MAX_NAMES: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Page:
    """What one answer of an exporter said."""

    rows: list[Row]
    rejects: dict[str, int]
    """Lines that were left out, by reason; and ``duplicate_label``, where the line was kept."""


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
) -> Page:
    """Read a Prometheus or OpenMetrics text page.

    Args:
        page: the body, decompressed.
        time: epoch seconds of the scrape; rows with a timestamp of their own keep that.
        memo: what was learnt from this exporter's last page; updated.
        wanted: series names to keep; the others are passed over uncounted. None keeps all.

    Never raises: what cannot be read is left out and counted. A last line without a line
    feed is a cut line, since its number may be cut too.
    """
    memo = LabelMemo() if memo is None else memo
    reader = _Reader(time, memo, wanted, seconds=_open_metrics(page))
    for lines in _lines(page, reader.rejects):
        reader.read(lines)
        if len(reader.rows) > _MAX_ROWS:
            reader.rejects[TOO_MANY] += len(reader.rows) - _MAX_ROWS
            del reader.rows[_MAX_ROWS:]
            break
    memo.sets, memo.flawed = reader.sets, reader.flawed
    return Page(reader.rows, dict(reader.rejects))


def _open_metrics(page: bytes) -> bool:
    """The last line is ``# EOF``: not just the end of a label's text, where a page was cut."""
    text = page.rstrip()
    return text[text.rfind(b"\n") + 1 :].strip() == b"# EOF"


def _lines(page: bytes, rejects: Counter[str]) -> Iterator[list[bytes]]:
    """Whole lines, in lists of bounded size."""
    start = len(_BOM) if page.startswith(_BOM) else 0
    end = page.rfind(b"\n") + 1
    rest = page[max(start, end) :].strip()
    if rest and rest != b"# EOF":
        rejects[CUT_LINE] += 1
    while start < end:
        stop = page.rfind(b"\n", start, start + _CHUNK) + 1
        if not stop:
            rejects[TOO_LONG] += 1
            start = page.find(b"\n", start + _CHUNK) + 1
            continue
        lines = page[start:stop].split(b"\n")
        lines.pop()
        yield lines
        start = stop


class _Reader:
    """One page's reading: rows and rejects so far, and the label sets met."""

    def __init__(
        self, time: float, memo: LabelMemo, wanted: Container[str] | None, *, seconds: bool
    ) -> None:
        self.rows: list[Row] = []
        self.rejects: Counter[str] = Counter()
        self.sets: dict[bytes, Mapping[str, str]] = {}
        self.flawed: dict[bytes, Labels] = {}
        self._time = time
        self._old = memo
        self._wanted = wanted
        self._seconds = seconds
        self._names: dict[bytes, str] = {}
        """Name as written -> name, or "" for a name that is not wanted."""

    def read(self, lines: list[bytes]) -> None:
        """Read whole lines. This loop is the cost of a scrape; the rest is rare."""
        names, sets, time = self._names, self.sets, self._time
        append, make = self.rows.append, tuple.__new__
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
                labels = self._label_set(text) if brace and b"_" not in tail else None
                if labels is None:
                    self._slow(line)
                    continue
            try:
                append(make(Row, (name, labels, float(tail), time)))
            except ValueError:
                self._slow(line)

    def _name(self, line: bytes, written: bytes) -> str:
        """The wanted name that a line with labels begins with; settles every other line."""
        if line[:1] == b"#":
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
            if len(self._names) < _MAX_NAMES:
                self._names[written] = name
            return name
        if name:
            self._slow(line)
        return ""

    def _label_set(self, text: bytes) -> Mapping[str, str] | None:
        """The labels of a text not yet met on this page; None if the line needs a closer look."""
        known = self._old.sets.get(text)
        if known is None:
            if len(text) > _MAX_LINE:
                return None
            try:
                known, duplicates = label_set(text)
            except LineError:
                return None
            if duplicates:
                return None
        self.sets[text] = known
        return known

    def _slow(self, line: bytes) -> None:
        """Read what is not plain ``name{labels} number``."""
        if len(line) > _MAX_LINE:
            self.rejects[TOO_LONG] += 1
            return
        try:
            name, text, value, stamp = sample_line(line)
            labels, duplicates = self._flawed_set(text)
            time = sample_time(stamp, self._time, seconds=self._seconds)
        except LineError as error:
            self.rejects[error.reason] += 1
            return
        if duplicates:
            self.rejects[DUPLICATE_LABEL] += 1
        if self._wanted is None or name in self._wanted:
            self.rows.append(Row(name, labels, value, time))

    def _flawed_set(self, text: bytes) -> Labels:
        plain = self.sets.get(text) or self._old.sets.get(text)
        if plain is not None:
            self.sets[text] = plain
            return Labels(plain, 0)
        known = self.flawed.get(text) or self._old.flawed.get(text) or label_set(text)
        if known.duplicates:
            self.flawed[text] = known
        else:
            self.sets[text] = known.labels
        return known

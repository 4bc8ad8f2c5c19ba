"""Parse a Prometheus or OpenMetrics text page; a malformed line costs only that line.

Strict parsers reject a page for one duplicate label name, which dcgm-exporter up to 4.8.2
writes. A page is also read every few seconds, so this parser relies on two facts. First, from
scrape to scrape nothing but numbers changes on most pages, and
:mod:`adapter.pipeline.exposition.pagelayout` reads these. On the others few labels change, so the
text between the braces is parsed once and cached. Second, few lines are not plain
``name{labels} number``, so these lines go through the strict and slow
:mod:`adapter.pipeline.exposition.line`.

The author of a page may be hostile. :mod:`adapter.pipeline.exposition.limits` bounds the time that
a page may cost and the memory that is kept for it. The cost grows linearly with the page's length.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from adapter.pipeline.exposition.bucketnames import BOUND, bucket_name, may_be_bucket
from adapter.pipeline.exposition.cutlabels import CutLabels, label_count
from adapter.pipeline.exposition.limits import (
    EXPORTER,
    LABEL_BYTES,
    OVER_BUDGET,
    SET_BYTES,
    TEXT_BYTES,
    PageLimits,
)
from adapter.pipeline.exposition.line import (
    BAD_VALUE,
    DUPLICATE_LABEL,
    Labels,
    LineError,
    label_set,
    name_and_labels,
    sample_line,
    sample_name,
    sample_time,
)
from adapter.pipeline.exposition.lines import TOO_LONG, is_open_metrics, lines_of
from adapter.pipeline.exposition.pagelayout import LayoutMemo, LayoutSamples
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS, Sample
from apiservice.runtime.steps import Steps, at_once, parts

TOO_MANY: Final = "too_many_samples"
TOO_COSTLY: Final = "too_costly"

_MAX_LINE: Final = 1 << 14
"""Bytes of a line that goes through the slow parser."""
_PASSED_OVER: Final = frozenset((b"", b"#"))
"""First bytes of lines without a sample."""
_LINES: Final = 512
"""Lines that one step reads if few of them need the slow parser: about 0.3 ms."""
_WORK: Final = 64
"""Units of slow parsing in one step."""
_UNREAD: Final = 64
"""Samples without a readable number whose labels are kept."""
_UNREAD_TEXT: Final = 1024
"""Bytes of the labels of such a sample."""
_MAX_NAMES: Final = 4096
_NO_SETS: Final[dict[bytes, Mapping[str, str]]] = {}
_NONE_FLAWED: Final[dict[bytes, Labels]] = {}
"""Both stay empty: a memo's are replaced, never changed."""
_MAX_SERIES_NAME: Final = 512
"""Longest series name, in bytes, that is cached while its page is read."""


class _TooCostlyError(Exception):
    """The page has used up its ``work``."""


@dataclass(frozen=True, slots=True)
class Page:
    """The result of parsing one page."""

    samples: Sequence[Sample]
    """:class:`adapter.pipeline.exposition.pagelayout.LayoutSamples` if the text around the numbers
    is that of the page before."""
    rejects: dict[str, int]
    """Lines that were left out, by reason. A line with ``duplicate_label`` was kept."""
    held: int = field(default=0, compare=False)
    """Upper bound of the bytes of the page's label sets, while they are kept."""
    unread: Sequence[Sample] = field(default=(), compare=False)
    """Samples whose number cannot be read, as not a number; at most 64. They are in ``rejects``."""
    incomplete: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of series of which samples beyond a limit were left out: a sum of the others is too
    small."""

    @property
    def abandoned(self) -> bool:
        """Whether the page exceeded its limits, so that nothing of it was kept."""
        return TOO_COSTLY in self.rejects

    @property
    def whole(self) -> bool:
        """Whether no line was left out, so that a series without a sample is not on the page."""
        return not self.rejects.keys() - {DUPLICATE_LABEL}


class LabelMemo:
    """What is known of one exporter's last page: its layout, or else its label sets.

    It holds exactly the label sets of a last page without a layout, so that they are parsed once.
    Others are dropped with the page that had them last.
    """

    __slots__ = ("flawed", "layouts", "sets")

    def __init__(self) -> None:
        self.layouts = LayoutMemo()
        self.sets: dict[bytes, Mapping[str, str]] = {}
        self.flawed: dict[bytes, Labels] = {}
        """Label texts that count a reject on every occurrence, and so skip the fast path."""

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
    """Parse a page without pauses. See :func:`parse_in_steps`."""
    return at_once(parse_in_steps(page, time=time, memo=memo, wanted=wanted, limits=limits))


def parse_in_steps(
    page: bytes,
    *,
    time: float,
    memo: LabelMemo | None = None,
    wanted: Container[str] | None = None,
    limits: PageLimits = EXPORTER,
) -> Steps[Page]:
    """Parse a Prometheus or OpenMetrics text page, in steps.

    The function does not raise for malformed text: it leaves the line out and counts it. A last
    line without a line feed was cut, and its number may be cut too, so it is left out.

    Args:
        time: epoch seconds of the scrape; a sample's own timestamp takes precedence.
        memo: the label sets of this exporter's last page; updated.
        wanted: series names to keep. Others are skipped and not counted. None keeps all.
        limits: what the page may cost.
    """
    repeats = memo is not None and limits.layouts and len(page) < limits.large
    memo = LabelMemo() if memo is None else memo
    again = partial(_samples, page, time, wanted, limits)
    by_layout = memo.layouts.read(page, time, limits.held, again) if repeats else None
    if by_layout is not None:
        layout, same = by_layout
        return Page(same, dict(layout.rejects), layout.held)
    reader = _Reader(time, memo, wanted, limits, seconds=is_open_metrics(page))
    left, full = limits.lines, False
    try:
        for lines in lines_of(page, reader.rejects):
            left -= len(lines)
            if left < 0:
                raise _TooCostlyError
            for some in parts(lines, _LINES):
                if full:
                    reader.note_names(some)
                else:
                    yield from reader.read(some)
                yield
            if len(reader.samples) > limits.samples:
                reader.rejects[TOO_MANY] += len(reader.samples) - limits.samples
                reader.incomplete.update(sample.name for sample in reader.samples[limits.samples :])
                del reader.samples[limits.samples :]
                full = True
    except _TooCostlyError:
        return Page([], {TOO_COSTLY: 1})
    memo.sets, memo.flawed = reader.sets, reader.flawed
    rejects = dict(reader.rejects)
    samples: Sequence[Sample] = reader.samples
    if repeats:
        texts = reader.sets.keys() | reader.flawed.keys()
        samples = memo.layouts.learn(page, reader.samples, rejects, reader.held, time, texts)
        if isinstance(samples, LayoutSamples):
            memo.sets, memo.flawed = _NO_SETS, _NONE_FLAWED
    return Page(samples, rejects, reader.held, reader.unread, frozenset(reader.incomplete))


def _samples(
    page: bytes, time: float, wanted: Container[str] | None, limits: PageLimits
) -> Sequence[Sample]:
    return parse(page, time=time, wanted=wanted, limits=limits).samples


class _Reader:
    """The state while one page is parsed: samples, rejects and label sets so far."""

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
        self.unread: list[Sample] = []
        self.incomplete: set[str] = set()
        self.rejects: Counter[str] = Counter()
        self.sets: dict[bytes, Mapping[str, str]] = {}
        self.flawed: dict[bytes, Labels] = {}
        self._time = time
        self._old = memo
        self._wanted = wanted
        self._room = limits.held
        self._work = limits.work
        self._pause = limits.work - _WORK
        """The remaining work at which the step ends."""
        self._seconds = seconds
        self._texts: dict[str, str] = {}
        """Values of new label sets: those of a page's devices have most values in common."""
        self._names: dict[bytes, str] = {}
        """Name as written -> name, or "" for a name that is not wanted."""

    def read(self, lines: Sequence[bytes]) -> Steps[None]:
        """Parse complete lines. This loop is the main cost of a scrape."""
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
                labels = self._new_labels(text, tail) if brace and b"_" not in tail else None
                if self._pause >= self._work:
                    self._pause = self._work - _WORK
                    yield
                if labels is None:
                    self._parse_slowly(line)
                    continue
            try:
                value = float(tail)
                if value == 1.0 and b"." in tail:
                    value = ONE_WITH_DECIMALS
                append(make(Sample, (name, labels, value, time)))
            except ValueError:
                self._parse_slowly(line)

    def note_names(self, lines: Sequence[bytes]) -> None:
        """Note the wanted series of lines that are not read any more."""
        for line in lines:
            words = line.partition(b"{")[0].split(None, 1)
            name = words[0].decode("latin-1") if words else ""
            if self._wanted is None or name in self._wanted:
                self.incomplete.add(name)

    def _spend(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise _TooCostlyError

    def _name(self, line: bytes, written: bytes) -> str:
        """Return the wanted name at the start of a line with labels; handle every other line."""
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
        behind_value = len(written.split(None, 1)) > 1  # the brace is that of an exemplar
        if name and self._wanted is not None and may_be_bucket(name) and not behind_value:
            self._read_bucket(name, line, len(written) + 1)
            return ""
        if len(written) < len(line) and not behind_value:
            if len(self._names) < _MAX_NAMES and len(written) <= _MAX_SERIES_NAME:
                self._names[written] = name
            return name
        if name:
            self._parse_slowly(line)
        return ""

    def _read_bucket(self, name: str, line: bytes, start: int) -> None:
        """Read a bucket of a histogram; the slow parser leaves the bound among the labels."""
        text, _, tail = line[start:].rpartition(b"} ")
        bound = BOUND.search(text)
        try:
            if bound is None or b"_" in tail:
                raise ValueError
            value, name = float(tail), bucket_name(name, bound[1].decode())
        except ValueError:
            self._parse_slowly(line)
            return
        # The comma before the bound, or that behind a first bound, goes with it.
        rest = text[: bound.start()] + text[bound.end() + (bound.start() == 0) :]
        labels = self.sets.get(rest)
        if labels is None:
            labels = self._new_labels(rest, tail)
        if labels is None:
            self._parse_slowly(line)
        else:
            self.samples.append(Sample(name, labels, value, self._time))

    def _new_labels(self, text: bytes, tail: bytes) -> Mapping[str, str] | None:
        """Return the labels of a text that is new on this page, or None for the slow parser.

        The label set of a line with a malformed number is not cached.
        """
        labels = self._old.sets.get(text)
        if labels is None:
            try:
                float(tail)
                labels, duplicates = self._read_set(text)
            except ValueError:
                return None
            if duplicates:
                return None
        held = self.held + SET_BYTES + TEXT_BYTES * len(text) + LABEL_BYTES * label_count(labels)
        if held > self._room:
            return None
        self.held = held
        self.sets[text] = labels
        return labels

    def _read_set(self, text: bytes) -> Labels:
        if len(text) > _MAX_LINE:
            raise LineError(TOO_LONG)
        self._spend(2)
        labels = label_set(text)
        self._spend(label_count(labels.labels) >> 2)
        first = self._texts.setdefault
        shared = {name: first(value, value) for name, value in labels.labels.items()}
        if isinstance(labels.labels, CutLabels):
            return Labels(CutLabels(shared, labels.labels.cut), labels.duplicates)
        return Labels(shared, labels.duplicates)

    def _remember(self, text: bytes, labels: Labels) -> bool:
        """Cache a label set for later lines and the next page; return False if there is no room."""
        if text in self.sets or text in self.flawed:
            return True
        size = SET_BYTES + TEXT_BYTES * len(text) + LABEL_BYTES * label_count(labels.labels)
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

    def _parse_slowly(self, line: bytes) -> None:
        """Parse a line that is not plain ``name{labels} number``."""
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
            if error.reason == BAD_VALUE and len(self.unread) < _UNREAD:
                self._keep_unread(line)
            return
        if self._wanted is not None and name not in self._wanted:
            return
        if not self._remember(text, labels):
            self.incomplete.add(name)
            return
        if labels.duplicates:
            self.rejects[DUPLICATE_LABEL] += 1
        self.samples.append(Sample(name, labels.labels, value, time))

    def _keep_unread(self, line: bytes) -> None:
        """Keep what a line without a good number names, so that its pod's reason can say so."""
        name, text = name_and_labels(line)
        if len(text) > _UNREAD_TEXT or (self._wanted is not None and name not in self._wanted):
            return
        with suppress(LineError):
            labels = self._any_set(text)
            self.unread.append(Sample(name, labels.labels, math.nan, self._time))

    def _any_set(self, text: bytes) -> Labels:
        plain = self.sets.get(text) or self._old.sets.get(text)
        if plain is not None:
            return Labels(plain, 0)
        return self.flawed.get(text) or self._old.flawed.get(text) or self._read_set(text)

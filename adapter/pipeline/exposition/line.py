"""Parse one line of exposition text strictly, including escapes, exemplars and timestamps.

The grammar is that of a sample line in Prometheus' text format 0.0.4 and in OpenMetrics 1.0
(prometheus/docs, ``exposition_formats.md``; ``OpenMetrics.md``).

The cost of a line grows linearly with its length, regardless of its content: all quantifiers are
possessive, and each text is scanned once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

from adapter.pipeline.exposition.cutlabels import CutLabels
from adapter.pipeline.exposition.podspellings import WORKLOAD_LABELS
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS

BAD_NAME: Final = "bad_name"
BAD_LABELS: Final = "bad_labels"
BAD_VALUE: Final = "bad_value"
BAD_TIMESTAMP: Final = "bad_timestamp"
BAD_ENCODING: Final = "bad_encoding"
DUPLICATE_LABEL: Final = "duplicate_label"
LONG_LABEL: Final = "label_too_long"
MANY_LABELS: Final = "too_many_labels"

MAX_LABELS: Final = 128
"""Labels per line that are kept. dcgm-exporter writes about 20, and optionally all labels of the
pod."""
MAX_WRITTEN: Final = 8 * MAX_LABELS
"""Labels per line that are looked at; a line with more is left out."""
MAX_NAME: Final = 512
"""Characters of a label's name that is kept. A Kubernetes label key has at most 317."""
MAX_TEXT: Final = 1024
"""Characters of a label's value that is kept. Names of Kubernetes objects have at most 253."""
_SHORT: Final = MAX_NAME
"""Characters of a text that needs no length checks: no name or value in it can be too long."""

_NAME = re.compile(rb"[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]*+)(?:[ \t]|\Z)")
# The braces are optional without being possessive: before Python 3.11.5, a possessive group that
# fails half-way leaves its capture and its position behind (python/cpython#100061, #106052). The
# last group always matches, so nothing is tried twice.
_LINE = re.compile(
    rb"[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+"
    rb'(?:\{([^"}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"}]*+)*+)\})?'
    rb"(.*+)",
    re.DOTALL,
)
_LABEL = re.compile(r'([^"]*+)"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BEFORE_VALUE = re.compile(r"[ \t]*+,[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+")


class LineError(ValueError):
    """A line cannot be parsed. ``reason`` is the reject reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Labels(NamedTuple):
    """The labels of a line, and how many labels with a repeated name were dropped."""

    labels: Mapping[str, str]
    """:class:`adapter.pipeline.exposition.cutlabels.CutLabels` if some are beyond a limit."""
    duplicates: int


class SampleLine(NamedTuple):
    """The parts of a line. ``text`` is the unparsed text between the braces."""

    name: str
    text: bytes
    value: float
    stamp: float | None
    """The line's own timestamp, in the unit of the page."""


def sample_name(written: bytes) -> str:
    """Return the series name at the start of ``written``; a value may follow it.

    Raises:
        LineError: there is no valid name.
    """
    match = _NAME.match(written)
    if match is None:
        raise LineError(BAD_NAME)
    return match[1].decode()


def name_and_labels(line: bytes) -> tuple[str, bytes]:
    """Return the series name of a sample line and the text between its braces.

    Raises:
        LineError: the line has no name.
    """
    match = _LINE.fullmatch(line)
    if match is None:
        raise LineError(BAD_NAME)
    return match[1].decode(), match[2] or b""


def sample_line(line: bytes) -> SampleLine:
    """Split a sample line into its parts.

    Raises:
        LineError: the line is malformed; the error has the reject reason.
    """
    match = _LINE.fullmatch(line)
    if match is None:
        raise LineError(BAD_NAME)
    name, text, tail = match.groups()
    if text is None and tail.startswith(b"{"):
        raise LineError(BAD_LABELS)
    value, *stamps = tail.split(b"#", 1)[0].split() or [b""]
    number = _number(value, BAD_VALUE)  # first: DCGM writes a sentence for a value it cannot tell
    if len(stamps) > 1:
        raise LineError(BAD_TIMESTAMP)
    stamp = _number(stamps[0], BAD_TIMESTAMP) if stamps else None
    if number == 1 and b"." in value:
        number = ONE_WITH_DECIMALS
    return SampleLine(name.decode(), text or b"", number, stamp)


def label_set(text: bytes) -> Labels:
    """Parse the text between the braces into labels.

    dcgm-exporter writes the labels of the device, then the pod's own labels, then the labels
    that name the pod, and up to 4.8.2 it repeats a name. A tenant writes the pod's own labels.
    Therefore the first occurrence of a name wins, except for the labels that name the
    workload, where the last one wins.

    Raises:
        LineError: the text is malformed; the error has the reject reason.
    """
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise LineError(BAD_ENCODING) from None
    if "\\" in decoded:
        names, values, rest = _split_escaped(decoded)
    else:
        parts = decoded.split('"')
        names, values, rest = parts[:-1:2], parts[1::2], parts[-1]
    if len(names) != len(values) or rest.strip(" \t") not in ("", ",") or (rest and not names):
        raise LineError(BAD_LABELS)
    if names and names[0].lstrip(" \t").startswith(","):
        raise LineError(BAD_LABELS)
    names[:1] = ["," + first for first in names[:1]]
    if len(decoded) > _SHORT and _exceed_limits(names, values):
        return _cut(names, values)
    # Labels are not interned: some releases of Python 3.12 never free interned text.
    labels = dict(zip(map(_label_name, reversed(names)), reversed(values), strict=True))
    duplicates = len(names) - len(labels)
    if duplicates:
        written = zip(map(_label_name, names), values, strict=True)
        labels.update((name, value) for name, value in written if name in WORKLOAD_LABELS)
    return Labels(labels, duplicates)


def sample_time(stamp: float | None, scraped: float, *, seconds: bool) -> float:
    """Return the epoch seconds at which a sample was measured.

    OpenMetrics uses timestamps in seconds, the older format milliseconds. A page that ends with
    ``# EOF`` is OpenMetrics. If the page was cut, the reading nearer to the scrape is used.
    """
    if stamp is None:
        return scraped
    if not isfinite(stamp):
        raise LineError(BAD_TIMESTAMP)
    if seconds or abs(stamp - scraped) < abs(stamp / 1000 - scraped):
        return stamp
    return stamp / 1000


def _exceed_limits(names: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a label is beyond a limit. ``names`` are as written, and therefore longer."""
    if not names or len(names) > MAX_LABELS:
        return bool(names)
    return max(map(len, names)) > MAX_NAME or max(map(len, values)) > MAX_TEXT


def _cut(names: Sequence[str], values: Sequence[str]) -> Labels:
    """Return the labels within the limits, and the names of the others.

    Of too many labels the first and the last are kept: exporters write those of the device first
    and those that name the workload last.
    """
    if len(names) > MAX_WRITTEN:
        raise LineError(MANY_LABELS)
    half = MAX_LABELS // 2
    middle = range(half, len(names) - half) if len(names) > MAX_LABELS else range(0)
    texts: dict[str, tuple[str, str]] = {}
    for place, (written, value) in enumerate(zip(names, values, strict=True)):
        # A long name is not cached: the cache counts names, not bytes.
        name = _label_name(written) if len(written) <= MAX_NAME else _written_name(written)
        long = len(name) > MAX_NAME or len(value) > MAX_TEXT
        reason = LONG_LABEL if long else MANY_LABELS if place in middle else ""
        if name not in texts or name in WORKLOAD_LABELS:
            texts[name] = ("" if reason else value, reason)
    labels = {name: value for name, (value, reason) in texts.items() if not reason}
    cut = {name[:MAX_NAME]: reason for name, (_, reason) in texts.items() if reason}
    return Labels(CutLabels(labels, cut) if cut else labels, len(names) - len(texts))


def _split_escaped(text: str) -> tuple[list[str], list[str], str]:
    names: list[str] = []
    values: list[str] = []
    end = 0
    while match := _LABEL.match(text, end):
        names.append(match[1])
        values.append(_ESCAPE.sub(_unescape, match[2]))
        end = match.end()
    return names, values, text[end:]


def _unescape(match: re.Match[str]) -> str:
    return {"n": "\n"}.get(match[1], match[1])


def _written_name(written: str) -> str:
    """Return ``UUID`` for ``,UUID=``."""
    match = _BEFORE_VALUE.fullmatch(written)
    if match is None:
        raise LineError(BAD_LABELS)
    return match[1]


_label_name = lru_cache(maxsize=2048)(_written_name)
"""Exporters use a few dozen names, so results are cached."""


def _number(written: bytes, reason: str) -> float:
    """Parse a float as Go writes it; Python's ``float`` also accepts ``1_000``."""
    if b"_" in written:
        raise LineError(reason)
    try:
        return float(written)
    except ValueError:
        raise LineError(reason) from None

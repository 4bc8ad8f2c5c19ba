"""Split a page into lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

CUT_LINE: Final = "cut_line"
TOO_LONG: Final = "line_too_long"

_CHUNK: Final = 1 << 18
"""Bytes that are split at once."""
_BOM: Final = b"\xef\xbb\xbf"


def is_open_metrics(page: bytes) -> bool:
    """Return whether the last line is ``# EOF``, and not just a label text that ends with it."""
    text = page.rstrip()
    return text[text.rfind(b"\n") + 1 :].strip() == b"# EOF"


def lines_of(page: bytes, rejects: Counter[str]) -> Iterator[list[bytes]]:
    """Yield the complete lines, in lists of bounded size."""
    start = len(_BOM) if page.startswith(_BOM) else 0
    end = page.rfind(b"\n") + 1
    last_line = page[max(start, end) :].strip()
    if last_line and last_line != b"# EOF":
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

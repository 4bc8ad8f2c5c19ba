"""The names of the series on a page, to tell which program wrote a page that nobody reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MOST_BYTES: Final = 1 << 16
"""Bytes of a page that are looked at."""
_NAME: Final = re.compile(rb"^([a-zA-Z_:][a-zA-Z0-9_:]{0,199})(?=[{ ])", re.MULTILINE)


def series_names(body: bytes) -> Iterator[str]:
    """Yield each name of a series in the beginning of a page once, in the order of the page."""
    yielded = set()
    for name in _NAME.finditer(body, 0, MOST_BYTES):
        if name[1] not in yielded:
            yielded.add(name[1])
            yield name[1].decode("ascii")

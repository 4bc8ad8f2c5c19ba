"""Read pages that are larger than one page may be, and keep of them what is read.

Anyone who may create a pod may serve such a page. So the bytes and lines of one are bounded, and
all of them together get a fixed share of the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Container
from time import perf_counter
from typing import Final

from adapter.pipeline.exposition.limits import EXPORTER
from adapter.pipeline.exposition.linesieve import LineSieve
from adapter.pipeline.sources.errors import SourceError

MOST_BYTES: Final = 16 << 20
"""Bytes of a page of which lines are dropped, after decompression."""
MOST_LINES: Final = EXPORTER.lines
"""Lines of such a page."""
_SLICE: Final = 0.001
"""Seconds without a pause."""
_END: Final = object()
SHARE: Final = 0.2
"""Share of the time in which lines of all such pages are dropped."""


WantedSeries = Callable[[str], Container[str]]
"""Namespace of a pod -> the series that are read of its page; empty for an exporter of a node."""


class LargePages:
    """Reads pages part by part.

    Args:
        wanted: the series that are read of a namespace; None reads no page beyond the limit of one
            page.
    """

    def __init__(self, wanted: WantedSeries | None = None) -> None:
        self._wanted = wanted
        self._turn = asyncio.Lock()

    def largest_page(self, limit: int) -> int:
        """Return the largest page in bytes.

        Args:
            limit: the bytes that may be kept of a page.
        """
        return limit if self._wanted is None else max(limit, MOST_BYTES)

    async def read(
        self, parts: AsyncIterator[bytes], limit: int, lines: int, namespace: str
    ) -> bytes:
        """Return a page, or of one with more bytes or lines than these the wanted lines.

        Raises:
            SourceError: ``too_large`` if more bytes have to be kept, ``too_costly`` if the page has
                more than :data:`MOST_LINES`; and what ``parts`` raises.
        """
        read: list[bytes] = []
        size = written = 0
        sieve: LineSieve | None = None
        async for part in parts:
            size += len(part)
            written += part.count(b"\n")
            read.append(part)
            if sieve is None and self._wanted is not None and (size > limit or written > lines):
                sieve = LineSieve(self._wanted(namespace), MOST_LINES)
            while sieve is not None and read:
                await self._drop(sieve, read.pop(0), limit)
        return b"".join(read) if sieve is None else sieve.page()

    async def _drop(self, sieve: LineSieve, part: bytes, limit: int) -> None:
        steps = sieve.feed(part)
        async with self._turn:
            more = True
            while more:
                started = perf_counter()
                while more and perf_counter() - started < _SLICE:
                    more = next(steps, _END) is not _END
                await asyncio.sleep((perf_counter() - started) * (1 / SHARE - 1))
        if sieve.exhausted:
            raise SourceError("too_costly", f"the page has more than {MOST_LINES} lines")
        if sieve.size > limit:
            raise SourceError(
                "too_large", f"the lines of the page that are read have more than {limit} bytes"
            )

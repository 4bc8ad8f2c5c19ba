"""Bound how many scrapes run at once, and how much memory their pages take together.

Exporters and server pages have separate bounds, so that no pod can prevent exporters from being
read. Within each bound, no namespace gets all of the places.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final
from weakref import WeakValueDictionary

from adapter.pipeline.exposition.limits import PageLimits
from adapter.pipeline.sources.byteroom import ByteRoom, HeldBytes

_RESERVE: Final = 32
"""Fraction (1/32) kept for namespaces that use less than their share."""


class LabelMemory:
    """Bytes of label sets that are kept, or reserved for a page that is being read.

    A small part is for namespaces that use less than their share. If they have used it, the
    pages of the other namespaces shrink until it is free again. So no namespace can prevent that
    the pages of another are read.

    Args:
        page: maximum bytes of one page.
    """

    def __init__(self, size: int, page: int) -> None:
        self._size = size
        self._page = page
        self._reserve = size // _RESERVE
        self._of: Counter[str] = Counter()
        """Namespace -> bytes."""
        self.used = 0
        """Bytes in use."""

    def reserve(self, namespace: str, held: int) -> int:
        """Reserve bytes for the next page of a target whose last page uses ``held`` bytes.

        The returned amount includes ``held``.
        """
        free = self._size - self.used
        if self._of[namespace] > self._size // (len(self._of) + 1):
            most = max(held + free - self._reserve, held // 2)
        else:
            most = held + free
        reserved = max(0, min(self._page, most))
        self._move(namespace, reserved - held)
        return reserved

    def release(self, namespace: str, reserved: int, held: int = 0) -> None:
        """Release the part of the reserved bytes that the page does not use."""
        self._move(namespace, held - reserved)

    def _move(self, namespace: str, size: int) -> None:
        self.used += size
        self._of[namespace] += size
        if not self._of[namespace]:
            del self._of[namespace]


class ScrapePlace:
    """One place for a scrape, used once.

    A class, because generators as contexts cost a tenth of a scrape.
    """

    __slots__ = ("_held", "_of_namespace", "_places")

    def __init__(
        self, of_namespace: asyncio.Semaphore | None, places: asyncio.Semaphore, room: ByteRoom
    ) -> None:
        self._of_namespace = of_namespace
        self._places = places
        self._held = HeldBytes(room)

    async def __aenter__(self) -> HeldBytes:
        if self._of_namespace is not None:
            await self._of_namespace.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            if self._of_namespace is not None:
                self._of_namespace.release()
            raise
        return self._held

    async def __aexit__(self, *_: object) -> None:
        self._held.release()
        self._places.release()
        if self._of_namespace is not None:
            self._of_namespace.release()


class ScrapeLimits:
    """Places for scrapes, bytes of pages in progress, and bytes of label sets that are kept.

    Args:
        places: scrapes at once.
        of_one_namespace: scrapes at once of pods in one namespace; None sets no bound.
        page_bytes: bytes of pages in progress. Above it, pages are read one after another.
        label_bytes: bytes of label sets of all targets together.
        limits: of one page.
        max_bytes: of one page, after decompression.
        setting: the key of ``max_bytes``, with which ``limits`` grow.
    """

    def __init__(
        self,
        places: int,
        of_one_namespace: int | None,
        *,
        page_bytes: int,
        label_bytes: int,
        limits: PageLimits,
        max_bytes: int,
        setting: str = "",
    ) -> None:
        self.setting = setting
        self._places = asyncio.Semaphore(places)
        self._of_one_namespace = of_one_namespace
        self._namespaces: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._bytes = ByteRoom(page_bytes)
        self.labels = LabelMemory(label_bytes, limits.held)
        self.limits = limits
        self.max_bytes = max_bytes
        self._large, self._usual = asyncio.Lock(), asyncio.Lock()

    def place(self, namespace: str) -> ScrapePlace:
        """Return a context that holds one place, and the bytes that its page takes."""
        return ScrapePlace(self._of(namespace), self._places, self._bytes)

    def _of(self, namespace: str) -> asyncio.Semaphore | None:
        if self._of_one_namespace is None:
            return None
        semaphore = self._namespaces.get(namespace)
        if semaphore is None:
            semaphore = self._namespaces[namespace] = asyncio.Semaphore(self._of_one_namespace)
        return semaphore

    def reading_lock(self, size: int) -> asyncio.Lock:
        """Return the lock to hold while a page of ``size`` bytes is parsed and ingested.

        One large page and one small page are processed at a time. A page that is parsed and not yet
        ingested needs memory, and memory for label sets is reserved for the page that is read,
        not for pages that wait.
        """
        return self._large if size >= self.limits.large else self._usual

"""Bound how many scrapes run at once, and how much memory their pages take together.

Exporters and server pages have separate bounds, so that no pod can prevent exporters from being
read. Within each bound, no namespace gets all of the places.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from adapter.exposition.limits import PageLimits
from adapter.sources.byteroom import ByteRoom, HeldBytes
from adapter.sources.scrape.labelmemory import LabelMemory


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
        found = self._namespaces.get(namespace)
        if found is None:
            found = self._namespaces[namespace] = asyncio.Semaphore(self._of_one_namespace)
        return found

    def reading(self, size: int) -> asyncio.Lock:
        """Return the lock to hold while a page of ``size`` bytes is parsed and ingested.

        One large page and one small page are processed at a time. A page that is parsed and not yet
        ingested needs memory, and memory for label sets is reserved for the page that is read,
        not for pages that wait.
        """
        return self._large if size >= self.limits.large else self._usual

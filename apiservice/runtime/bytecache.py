"""Caches bounded by the bytes of their entries, keys included.

A bound on the number of entries does not bound memory when clients choose the keys. Callers state
the size of an entry; :func:`weight` computes it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from cachetools import Cache, FIFOCache, LRUCache, TTLCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY: Final = 320
"""Bytes of bookkeeping per entry: its slots in the cache's tables, its link, its pair (250 by
tracemalloc for a TTLCache on CPython 3.11, rounded up)."""


class ByteCache(Generic[K, V]):
    """Evicts the least recently used entries when its bytes are used up.

    Args:
        limit: bytes that all entries may take together.
        ttl: seconds that an entry is kept; None keeps it until it is dropped.
        first_in: drop the oldest entries instead, which makes a hit a third as expensive.
    """

    def __init__(
        self,
        limit: int,
        ttl: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        first_in: bool = False,
    ) -> None:
        size = itemgetter(1)
        self._entries: Cache[K, tuple[V, int]]
        if ttl is not None:
            self._entries = TTLCache(limit, ttl, clock, getsizeof=size)
        else:
            self._entries = (FIFOCache if first_in else LRUCache)(limit, getsizeof=size)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __getitem__(self, key: K) -> V:
        return self._entries[key][0]

    def get(self, key: K) -> V | None:
        """The entry, or None."""
        try:
            return self._entries[key][0]
        except KeyError:
            return None

    @property
    def bytes(self) -> int:
        """Bytes of the entries, as their callers stated them."""
        return int(self._entries.currsize)

    def put(self, key: K, value: V, size: int) -> None:
        """Add an entry of ``size`` bytes, unless it is larger than the whole cache."""
        size += ENTRY
        if size <= self._entries.maxsize:
            self._entries[key] = (value, size)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()


class Remembering:
    """What keeps answers in caches and counts how often they serve, for metrics."""

    def __init__(self, *caches: ByteCache[Any, Any]) -> None:
        self._caches = caches
        self.hits = 0
        """Lookups that a cache answered."""
        self.misses = 0
        """Lookups that needed more than the caches."""

    @property
    def remembered(self) -> int:
        """Entries in the caches."""
        return sum(map(len, self._caches))

    @property
    def remembered_bytes(self) -> int:
        """Bytes of these entries."""
        return sum(cache.bytes for cache in self._caches)


def weight(*things: object) -> int:
    """Return the bytes of texts and collections of texts, nested ones included."""
    total = 0
    for thing in things:
        total += sys.getsizeof(thing)
        if isinstance(thing, Mapping):
            total += weight(*thing.keys(), *thing.values())
        elif isinstance(thing, Collection) and not isinstance(thing, str | bytes):
            total += weight(*thing)
    return total

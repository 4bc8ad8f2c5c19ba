"""Schedule Python's garbage collections, so that none stops the process for long.

Python counts new objects less those that were freed, and visits all new ones once the difference
is large. An exporter's state is replaced at each scrape: the difference stays small while the new
objects become the whole state of the cluster, and 100,000 of them take a tenth of a second. So new
objects are excluded from later collections many times a second, and visited before only if more of
them were made than freed.

Reference counting frees almost everything that the process drops. Excluded cycles are visited with
all other objects after memory has grown. Usually there are none: under a churn of pods, devices,
users and selectors, a full collection of 400,000 objects finds 100 to 400, and memory grows because
caches fill up to their bounds. So each full collection that finds almost nothing doubles the growth
that starts the next one, and it waits for a moment in which nobody asks.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 0.05
"""Seconds between checks. At 0.1, a visit to what 1,000 exporters a second make took 8 ms."""
_YOUNG: Final = 5_000
"""New objects, less those that were freed, that start a collection of new objects between two
checks. Each takes up to a microsecond."""
_MIDDLE: Final = 5
"""Such collections after which the next one also visits the objects that survived them."""
_NEVER: Final = 1 << 30
_KEPT: Final = 500
"""The difference at a check above which new objects are visited."""
_SHARE: Final = 10
"""A full collection takes at most this fraction (1/10) of the time."""
_GROWN: Final = 64 << 20
"""Growth of resident memory, in bytes, since the last full collection that starts the next one, at
least."""
_GROWN_BY: Final = 0.5
"""The growth as a fraction of the memory after the last one."""
_QUIET: Final = 1.0
"""Seconds without a request after which a full collection delays none, probably."""
_URGENT: Final = 2.0
"""Times that growth after which a full collection no longer waits for such a moment."""
_FRUITLESS: Final = 10_000
"""Unreachable objects below which a full collection doubles that growth. So many take a megabyte or
two."""
_START: Final = 120.0
"""Seconds after the start in which memory grows because the process reads the cluster. Later growth
counts from what it has then."""
_GROWN_START: Final = 768 << 20
"""Growth in these seconds, in bytes, that starts a full collection: 40,000 GPUs take 600 MB."""
_PAGE: Final = 4096
_STATM: Final = Path("/proc/self/statm")


def resident_memory() -> int:
    """Return the approximate resident memory in bytes; 0 if the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


class CyclicCollector:
    """Python's garbage collector."""

    def count_new(self) -> int:
        """Return how many more objects were made than freed since the last collection."""
        return gc.get_count()[0]

    def visit_new(self) -> None:
        """Collect the new objects."""
        gc.collect(0)

    def visit_all(self) -> int:
        """Collect all objects, excluded ones too. Return how many were unreachable."""
        gc.unfreeze()
        return gc.collect()

    def exclude(self) -> None:
        """Exclude all objects that exist from later collections; takes no time."""
        gc.freeze()


class Garbage:
    """Decides which objects are collected, and when."""

    def __init__(
        self,
        collector: CyclicCollector,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], int] = resident_memory,
        count_requests: Callable[[], int] = lambda: 0,
    ) -> None:
        """``count_requests`` returns the number of requests that came since the start."""
        self._collector = collector
        self._clock = clock
        self._memory = memory
        self._count_requests = count_requests
        self._requests = count_requests()
        self._heard = float("-inf")
        """When the number of requests was first seen."""
        self._last = clock()
        self._until = clock() + _START
        self._starting = True
        self._took = 0.0
        """Seconds of the last full collection."""
        self._after = memory()
        """Bytes from which growth counts."""
        self._patience = 1
        """Doubles with each full collection in a row that finds almost nothing."""

    def look(self) -> None:
        """Collect what is due, and exclude the rest."""
        now = self._clock()
        if (requests := self._count_requests()) != self._requests:
            self._requests, self._heard = requests, now
        grown = self._growth(now)
        due = grown > (1 if now - self._heard >= _QUIET else _URGENT)
        if due and now - self._last >= self._took * _SHARE:
            fruitless = self._collector.visit_all() < _FRUITLESS
            self._patience = 2 * self._patience if fruitless else 1
            self._last, self._after = self._clock(), self._memory()
            self._took = self._last - now
        elif self._collector.count_new() > _KEPT:
            self._collector.visit_new()
        self._collector.exclude()

    def _growth(self, now: float) -> float:
        """Return the growth as a fraction of the one that starts a full collection."""
        memory = self._memory()
        if self._starting and now >= self._until:
            self._starting = False
            self._after = max(self._after, memory)
        growth = max(_GROWN, self._after * _GROWN_BY) * self._patience
        return (memory - self._after) / (_GROWN_START if self._starting else growth)


def take_over(count_requests: Callable[[], int] = lambda: 0) -> Garbage:
    """Schedule collections instead of Python; objects that exist already are excluded.

    Args:
        count_requests: see :class:`Garbage`.
    """
    collector = CyclicCollector()
    collector.visit_all()
    collector.exclude()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    return Garbage(collector, count_requests=count_requests)

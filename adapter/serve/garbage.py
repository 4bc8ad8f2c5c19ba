"""Schedule Python's full garbage collections.

The more objects exist, the longer a full collection stops the process, and a page of 1,000
devices creates 40,000 objects. Python starts a full collection when the number of objects has grown
by a quarter, which is every few seconds while pages bring new devices. Reference counting frees
almost everything that the store drops. So this module limits full collections to a small share of
the time, and runs them earlier if memory grows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 1.0
"""Seconds between checks."""
_NEVER: Final = 1 << 30
_SHARE: Final = 200
"""A full collection takes at most this fraction (1/200) of the time."""
_GROWN_SHARE: Final = 10
"""The fraction (1/10) while memory grows."""
_GROWN: Final = 32 << 20
"""Growth of resident memory, in bytes, since the last full collection that starts the next one."""
_PAGE: Final = 4096
_STATM: Final = Path("/proc/self/statm")


def resident() -> int:
    """Return the approximate resident memory in bytes; 0 if the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


class Garbage:
    """Decides when full collections run. Collections of young objects are not changed."""

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], int] = resident,
    ) -> None:
        self._collect = collect
        self._clock = clock
        self._memory = memory
        self._took = 0.0
        self._last = clock()
        self._after = memory()

    def look(self) -> None:
        """Run a full collection if it is due."""
        now = self._clock()
        grown = self._memory() > self._after + _GROWN
        if now - self._last < self._took * (_GROWN_SHARE if grown else _SHARE):
            return
        self._collect()
        self._last = self._clock()
        self._took, self._after = self._last - now, self._memory()


def take_over() -> Garbage:
    """Schedule full collections instead of Python; objects that exist already are excluded."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    return Garbage()

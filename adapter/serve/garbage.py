"""When Python looks for garbage among everything that it holds.

A full collection stops the process for longer the more objects there are, and a page of 1,000
devices makes 40,000. Python starts one whenever a quarter more objects have come, which is every
few seconds while pages bring new devices. Almost all that the store drops is freed without it, so
it runs for a small share of the time only, and earlier where memory grows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 1.0
"""Between looks."""
_NEVER: Final = 1 << 30
_SHARE: Final = 200
"""A full collection takes at most this part of the time."""
_GROWN_SHARE: Final = 10
"""The same while memory grows."""
_GROWN: Final = 32 << 20
"""Bytes of resident memory, above what there was after the last full collection, that may be
garbage."""
_PAGE: Final = 4096
_STATM: Final = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of resident memory, about; 0 where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


class Garbage:
    """Chooses the moments of full collections. Young objects are collected as ever.

    Args:
        collect: runs a full collection.
        clock: monotonic seconds.
        memory: bytes in use.
    """

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
        """Run a full collection if its time has come."""
        now = self._clock()
        grown = self._memory() > self._after + _GROWN
        if now - self._last < self._took * (_GROWN_SHARE if grown else _SHARE):
            return
        self._collect()
        self._last = self._clock()
        self._took, self._after = self._last - now, self._memory()


def take_over() -> Garbage:
    """Choose the moments in place of Python. What is there already is never looked at again."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    return Garbage()

"""Schedule Python's full garbage collections.

The more objects exist, the longer a full collection stops the process: 150,000 pods take a third of
a second. Python starts one when the number of objects has grown by a quarter. Reference counting
frees almost everything that the process drops, so this module lets later collections visit only the
objects that are new since a collection that took long. The others are visited again if memory
grows, because a cycle of old objects may be the reason. Usually there is none: after 30 s of
scrapes of 125 exporters and 50 requests a second, a full collection finds nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 1.0
"""Seconds between checks."""
_YOUNG: Final = 10_000
"""New objects that start a collection of young objects, which takes half a millisecond. A page that
is taken in makes hundreds, most of which are freed before."""
_NEVER: Final = 1 << 30
_SHARE: Final = 200
"""A collection takes at most this fraction (1/200) of the time."""
_GROWN_SHARE: Final = 10
"""The fraction (1/10) while memory grows."""
_GROWN: Final = 32 << 20
"""Growth of resident memory, in bytes, since the last collection of all objects that starts the
next one, at least."""
_GROWN_BY: Final = 4
"""The growth as a fraction (1/4) of the memory after the last one."""
_START: Final = 120.0
"""Seconds after the start in which memory grows because the process reads the cluster. New objects
are then visited at every check, before too many exist, and all objects after memory doubled."""
_LONG: Final = 0.001
"""Seconds of a collection after which later ones do not visit the same objects."""
_PAGE: Final = 4096
_STATM: Final = Path("/proc/self/statm")


def resident() -> int:
    """Return the approximate resident memory in bytes; 0 if the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


class Garbage:
    """Decides when full collections run. Collections of young objects are not changed.

    Args:
        exclude: excludes all objects from later collections.
        include: includes them again.
    """

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], int] = resident,
        exclude: Callable[[], object] = gc.freeze,
        include: Callable[[], object] = gc.unfreeze,
    ) -> None:
        self._collect = collect
        self._clock = clock
        self._memory = memory
        self._exclude = exclude
        self._include = include
        self._begun = self._last = clock()
        self._took = 0.0
        self._whole = clock()
        self._whole_took = 0.0
        self._after = memory()

    def look(self) -> None:
        """Run a collection if it is due."""
        now = self._clock()
        starting = now - self._begun < _START
        growth = self._after if starting else max(_GROWN, self._after // _GROWN_BY)
        if (
            self._memory() > self._after + growth
            and now - self._whole >= self._whole_took * _GROWN_SHARE
        ):
            self._include()
            self._whole_took = self._run(now)
            self._whole, self._after = self._last, self._memory()
        elif starting or now - self._last >= self._took * _SHARE:
            self._took = self._run(now)

    def _run(self, now: float) -> float:
        self._collect()
        self._last = self._clock()
        took = self._last - now
        if took > _LONG:
            self._exclude()
        return took


def take_over() -> Garbage:
    """Schedule full collections instead of Python; objects that exist already are excluded."""
    gc.collect()
    gc.freeze()
    _, middle, _ = gc.get_threshold()
    gc.set_threshold(_YOUNG, middle, _NEVER)
    return Garbage()

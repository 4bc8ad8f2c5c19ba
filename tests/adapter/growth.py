"""How the cost of reading grows with the length of what is read."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FACTOR = 8
"""How much longer the long text is. Linear work grows by this, quadratic work by its square."""
ALLOWED = 4
"""Growth beyond linear that is put down to caches and to other programs on the machine."""
NOISE = 0.02
"""CPU seconds that the long text may take in any case."""


def grows_linearly(read: Callable[[int], object]) -> bool:
    """Whether reading ``FACTOR`` times as much costs about ``FACTOR`` times the CPU time.

    Args:
        read: reads a text of about the given count of repetitions.
    """
    count = 500
    return any(
        _cpu(read, FACTOR * count) <= max(NOISE, ALLOWED * FACTOR * _cpu(read, count))
        for _ in range(3)
    )


def _cpu(read: Callable[[int], object], count: int) -> float:
    gc.disable()  # a collection costs by the size of the heap, not of the text
    try:
        began = time.thread_time()
        read(count)
        return time.thread_time() - began
    finally:
        gc.enable()

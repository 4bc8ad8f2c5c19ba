"""Gives freed memory back to the system.

Each look replaces lists and parts of some megabytes. glibc keeps what is freed below a block that
is still in use, so the process would hold the largest gaps that any look has left.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final


def _trim() -> Callable[[int], int] | None:
    """Return ``malloc_trim``; None where the C library does not have it."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


_TRIM: Final = _trim()


def release() -> None:
    """Return pages without a block in use to the system. It takes about a millisecond."""
    if _TRIM is not None:
        _TRIM(0)

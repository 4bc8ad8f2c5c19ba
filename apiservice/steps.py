"""Long work on the event loop, in slices: others have their turn between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from time import perf_counter
from typing import Final, TypeVar

SLICE: Final = 0.002
"""Seconds that work may take before others have their turn. One step may take longer."""

T = TypeVar("T")


async def paced(
    work: Generator[None, None, T],
    seconds: float | None = None,
    clock: Callable[[], float] = perf_counter,
) -> T:
    """Run ``work`` to its end, with a pause after each slice; return its result."""
    span = SLICE if seconds is None else seconds
    until = clock() + span
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + span


def at_once(work: Generator[None, None, T]) -> T:
    """Run ``work`` to its end without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result

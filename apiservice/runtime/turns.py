"""Long work of many tasks on one event loop: one slice of it in each iteration of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TypeVar

from apiservice.runtime.steps import SLICE, WaitingSteps

T = TypeVar("T")


class Turns:
    """Shares one slice of each iteration of the event loop among tasks, in order of arrival.

    Work that ends within the slice runs without a pause, so short work costs nothing more. Without
    this, 32 tasks with a slice each would hold the loop for 32 slices.

    Args:
        seconds: the length of a slice. One step may take longer.
    """

    def __init__(self, seconds: float = SLICE, clock: Callable[[], float] = perf_counter) -> None:
        self._seconds = seconds
        self._clock = clock
        self._left = seconds
        """Of the slice of this iteration."""
        self._renewing = False
        self._lock = asyncio.Lock()

    async def run(self, work: WaitingSteps[T]) -> T:
        """Run ``work`` to its end, and return its result. If cancelled, ``work`` is closed.

        What it waits for takes no time of a slice, and other tasks run meanwhile.
        """
        awaited: Awaitable[None] | None = None
        try:
            while True:
                if awaited is not None:
                    await awaited
                async with self._lock:
                    if self._left <= 0:
                        await asyncio.sleep(0)  # until the next iteration, which renews the slice
                    try:
                        awaited = self._slice(work)
                    except StopIteration as end:
                        result: T = end.value
                        return result
        finally:
            work.close()

    def _slice(self, work: WaitingSteps[T]) -> Awaitable[None] | None:
        """Work for a slice; return what the work waits for."""
        clock = self._clock
        started = clock()
        until = started + self._left
        if not self._renewing:
            self._renewing = True
            asyncio.get_running_loop().call_soon(self._renew)
        try:
            awaited = next(work)
            while awaited is None and clock() < until:
                awaited = next(work)
            return awaited
        finally:
            self._left -= clock() - started

    def _renew(self) -> None:
        self._left, self._renewing = self._seconds, False

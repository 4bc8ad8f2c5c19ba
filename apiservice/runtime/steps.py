"""Long work on the event loop in slices, so that other tasks run between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

SLICE: Final = 0.002
"""Seconds that work may take before other tasks run. One step may take longer."""

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work that may be interrupted at each yield, and its result."""

WaitingSteps: TypeAlias = Generator[Awaitable[None] | None, None, T]
"""The same for work that may need something from a network: it yields what to wait for. Only
:func:`run_in_slices` runs it."""


class Unfinished(Exception):  # noqa: N818 - no error
    """The work needs more slices than its limit."""


async def run_in_slices(
    work: WaitingSteps[T],
    seconds: float | None = None,
    clock: Callable[[], float] = perf_counter,
    slices: int | None = None,
) -> T:
    """Run ``work`` to its end, with a pause after each slice.

    Args:
        slices: how many the work may take; None sets no limit.

    Returns:
        The result of ``work``.

    Raises:
        Unfinished: the work takes more than ``slices``. The time for which it waits for a network
            does not count.
    """
    span = SLICE if seconds is None else seconds
    until = clock() + span
    try:
        while True:
            try:
                awaited = next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            if awaited is not None:
                await awaited
                until = clock() + span
            elif clock() >= until:
                if slices is not None:
                    slices -= 1
                    if slices <= 0:
                        raise Unfinished
                await asyncio.sleep(0)
                until = clock() + span
    finally:
        work.close()  # a cancelled task keeps no partial answer


def wait_for_result(awaitable: Awaitable[T]) -> WaitingSteps[T]:
    """Wait for something in the middle of the work. Return its result, or raise its error."""
    results: list[T] = []
    failed: list[Exception] = []

    async def wait() -> None:
        try:
            results.append(await awaitable)
        except Exception as error:  # raised in the work below, which may handle it
            failed.append(error)

    yield wait()
    if failed:
        raise failed.pop()  # this frame, which the traceback keeps, does not keep the error
    return results[0]


class StepBudget:
    """Says when a step has done its share of the work, so that it is time to yield.

    Args:
        most: the work of one step, in the units of :meth:`spent`.
    """

    __slots__ = ("_done", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._done = 0

    def spent(self, work: int) -> bool:
        """Note work; returns whether the step should end now."""
        self._done += work
        if self._done < self._most:
            return False
        self._done = 0
        return True


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in parts of ``size``."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


def at_once(work: Steps[T]) -> T:
    """Run ``work`` to its end without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result

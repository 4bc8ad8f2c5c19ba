"""Deduplication of concurrent calls: callers with the same key share one call's result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs at most one call per key at a time.

    A call runs in a task of its own: the caller that started it may disconnect, and the others
    still get the result.
    """

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def ask(self, key: K, question: Callable[[], Awaitable[V]]) -> V:
        """Return the result of ``question`` or raise its error, to every caller that waits."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(_run(question))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        try:
            return await asyncio.shield(flight)
        finally:
            del flight  # the traceback of its error keeps this frame

    def _land(self, key: K, flight: asyncio.Task[V]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # marks it as retrieved: every waiting caller may be gone


async def _run(question: Callable[[], Awaitable[V]]) -> V:
    return await question()

"""One question at a time: those who ask the same thing meanwhile share its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs at most one question per key.

    A question runs in a task of its own: the one who asked first may hang up without
    taking the answer from the others.
    """

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def ask(self, key: K, question: Callable[[], Awaitable[V]]) -> V:
        """The answer to ``question``, or what it raised, for everybody who waits on it."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(_run(question))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(flight)

    def _land(self, key: K, flight: asyncio.Task[V]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # marks it as seen: everybody who waited may have hung up


async def _run(question: Callable[[], Awaitable[V]]) -> V:
    return await question()

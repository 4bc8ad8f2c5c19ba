"""A few places for work that waits, shared fairly: no namespace takes the places of another.

Places go round over the namespaces of the requests that wait, then over their users, so that a
request waits for the requests of others at most once round, however many of them there are. One
namespace neither holds nor waits for more than its part. Work for everybody (``shared``), such as
the refresh of a value that many requests read, comes first and has places of its own.

The time for a place is apart from the time of the work: a request that has a place has all of its
time.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple


class Asker(NamedTuple):
    """Whose request it is."""

    namespace: str
    """Of the requested objects; empty for those of the whole cluster."""
    user: str


NOBODY: Final = Asker("", "")
ASKER: Final[ContextVar[Asker]] = ContextVar("asker", default=NOBODY)
"""The asker of the request that the task works on. The server sets it after authorization."""

Refusal = Literal["full", "timeout"]
REFUSALS: Final[tuple[Refusal, ...]] = ("full", "timeout")


class NoPlaceError(Exception):
    """There is no place: ``reason`` is why."""

    def __init__(self, reason: Refusal, text: str) -> None:
        super().__init__(text)
        self.reason: Refusal = reason


@dataclass(slots=True)
class _Namespace:
    """The requests of one namespace: how many hold a place, and who waits, by turn."""

    running: int = 0
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """By user; the user who was served last comes last."""
    count: int = 0
    """Requests that wait."""

    def add(self, user: str, turn: asyncio.Future[None]) -> None:
        """Wait behind the user's earlier requests."""
        self.waiting.setdefault(user, deque()).append(turn)
        self.count += 1

    def take(self) -> asyncio.Future[None]:
        """Return the next turn, and move its user to the end of the round."""
        user = next(iter(self.waiting))
        turns = self.waiting.pop(user)
        turn = turns.popleft()
        if turns:
            self.waiting[user] = turns
        self.count -= 1
        return turn

    def drop(self, user: str, turn: asyncio.Future[None]) -> None:
        """Take a turn out of the queue, unless it was taken when it came."""
        turns = self.waiting.get(user)
        if turns is None or turn not in turns:
            return
        turns.remove(turn)
        if not turns:
            del self.waiting[user]
        self.count -= 1


def _drop(turns: deque[asyncio.Future[None]], turn: asyncio.Future[None]) -> None:
    if turn in turns:
        turns.remove(turn)


class Shares:
    """Hands out places.

    Args:
        places: how many there are.
        shared_only: places that only shared work may take.
        per_namespace: places that one namespace may hold; half of the rest by default.
        waiting: requests of one namespace that may wait.
        all_waiting: requests that may wait, shared work included.
        seconds: how long a request waits for its place.
    """

    def __init__(
        self,
        places: int,
        *,
        shared_only: int = 0,
        per_namespace: int | None = None,
        waiting: int = 64,
        all_waiting: int = 1024,
        seconds: float = 10.0,
    ) -> None:
        self._free = places
        self._shared_only = shared_only
        self._per_namespace = (
            max(1, (places - shared_only) // 2) if per_namespace is None else per_namespace
        )
        self._most = waiting
        self._all = all_waiting
        self._seconds = seconds
        self._namespaces: dict[str, _Namespace] = {}
        """Those with a request; the one that was served last comes last."""
        self._shared: deque[asyncio.Future[None]] = deque()
        self.waiting = 0
        """Requests that wait for a place."""
        self.refused: Counter[str] = Counter(dict.fromkeys(REFUSALS, 0))
        """Requests that got no place, by reason."""

    @asynccontextmanager
    async def place(self, asker: Asker | None = None) -> AsyncIterator[None]:
        """Hold a place for a request, by default for the one that the task works on.

        Raises:
            NoPlaceError: too many wait already, or no place became free in time.
        """
        asker = ASKER.get() if asker is None else asker
        namespace = self._namespaces.setdefault(asker.namespace, _Namespace())
        try:
            if self._may_start(namespace):
                self._start(namespace)
            else:
                await self._turn(asker, namespace)
            try:
                yield
            finally:
                namespace.running -= 1
                self._free += 1
                self._serve()
        finally:
            if not (namespace.running or namespace.count):
                self._namespaces.pop(asker.namespace, None)

    @asynccontextmanager
    async def shared_place(self) -> AsyncIterator[None]:
        """Hold a place for work that many requests need.

        Raises:
            NoPlaceError: too many wait already, or no place became free in time.
        """
        if self._free and not self._shared:
            self._free -= 1
        else:
            self._check(self.waiting, self._all)
            turn = self._future()
            self._shared.append(turn)
            await self._wait(turn, lambda: _drop(self._shared, turn), self._release)
        try:
            yield
        finally:
            self._release()

    async def _turn(self, asker: Asker, namespace: _Namespace) -> None:
        self._check(namespace.count, self._most)
        turn = self._future()
        namespace.add(asker.user, turn)

        def give_back() -> None:
            namespace.running -= 1
            self._release()

        await self._wait(turn, lambda: namespace.drop(asker.user, turn), give_back)

    def _check(self, count: int, most: int) -> None:
        if count >= most or self.waiting >= self._all:
            self.refused["full"] += 1
            of = f"{count} of the namespace" if count >= most else f"{self.waiting} of all"
            raise NoPlaceError("full", f"too many requests wait already ({of})")

    async def _wait(
        self,
        turn: asyncio.Future[None],
        drop: Callable[[], None],
        give_back: Callable[[], None],
    ) -> None:
        self.waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.cancelled():
                drop()
            else:  # the place came at the moment at which nobody wanted it any more
                give_back()
            if not isinstance(error, TimeoutError):
                raise
            self.refused["timeout"] += 1
            raise NoPlaceError("timeout", f"no place within {self._seconds:g} s") from None
        finally:
            self.waiting -= 1

    def _release(self) -> None:
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        """Give the free places to those who wait: shared work first, then one namespace a round."""
        while self._free and self._shared:
            turn = self._shared.popleft()
            if not turn.done():  # a client that leaves takes its turn back later
                self._free -= 1
                turn.set_result(None)
        while (served := self._next()) is not None:
            name, namespace = served
            del self._namespaces[name]
            self._namespaces[name] = namespace
            turn = namespace.take()
            if not turn.done():
                self._start(namespace)
                turn.set_result(None)

    def _next(self) -> tuple[str, _Namespace] | None:
        if self._free <= self._shared_only:
            return None
        rows = self._namespaces.items()
        return next(
            (row for row in rows if row[1].count and row[1].running < self._per_namespace), None
        )

    def _may_start(self, namespace: _Namespace) -> bool:
        return (
            self._free > self._shared_only
            and not self._shared
            and not namespace.count
            and namespace.running < self._per_namespace
        )

    def _start(self, namespace: _Namespace) -> None:
        namespace.running += 1
        self._free -= 1

    @staticmethod
    def _future() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

"""A queue of calls that uses only a share of the event loop, so that many calls do not block it.

The loop also serves the HPA's API. Calls that arrive together are answered one after another, in
steps. When they have used their share of a turn of the loop, the rest waits for the next turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Any, Final, TypeVar

from apiservice.runtime.steps import Steps

T = TypeVar("T")

_SHARE: Final = 0.005
"""Seconds of one turn of the loop."""


class Desk:
    """Answers the calls of one event loop.

    Args:
        share: seconds of a turn of the loop after which the next step waits.
    """

    def __init__(self, share: float = _SHARE) -> None:
        self._share = share
        self._waiting: deque[tuple[Steps[Any], asyncio.Future[Any]]] = deque()

    async def answer(self, work: Steps[T]) -> T:
        """Return the result of ``work``, or raise its error, when its turn comes."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._work)
        self._waiting.append((work, future))
        return await future

    def _work(self) -> None:
        end = perf_counter() + self._share
        while self._waiting:
            work, future = self._waiting[0]
            if future.done():  # its call was cancelled
                work.close()
                self._waiting.popleft()
                continue
            try:
                next(work)
            except StopIteration as ended:
                future.set_result(ended.value)
                self._waiting.popleft()
            except Exception as error:
                future.set_exception(error)
                self._waiting.popleft()
            if perf_counter() >= end:
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)

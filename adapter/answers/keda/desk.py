"""A queue of calls that uses only a share of the event loop, so that many calls do not block it.

The loop also serves the HPA's API. Calls that arrive together are answered in steps: one step of
each namespace in turn, and the calls of one namespace one after another. So a namespace with many
calls, or long ones, delays those of the others by one round. When the calls have used their share
of a turn of the loop, the rest waits for the next turn.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from time import perf_counter
from typing import Any, Final, TypeVar

from apiservice.runtime.steps import Steps

T = TypeVar("T")

_SHARE: Final = 0.005
"""Seconds of one turn of the loop."""


_Call = tuple[Steps[Any], "asyncio.Future[Any]"]


class Desk:
    """Answers the calls of one event loop.

    Args:
        share: seconds of a turn of the loop after which the next step waits.
    """

    def __init__(self, share: float = _SHARE) -> None:
        self._share = share
        self._waiting: OrderedDict[str, deque[_Call]] = OrderedDict()
        """By namespace; the one that had the last step comes last."""

    async def answer(self, work: Steps[T], namespace: str = "") -> T:
        """Return the result of ``work``, or raise its error, when its turn comes.

        Args:
            namespace: whose call it is.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._work)
        self._waiting.setdefault(namespace, deque()).append((work, future))
        return await future

    def _work(self) -> None:
        end = perf_counter() + self._share
        while self._waiting:
            namespace, calls = next(iter(self._waiting.items()))
            if _take_step(*calls[0]):
                calls.popleft()
            if calls:
                self._waiting.move_to_end(namespace)
            else:
                del self._waiting[namespace]
            if perf_counter() >= end:
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)


def _take_step(work: Steps[Any], future: asyncio.Future[Any]) -> bool:
    """Take a step of a call; return whether it was the last."""
    if future.done():  # its call was cancelled
        work.close()
        return True
    try:
        next(work)
    except StopIteration as ended:
        future.set_result(ended.value)
    except Exception as error:
        future.set_exception(error)
    else:
        return False
    return True

"""Answers that take long to prepare or to send: a few at a time, each in slices.

Preparing one takes memory for its parts and its body, and a slow reader keeps the body. So their
number is bounded. A request that waits for its turn holds neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog
from starlette.types import Receive, Send

from apiservice.errors import ClientGone
from apiservice.wire.answers import Prepared

log = structlog.get_logger(__name__)

T = TypeVar("T")

AT_ONCE: Final = 4
"""Large answers that are prepared or sent at the same time."""
_PIECE: Final = 1 << 18
"""Bytes that are written before other tasks run."""
_SECONDS: Final = 60.0
"""Seconds in which a client must read a large answer."""


class LargeAnswers:
    """Limits the large answers of one event loop.

    Args:
        at_once: large answers that are prepared or sent at the same time.
        seconds: time in which a client must read one answer.
    """

    def __init__(self, at_once: int = AT_ONCE, seconds: float = _SECONDS) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._seconds = seconds

    async def answer(
        self, path: str, prepare: Callable[[], Awaitable[Prepared]], receive: Receive, send: Send
    ) -> None:
        """Answer a request when its turn comes.

        Args:
            path: of the request.
            prepare: makes the answer.
            receive: says that the client disconnects.
            send: takes the answer.

        Raises:
            ApiError: raised by ``prepare``; ClientGone if the client did not wait.
        """
        await while_there(receive, self._answer(path, prepare, send))

    async def _answer(
        self, path: str, prepare: Callable[[], Awaitable[Prepared]], send: Send
    ) -> None:
        async with self._places:
            prepared = await prepare()
            try:
                async with asyncio.timeout(self._seconds):
                    await _send(prepared, send)
            except TimeoutError:
                # Returning ends the connection, because the answer is not complete.
                log.warning("client reads too slowly", path=path)


async def _send(prepared: Prepared, send: Send) -> None:
    await send(prepared.start)
    body = memoryview(prepared.body["body"])
    last = len(body) - _PIECE
    for first in range(0, last, _PIECE):
        piece = body[first : first + _PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    rest = body[len(range(0, last, _PIECE)) * _PIECE :]
    await send({"type": "http.response.body", "body": bytes(rest)})


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` until it ends or the client disconnects.

    Raises:
        ClientGone: the client disconnected.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
        del working, leaving  # the traceback of their errors keeps this frame


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

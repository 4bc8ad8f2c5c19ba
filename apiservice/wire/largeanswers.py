"""Answers that take long to prepare or to send.

A few are prepared at a time, in slices; the places go round over the namespaces that ask
(:mod:`apiservice.runtime.shares`). A place is held only while an answer is prepared. Sending takes
memory for the body, so the bodies that are being sent are bounded in bytes: if there is no room,
the namespace with the most bytes loses its oldest answer, and a client that reads too slowly loses
its connection. So nobody's reading delays the answers of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from starlette.types import Receive, Send

from apiservice.errors import ClientGone, Unavailable
from apiservice.runtime.shares import ASKER, NoPlaceError, Shares
from apiservice.wire.answers import Prepared

log = structlog.get_logger(__name__)

T = TypeVar("T")

AT_ONCE: Final = 4
"""Large answers that are prepared at the same time."""
WAIT: Final = 30.0
"""Seconds that a request waits until its answer is prepared; kube-apiserver gives up after 60."""
SENT_BYTES: Final = 64 << 20
"""Bytes of all large answers that are being sent; a namespace may have half of them."""
SLOWEST: Final = 256 << 10
"""Bytes a second that a client must read, after the first seconds."""
PATIENCE: Final = 5.0
"""Seconds that a client may read nothing."""
_PIECE: Final = 1 << 18
"""Bytes that are written before other tasks run."""


@dataclass(eq=False, slots=True)
class _Sending:
    """An answer on its way."""

    namespace: str
    bytes: int
    deadline: asyncio.Timeout
    ended: bool = False
    """Whether it gave way to another answer. It does not count any more."""

    def end(self) -> None:
        """Give way. The sender may run once more before its time-out does."""
        self.ended = True
        self.deadline.reschedule(0)

    def extend(self, until: float) -> None:
        """Move the deadline, unless the answer has ended."""
        if not self.ended and not self.deadline.expired():
            self.deadline.reschedule(until)


class LargeAnswers:
    """Limits the large answers of one event loop.

    Args:
        places: those in which answers are prepared.
        most: bytes of the answers that are being sent.
        patience: seconds that a client may read nothing.
        slowest: bytes a second that a client must read.
    """

    def __init__(
        self,
        places: Shares | None = None,
        most: int = SENT_BYTES,
        patience: float = PATIENCE,
        slowest: int = SLOWEST,
    ) -> None:
        self.places = Shares(AT_ONCE, seconds=WAIT) if places is None else places
        self._most = most
        self._patience = patience
        self._slowest = slowest
        self._sending: dict[_Sending, None] = {}
        """The oldest first."""
        self.given_up = 0
        """Answers whose client read too slowly, or that gave way to another one."""

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
            ApiError: raised by ``prepare``; Unavailable if too many requests of the namespace
                wait; ClientGone if the client did not wait.
        """
        await run_while_connected(receive, self._answer(path, prepare, send))

    async def _answer(
        self, path: str, prepare: Callable[[], Awaitable[Prepared]], send: Send
    ) -> None:
        try:
            async with self.places.place():
                prepared = await prepare()
        except NoPlaceError as error:
            raise Unavailable(f"too many large answers are prepared: {error}") from None
        try:
            async with asyncio.timeout(None) as deadline:
                body = memoryview(prepared.body["body"])
                sending = _Sending(ASKER.get().namespace, len(body), deadline)
                self._sending[sending] = None
                try:
                    self._make_room(sending)
                    await self._send(prepared, body, sending, send)
                finally:
                    self._sending.pop(sending, None)
        except TimeoutError:
            # Returning ends the connection, because the answer is not complete.
            self.given_up += 1
            why = "others needed the room" if sending.ended else "the client reads too slowly"
            log.warning("large answer given up", path=path, reason=why)

    def _make_room(self, new: _Sending) -> None:
        """End the oldest answers of the namespace with the most bytes, until all fit."""
        sizes: dict[str, int] = {}
        for sending in self._sending:
            sizes[sending.namespace] = sizes.get(sending.namespace, 0) + sending.bytes
        while (over := sizes[new.namespace] > self._most // 2) or sum(sizes.values()) > self._most:
            largest = new.namespace if over else max(sizes, key=sizes.__getitem__)
            rows = (row for row in self._sending if row.namespace == largest and row is not new)
            oldest = next(rows, None)
            if oldest is None:
                return  # one answer may be as large as it is
            sizes[largest] -= oldest.bytes
            del self._sending[oldest]
            oldest.end()

    async def _send(
        self, prepared: Prepared, body: memoryview, sending: _Sending, send: Send
    ) -> None:
        latest = asyncio.get_running_loop().time() + self._patience
        sending.extend(latest)
        await send(prepared.start)
        last = len(body) - _PIECE
        for first in range(0, last, _PIECE):
            latest += _PIECE / self._slowest
            sending.extend(latest)
            piece = body[first : first + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        rest = body[len(range(0, last, _PIECE)) * _PIECE :]
        await send({"type": "http.response.body", "body": bytes(rest)})


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` until it ends or the client disconnects.

    Raises:
        ClientGone: the client disconnected.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
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


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

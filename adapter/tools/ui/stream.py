"""Server-sent events: one response that carries the parts of the page's state as they change."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from adapter.tools.ui.parts import PageParts

MOST_STREAMS: Final = 16
"""Streams at once: tabs of the page."""
_ALIVE: Final = 15.0
"""Seconds between two comments on a stream without events."""
_RETRY: Final = b"retry: 2000\n\n"


class Streams:
    """The open streams."""

    def __init__(self, parts: PageParts, *, alive: float = _ALIVE) -> None:
        self.parts = parts
        self.open = 0
        self.alive = alive

    @property
    def full(self) -> bool:
        """Whether another stream is rejected."""
        return self.open >= MOST_STREAMS


class EventStream(Response):
    """Sends the newest version of each part that its client does not have.

    A part is chosen when the client has taken the one before it. So a slow client skips versions,
    and nothing is kept for it.
    """

    media_type = "text/event-stream"

    def __init__(self, streams: Streams, last_event_id: str) -> None:
        super().__init__()
        self._streams = streams
        self._seen = streams.parts.seen_revision(last_event_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client leaves, or the process stops."""
        self._streams.open += 1
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._streams.open -= 1
            for task in (sending, leaving):
                task.cancel()
            ended, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(ended, Exception) and not isinstance(ended, OSError):
            raise ended  # a client that leaves ends with an OSError

    async def _send(self, send: Send) -> None:
        parts = self._streams.parts
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._chunk(send, _RETRY)
        while not parts.closed:
            part = parts.after(self._seen)
            if part is not None:
                await self._chunk(send, parts.event(part))
                self._seen = part.revision
                continue
            try:
                async with asyncio.timeout(self._streams.alive):
                    await parts.wait_for_change()
            except TimeoutError:
                await self._chunk(send, b": alive\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunk(self, send: Send, body: bytes) -> None:
        """Send, and wait until the client has taken what was sent before.

        The listener ends the connection of a client that reads nothing for a minute.
        """
        message: Message = {"type": "http.response.body", "body": body, "more_body": True}
        await send(message)
        # The server waits for the client at the next message only.
        await send({**message, "body": b""})
        # A send that does not wait lets nothing else run: not even the end of the connection,
        # after which asyncio warns about each further write.
        await asyncio.sleep(0)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

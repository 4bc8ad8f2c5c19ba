"""Wakes open streams, to check their value again or to end.

It does not wake all at once: a thousand checks in a row would make other tasks wait.
"""

from __future__ import annotations

import asyncio
from typing import Final

PARTS: Final = 10
"""Beats between two checks of a stream."""


class Pulse:
    """Beats until it is closed. Belongs to one event loop."""

    def __init__(self) -> None:
        self._beats = [asyncio.Event() for _ in range(PARTS)]
        self._at = 0
        self._closed = False

    def beat(self) -> None:
        """Wake the streams that have waited since :data:`PARTS` beats ago."""
        self._at = (self._at + 1) % PARTS
        self._wake(self._at)

    def close(self) -> None:
        """Wake all streams for the last time."""
        self._closed = True
        for part in range(PARTS):
            self._wake(part)

    async def next(self, deadline: float) -> bool:
        """Wait for :data:`PARTS` beats. False once it is closed or the deadline has passed."""
        if not self._closed:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._beats[self._at].wait()
            except TimeoutError:
                return False
        return not self._closed

    async def end(self, deadline: float) -> None:
        """Wait until it is closed or the deadline, in the loop's clock, has passed."""
        while await self.next(deadline):
            pass

    def _wake(self, part: int) -> None:
        woken, self._beats[part] = self._beats[part], asyncio.Event()
        woken.set()

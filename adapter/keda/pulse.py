"""Wakes every open stream at once: for a look, or for the end."""

from __future__ import annotations

import asyncio


class Pulse:
    """Beats until it is closed. Belongs to one event loop."""

    def __init__(self) -> None:
        self._beat = asyncio.Event()
        self._closed = False

    def beat(self) -> None:
        """Wake whoever waits."""
        woken, self._beat = self._beat, asyncio.Event()
        woken.set()

    def close(self) -> None:
        """Wake them for the last time."""
        self._closed = True
        self.beat()

    async def next(self, deadline: float) -> bool:
        """Wait for the next beat; False once it is closed or the loop's clock is past."""
        if not self._closed:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._beat.wait()
            except TimeoutError:
                return False
        return not self._closed

    async def end(self, deadline: float) -> None:
        """Wait until it is closed or the loop's clock is past."""
        while await self.next(deadline):
            pass

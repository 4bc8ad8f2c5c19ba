"""Delay of the event loop: how long a callback that blocks it makes other tasks wait."""

from __future__ import annotations

import asyncio
from typing import Final

from apiservice.selfmetrics.durations import Durations

_EVERY: Final = 0.1
"""Seconds between measurements."""
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds."""


class LoopLag:
    """Sleeps repeatedly and counts how much later than requested the loop woke it.

    A request that arrives at a random time waits as long as such a sleeper.
    """

    def __init__(self, every: float = _EVERY) -> None:
        self._every = every
        self.seconds = Durations(BOUNDS)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._every
            await asyncio.sleep(self._every)
            self.seconds.observe(max(0.0, loop.time() - due))

"""How late the event loop is: what one callback that takes long does to everybody else."""

from __future__ import annotations

import asyncio
from typing import Final

from apiservice.selfmetrics.durations import Durations

_EVERY: Final = 0.1
"""Seconds between looks."""
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds."""


class LoopLag:
    """Sleeps again and again, and counts how much later than asked the loop woke it.

    A request that arrives at a random moment waits as long as such a sleeper.
    """

    def __init__(self, every: float = _EVERY) -> None:
        self._every = every
        self.seconds = Durations(BOUNDS)

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._every
            await asyncio.sleep(self._every)
            self.seconds.observe(max(0.0, loop.time() - due))

"""Background tasks that are restarted when they fail.

A task that fails with an unexpected exception is logged, counted and restarted after a pause. It
never ends the process: the last good state stays in use, and readiness reports a failing task that
answers depend on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

log = structlog.get_logger(__name__)

Loop = Callable[[], Awaitable[None]]
"""A coroutine function that runs until it is cancelled."""
Kept = Callable[[], Coroutine[Any, Any, None]]
"""A :data:`Loop` that no failure ends."""

_STEADY = 60.0
"""Seconds without a failure after which a task counts as recovered."""
_PATIENCE = 30.0
"""Seconds of repeated failures after which readiness reports a task."""


@dataclass(slots=True)
class _Trouble:
    since: float
    last: float
    error: str
    in_a_row: int = 1


class Background:
    """Runs the background tasks of one process.

    Args:
        pause: seconds before the first restart; doubled with each failure in a row.
        longest: the longest such pause.
    """

    def __init__(
        self,
        *,
        pause: float = 1.0,
        longest: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause = pause
        self._longest = longest
        self._clock = clock
        self._essential: set[str] = set()
        self._troubles: dict[str, _Trouble] = {}
        self.failures: Counter[str] = Counter()
        """Failures since the start, by task."""

    def keep(self, name: str, loop: Loop, *, essential: bool = False) -> Kept:
        """Return ``loop`` as a loop that starts again whenever it fails.

        Args:
            essential: answers depend on it, so readiness reports it.
        """
        self.failures.setdefault(name, 0)
        if essential:
            self._essential.add(name)

        async def run_again() -> None:
            while True:
                try:
                    await loop()
                except Exception as error:
                    pause = self._note_failure(name, error)
                else:
                    return
                await asyncio.sleep(pause)

        return run_again

    def every(self, name: str, seconds: float, act: Callable[[], None]) -> Kept:
        """Return a loop that calls ``act`` every so many seconds; a failure costs one call."""
        self.failures.setdefault(name, 0)

        async def run_repeatedly() -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    act()
                except Exception as error:
                    self._note_failure(name, error)
                else:
                    self._troubles.pop(name, None)

        return run_repeatedly

    def problem(self) -> str | None:
        """The essential task that keeps failing, and why; None if there is none."""
        now = self._clock()
        for name, trouble in self._troubles.items():
            lasting = trouble.in_a_row > 1 and now - trouble.since >= _PATIENCE
            if name in self._essential and lasting and not self._steady(trouble, now):
                return f"{name} keeps failing: {trouble.error}"
        return None

    def _steady(self, trouble: _Trouble, now: float) -> bool:
        return now - trouble.last >= max(_STEADY, 2 * self._wait(trouble))

    def _wait(self, trouble: _Trouble) -> float:
        return min(self._longest, self._pause * 2.0 ** min(trouble.in_a_row - 1, 16))

    def _note_failure(self, name: str, error: Exception) -> float:
        """Log and count a failure. Return the seconds to pause."""
        now, text = self._clock(), _describe(error)
        trouble = self._troubles.get(name)
        self.failures[name] += 1
        if trouble is None or self._steady(trouble, now):
            trouble = self._troubles[name] = _Trouble(now, now, "")
        else:
            trouble.in_a_row += 1
            trouble.last = now
        if text != trouble.error:
            # The traceback is logged once: the same failure may repeat every few seconds.
            log.error(
                "background task failed and will run again",
                task=name,
                error=text,
                hint="this is a bug: report it with this line; the last good state stays in use",
                exc_info=error,
            )
        trouble.error = text
        return self._wait(trouble)


def _describe(error: Exception) -> str:
    if isinstance(error, ExceptionGroup) and error.exceptions:
        return _describe(error.exceptions[0])
    return f"{type(error).__name__}: {error}"

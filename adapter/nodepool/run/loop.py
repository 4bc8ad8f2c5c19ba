"""The controller's rounds: one per interval, and more when pods change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from adapter.nodepool.run.changes import ChangeSignal
from apiservice.kube.client import ClusterAnswerError

_ROUND: Final = 120.0
"""Seconds after which a round is cancelled."""
_LISTING: Final = 10.0
"""Seconds for which the first round waits for the first lists, which it needs."""


class Rounds(Protocol):
    """Runs the rounds."""

    async def round(self, now: float, *, again: bool = False) -> object:
        """Plan once; ``again`` from the metrics that were read before."""

    def freeze(self, problem: str) -> None:
        """Record that a round could not plan."""

    def record_failure(self, error: Exception) -> None:
        """Record that a round failed with an unexpected error."""

    def record_end(self, took: float) -> None:
        """Record the end of a round."""


async def at_once() -> None:
    """Return immediately."""


async def run(
    rounds: Rounds,
    changes: ChangeSignal,
    listed: Callable[[], Awaitable[object]],
    interval: float,
    clock: Callable[[], float],
) -> None:
    """Run a full round every ``interval`` seconds, and others when pods change, until cancelled.

    Args:
        listed: returns when all collections have been listed once.
    """
    try:
        async with asyncio.timeout(_LISTING):
            await listed()
    except (TimeoutError, ClusterAnswerError, msgspec.DecodeError):
        # The first round reports what is missing.
        pass
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        began = loop.time()
        full = began >= due
        changes.clear()
        try:
            async with asyncio.timeout(_ROUND):
                await rounds.round(clock(), again=not full)
        except TimeoutError:
            rounds.freeze(f"the last round took more than {_ROUND:.0f} s and was cancelled")
        except (ClusterAnswerError, msgspec.DecodeError) as error:
            rounds.freeze(str(error))
        except Exception as error:
            rounds.record_failure(error)
        took = loop.time() - began
        rounds.record_end(took)
        if full:
            due = max(began + interval, loop.time())
        await changes.until(due, took)

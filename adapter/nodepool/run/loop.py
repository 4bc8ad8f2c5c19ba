"""The controller's rounds, one after the other: in time, and at once when pods change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from adapter.nodepool.run.changes import ChangeSignal
from apiservice.kube.client import ClusterAnswerError

_ROUND: Final = 120.0
"""Seconds after which a round is given up."""
_LISTING: Final = 10.0
"""Seconds that the first round waits for the first lists: without them it would be lost."""


class Rounds(Protocol):
    """What runs the rounds."""

    async def round(self, now: float, *, again: bool = False) -> object:
        """Plan once; ``again`` from the metrics that were read before."""

    def freeze(self, problem: str) -> None:
        """A round came to nothing."""

    def broke(self, error: Exception) -> None:
        """A round failed with an unexpected error."""

    def ended(self, took: float) -> None:
        """A round has ended."""


async def at_once() -> None:
    """Nothing is waited for."""


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
        # The first round says what is missing.
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
            rounds.freeze(f"the last round took more than {_ROUND:.0f} s and was given up")
        except (ClusterAnswerError, msgspec.DecodeError) as error:
            rounds.freeze(str(error))
        except Exception as error:
            rounds.broke(error)
        took = loop.time() - began
        rounds.ended(took)
        if full:
            due = max(began + interval, loop.time())
        await changes.until(due, took)

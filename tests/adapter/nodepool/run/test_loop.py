"""The controller's rounds: what ends the wait for lists, and a round that hangs."""

from __future__ import annotations

import asyncio

import pytest

from adapter.nodepool.run import loop
from adapter.nodepool.run.changes import ChangeSignal
from adapter.nodepool.run.loop import at_once


class Rounds:
    """Rounds of which the first may hang."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs
        self.problems: list[str] = []
        self.done = asyncio.Event()

    async def round(self, now: float, *, again: bool = False) -> None:
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()
        self.done.set()

    def freeze(self, problem: str) -> None:
        self.problems.append(problem)

    def record_failure(self, error: Exception) -> None:
        raise AssertionError from error

    def record_end(self, took: float) -> None:
        return


async def test_a_round_that_takes_too_long_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_ROUND", 0.05)
    rounds = Rounds(hangs=True)
    running = asyncio.create_task(loop.run(rounds, ChangeSignal(), at_once, 0.01, lambda: 0.0))
    try:
        async with asyncio.timeout(30):
            await rounds.done.wait()
    finally:
        running.cancel()
    assert rounds.problems[0].startswith("the last round took more than")


async def test_the_first_round_does_not_wait_for_lists_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "_LISTING", 0.05)
    rounds, never = Rounds(), asyncio.Event()
    running = asyncio.create_task(loop.run(rounds, ChangeSignal(), never.wait, 60, lambda: 0.0))
    try:
        async with asyncio.timeout(30):
            await rounds.done.wait()
    finally:
        running.cancel()
    assert not never.is_set()

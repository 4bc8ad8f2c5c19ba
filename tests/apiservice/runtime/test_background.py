"""Background tasks that fail in ways nobody expected."""

from __future__ import annotations

import asyncio

import pytest

from apiservice.runtime.background import Background


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def _until_cancelled(loop: asyncio.Task[None]) -> None:
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_a_task_that_fails_is_counted_and_runs_again() -> None:
    background = Background(pause=0)
    runs = 0
    steady = asyncio.Event()

    async def loop() -> None:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise ZeroDivisionError("three times")
        steady.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(background.keep("watch", loop)())
    async with asyncio.timeout(60):
        await steady.wait()
    assert background.failures == {"watch": 3}
    await _until_cancelled(task)


async def test_a_periodic_call_that_fails_is_counted_and_made_again() -> None:
    background = Background()
    calls = 0
    enough = asyncio.Event()

    def act() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            enough.set()
        raise ValueError("always")

    task = asyncio.create_task(background.every("files", 0, act)())
    async with asyncio.timeout(60):
        await enough.wait()
    assert background.failures["files"] == 3
    await _until_cancelled(task)


async def test_cancelling_ends_a_task() -> None:
    background = Background()

    async def loop() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(background.keep("watch", loop)())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert background.failures == {"watch": 0}


@pytest.mark.parametrize("essential", [True, False])
async def test_readiness_reports_an_essential_task_that_keeps_failing(essential: bool) -> None:
    clock = Clock()
    background = Background(pause=0, clock=clock)
    again = asyncio.Event()

    failed = asyncio.Event()

    async def loop() -> None:
        failed.set()
        await again.wait()
        again.clear()
        raise KeyError("node")

    task = asyncio.create_task(background.keep("source", loop, essential=essential)())

    async def fail_once() -> None:
        await failed.wait()
        failed.clear()
        again.set()
        async with asyncio.timeout(60):
            await failed.wait()  # it runs again

    await fail_once()
    assert background.problem() is None, "one failure is not a state"
    clock.now += 31
    await fail_once()
    expected = "source keeps failing: KeyError: 'node'" if essential else None
    assert background.problem() == expected
    clock.now += 121
    assert background.problem() is None, "it has run for long enough since"
    await _until_cancelled(task)

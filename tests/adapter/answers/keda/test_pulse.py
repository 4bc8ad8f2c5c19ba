"""When open streams look again."""

from __future__ import annotations

import asyncio

from adapter.answers.keda.pulse import PARTS, Pulse

NEVER = float("inf")


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_stream_looks_again_after_all_parts() -> None:
    pulse = Pulse()
    waiting = asyncio.create_task(pulse.next(NEVER))
    await settle()
    for _ in range(PARTS - 1):
        pulse.beat()
    await settle()
    assert not waiting.done()
    pulse.beat()
    assert await waiting is True


async def test_streams_that_began_at_different_times_look_at_different_times() -> None:
    pulse = Pulse()
    waiting = []
    for _ in range(PARTS):
        waiting.append(asyncio.create_task(pulse.next(NEVER)))
        await settle()
        pulse.beat()
    for done in range(1, PARTS):
        await settle()
        assert [task.done() for task in waiting] == [number < done for number in range(PARTS)]
        pulse.beat()
    assert await waiting[-1] is True


async def test_the_end_wakes_everybody_at_once() -> None:
    pulse = Pulse()
    waiting = []
    for _ in range(3):
        waiting.append(asyncio.create_task(pulse.next(NEVER)))
        await settle()
        pulse.beat()
    pulse.close()
    assert await asyncio.gather(*waiting) == [False] * 3
    assert await pulse.next(NEVER) is False


async def test_a_deadline_ends_the_wait() -> None:
    assert await Pulse().next(0.0) is False

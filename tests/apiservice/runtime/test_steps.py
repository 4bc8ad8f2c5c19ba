"""Long work shares the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from apiservice.documents.pages import exposition
from apiservice.runtime.steps import (
    Unfinished,
    WaitingSteps,
    at_once,
    run_in_slices,
    wait_for_result,
)


class Clock:
    """Each look costs a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def work(steps: int, done: list[int]) -> Generator[None, None, str]:
    for number in range(steps):
        done.append(number)
        yield
    return "whole"


async def test_others_have_their_turn_after_each_slice() -> None:
    done: list[int] = []
    seen: list[int] = []

    async def other() -> None:
        while len(done) < 100:
            seen.append(len(done))
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    assert await run_in_slices(work(100, done), seconds=0.0095, clock=Clock()) == "whole"
    await beside

    assert len(done) == 100
    assert max(after - before for before, after in pairwise(seen)) <= 10


def test_at_once_gives_the_same_result() -> None:
    done: list[int] = []
    assert at_once(work(3, done)) == "whole"
    assert done == [0, 1, 2]


async def test_what_fails_in_a_step_is_raised() -> None:
    def broken() -> Generator[None, None, None]:
        yield
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_in_slices(broken())


def test_metrics_rendered_in_steps_are_those_rendered_at_once() -> None:
    registry = CollectorRegistry()
    Counter("asked_total", "Questions.", ["kind"], registry=registry).labels('a"\\\n').inc()
    Histogram("took_seconds", "Time.", registry=registry).observe(0.2)

    def settled(text: bytes) -> bytes:
        return b"\n".join(line for line in text.splitlines() if b"_created" not in line)

    assert settled(at_once(exposition(registry))) == settled(generate_latest(registry))


def waits(for_: asyncio.Future[str], done: list[str]) -> WaitingSteps[str]:
    yield None
    try:
        done.append((yield from wait_for_result(for_)))
    except ValueError as error:
        done.append(f"failed: {error}")
    yield None
    return "whole"


async def test_work_can_wait_for_something_while_others_run() -> None:
    done: list[str] = []
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run_in_slices(waits(answer, done), slices=2, clock=Clock()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not done
    answer.set_result("there")
    assert await task == "whole"  # the wait is not counted as slices
    assert done == ["there"]


async def test_what_fails_while_work_waits_is_raised_in_the_work() -> None:
    done: list[str] = []
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    answer.set_exception(ValueError("gone"))
    assert await run_in_slices(waits(answer, done)) == "whole"
    assert done == ["failed: gone"]


async def test_slices_are_still_counted_between_waits() -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    answer.set_result("there")

    def long() -> WaitingSteps[None]:
        yield from wait_for_result(answer)
        for _ in range(100):
            yield None

    with pytest.raises(Unfinished):
        await run_in_slices(long(), seconds=0.002, clock=Clock(), slices=3)

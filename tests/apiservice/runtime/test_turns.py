"""Tasks that share one slice of each iteration of the event loop."""

from __future__ import annotations

import asyncio
import inspect
from itertools import pairwise

import pytest

from apiservice.runtime.steps import Steps, WaitingSteps, wait_for_result
from apiservice.runtime.turns import Turns


class Clock:
    """Advances only where work does."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def work(clock: Clock, steps: int, done: list[float], name: float = 0) -> Steps[str]:
    """Each step takes a millisecond."""
    for _ in range(steps):
        clock.now += 0.001
        done.append(name)
        yield
    return "whole"


async def test_all_tasks_together_take_one_slice_of_each_iteration() -> None:
    clock, done, seen = Clock(), list[float](), list[int]()
    turns = Turns(seconds=0.002, clock=clock)

    async def other() -> None:
        while len(done) < 60:
            seen.append(len(done))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name in range(6):
            group.create_task(turns.run(work(clock, 10, done, name)))
        group.create_task(other())

    assert len(done) == 60
    steps = [after - before for before, after in pairwise(seen)]
    assert max(steps) <= 3  # a slice ends with the step that goes beyond it


async def test_tasks_go_on_by_turns() -> None:
    clock, done = Clock(), list[float]()
    turns = Turns(seconds=0.001, clock=clock)
    await asyncio.gather(*(turns.run(work(clock, 10, done, name)) for name in range(3)))
    assert max(done[:12].count(name) for name in range(3)) <= 5
    assert {name: done.count(name) for name in done} == {0: 10, 1: 10, 2: 10}


async def test_short_work_has_no_pause() -> None:
    clock, done = Clock(), list[float]()
    running = Turns(seconds=0.01, clock=clock).run(work(clock, 3, done))
    with pytest.raises(StopIteration) as end:
        running.send(None)
    assert end.value.value == "whole"


async def test_cancelled_work_is_closed_and_the_others_go_on() -> None:
    clock, done = Clock(), list[float]()
    turns = Turns(seconds=0.001, clock=clock)
    gone = work(clock, 1000, done, 1)
    first = asyncio.create_task(turns.run(gone))
    second = asyncio.create_task(turns.run(work(clock, 20, done, 2)))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "whole"
    with pytest.raises(asyncio.CancelledError):
        await first
    assert done.count(2) == 20
    assert inspect.isgenerator(gone)
    assert inspect.getgeneratorstate(gone) == inspect.GEN_CLOSED


async def test_what_fails_in_a_step_is_raised_and_the_others_go_on() -> None:
    clock, done = Clock(), list[float]()
    turns = Turns(seconds=0.001, clock=clock)

    def broken() -> Steps[str]:
        yield
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await turns.run(broken())
    assert await turns.run(work(clock, 5, done)) == "whole"


async def test_others_work_while_a_task_waits() -> None:
    clock, done = Clock(), list[float]()
    turns = Turns(seconds=0.001, clock=clock)
    arrived = asyncio.Event()

    async def arrive() -> str:
        await arrived.wait()
        return "answer"

    def waits() -> WaitingSteps[str]:
        yield None
        return (yield from wait_for_result(arrive()))

    first = asyncio.create_task(turns.run(waits()))
    assert await turns.run(work(clock, 20, done, 2)) == "whole"
    assert not first.done()
    arrived.set()
    assert await first == "answer"

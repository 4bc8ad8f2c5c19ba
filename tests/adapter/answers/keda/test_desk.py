"""Calls that arrive together leave the event loop to others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import pytest

from adapter.answers.keda.desk import Desk
from apiservice.runtime.steps import Steps

T = TypeVar("T")


def busy(seconds: float) -> float:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass
    return end


def work(one_step: Callable[[], T]) -> Steps[T]:
    yield from ()
    return one_step()


async def test_an_answer_is_returned_and_an_error_is_raised() -> None:
    desk = Desk()
    assert await desk.answer(work(lambda: 5)) == 5
    with pytest.raises(ZeroDivisionError):
        await desk.answer(work(lambda: 1 / 0))


async def test_others_have_a_turn_between_calls_that_take_their_share() -> None:
    desk, order = Desk(share=0.001), []

    async def call(name: int) -> None:
        await desk.answer(work(lambda: busy(0.002)))
        order.append(name)

    async def other() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            order.append(-1)

    await asyncio.gather(*(call(number) for number in range(10)), other())
    assert [name for name in order if name >= 0] == list(range(10)), "in the order of their arrival"
    assert order.index(9) > len(order) - 4, order
    assert max(place for place, name in enumerate(order) if name == -1) < order.index(9)


async def test_a_call_that_was_cancelled_is_not_answered() -> None:
    desk, answered = Desk(), []
    call = asyncio.create_task(desk.answer(work(lambda: answered.append(1))))
    after = asyncio.create_task(desk.answer(work(lambda: answered.append(2))))
    await asyncio.sleep(0)
    call.cancel()
    await after
    assert answered == [2]


async def test_others_have_a_turn_between_the_steps_of_one_long_call() -> None:
    desk, turns = Desk(share=0.001), 0

    def long() -> Steps[int]:
        for _ in range(20):
            busy(0.001)
            yield
        return turns

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(other())
    assert await desk.answer(long()) >= 19
    others.cancel()


async def test_a_call_that_is_cancelled_midway_takes_no_further_step() -> None:
    desk, steps = Desk(share=0.0), 0

    def endless() -> Steps[None]:
        nonlocal steps
        while True:
            steps += 1
            yield

    call = asyncio.create_task(desk.answer(endless()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert steps > 0
    call.cancel()
    assert await desk.answer(work(lambda: "the next call")) == "the next call"
    before = steps
    await asyncio.sleep(0)
    assert steps == before


async def test_calls_of_one_namespace_delay_those_of_another_by_one_round() -> None:
    """They waited for all of them: a thousand triggers of one namespace took every turn."""
    desk, steps = Desk(share=0.0), Counter[str]()

    def long(name: str, most: int) -> Steps[str]:
        for _ in range(most):
            steps[name] += 1
            yield
        return name

    many = [asyncio.create_task(desk.answer(long("many", 50), "tenant")) for _ in range(20)]
    await asyncio.sleep(0)
    assert await desk.answer(long("one", 5), "other") == "one"
    assert steps["many"] <= 5 + 2
    await asyncio.gather(*many)
    assert steps["many"] == 20 * 50

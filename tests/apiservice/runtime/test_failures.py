"""The frames of a failure, and what they hold, are freed when its error is dropped.

An error keeps its traceback, the traceback keeps the frames, and a frame keeps its variables. If
one of these leads to the error, only a collection of Python's garbage collector frees them.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator

import pytest

from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.steps import WaitingSteps, run_in_slices, wait_for_result
from apiservice.wire.largeanswers import run_while_connected


class Answer:
    """A large answer that a frame holds."""


async def _failing(held: list[weakref.ref[Answer]]) -> None:
    answer = Answer()
    held.append(weakref.ref(answer))
    await asyncio.sleep(0)
    raise LookupError


async def _flight(failing: Callable[[], Awaitable[None]]) -> None:
    await SingleFlight[str, None]().ask("key", failing)


async def _waiting(failing: Callable[[], Awaitable[None]]) -> None:
    def work() -> WaitingSteps[None]:
        yield from wait_for_result(failing())

    await run_in_slices(work())


async def _while_there(failing: Callable[[], Awaitable[None]]) -> None:
    async def receive() -> dict[str, str]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def work() -> None:
        await failing()

    await run_while_connected(receive, work())


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("through", [_flight, _waiting, _while_there])
async def test_a_failure_is_freed_without_a_collection(
    through: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
) -> None:
    held: list[weakref.ref[Answer]] = []
    with pytest.raises(LookupError) as caught:
        await through(lambda: _failing(held))
    assert held[0]() is not None, "the traceback keeps the frame"
    del caught
    await asyncio.sleep(0)
    assert held[0]() is None

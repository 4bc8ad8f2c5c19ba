"""Fixtures of the generic server's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvloop

from tests.apiservice.loops import Body, Run
from tests.apiservice.world import World, make_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A server in front of fresh fakes."""
    async for made in make_world():
        yield made


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's body on one of the two loops that the server supports."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def runner(body: Body) -> None:
        with asyncio.Runner(loop_factory=factory) as loop:

            async def whole() -> None:
                await body()

            loop.run(whole())

    return runner

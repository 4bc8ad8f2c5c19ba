"""Fixtures of the generic server's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.apiservice.world import World, make_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A server in front of fresh fakes."""
    async for made in make_world():
        yield made

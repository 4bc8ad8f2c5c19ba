"""A server with two read-only resources."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from tests.apiservice.view.things import BASE, FakeProvider, FakeViews
from tests.apiservice.world import World, make_world


@dataclass
class Served:
    """A server, and the objects that it shows."""

    world: World
    views: FakeViews

    @property
    def boards(self) -> FakeProvider:
        return self.views.boards

    @property
    def lamps(self) -> FakeProvider:
        return self.views.lamps

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.world.get(f"{BASE}/{path}", **headers)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A server in front of fresh fakes."""
    views = FakeViews()
    async for world in make_world(views.group):
        yield Served(world, views)

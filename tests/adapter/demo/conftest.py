"""A small world, for tests that need one but not the whole story."""

from __future__ import annotations

import pytest

from adapter.demo import story
from adapter.demo.world import World


@pytest.fixture
def world() -> World:
    """The story's cluster after half a minute."""
    world = World(story.POOLS, story.WORKLOADS, seed=7, start=-30.0)
    world.advance(0.0)
    return world

"""Each scene is built once: its tables only read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.adapter.pages.scene import Scene
from tests.adapter.world import World


@pytest.fixture(scope="session")
def built() -> Callable[[Scene], World]:
    """The world of a scene."""
    worlds: dict[int, tuple[Scene, World]] = {}

    def get(scene: Scene) -> World:
        if id(scene) not in worlds:
            worlds[id(scene)] = (scene, scene.build())
        return worlds[id(scene)][1]

    return get

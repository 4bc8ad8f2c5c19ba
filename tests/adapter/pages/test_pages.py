"""Captured and constructed pages, and the values or absences that follow from them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.adapter.pages import answers, boards, cases, inference, issues, mig, sharing, vendors
from tests.adapter.pages.scene import (
    Line,
    Scene,
    answer,
    every_line,
    every_subject,
    listed,
    served,
)
from tests.adapter.world import World, shared_folder

FOLDER = ("*.prom", "cases/*.prom", "*.json")
Built = Callable[[Scene], World]
TABLES = (boards, mig, sharing, cases, issues, answers, vendors, inference)
SCENES = {name: scene for table in TABLES for name, scene in table.SCENES.items()}


@pytest.mark.parametrize(("scene", "subject", "line"), every_line(SCENES))
def test_a_page_gives_the_values_of_its_table(
    scene: Scene, subject: str, line: Line, built: Built
) -> None:
    found = answer(built(scene), subject, line.metric, line.where, scene.now)
    said = line.value
    assert found == (said if isinstance(said, str) else pytest.approx(said, rel=1e-6, abs=1e-9))


@pytest.mark.parametrize(("scene", "subject"), every_subject(SCENES))
def test_a_page_gives_only_the_values_of_its_table(
    scene: Scene, subject: str, built: Built
) -> None:
    assert served(built(scene), subject, scene.now) == listed(scene.says[subject])


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_everything_that_was_left_out_is_counted_by_its_reason(scene: Scene, built: Built) -> None:
    assert dict(built(scene).store.rejects.totals) == scene.rejects


def test_every_page_of_the_folder_has_a_table() -> None:
    folder = shared_folder()
    pages = {str(path.relative_to(folder)) for kind in FOLDER for path in folder.glob(kind)}
    assert {page for scene in SCENES.values() for page in scene.pages} == pages

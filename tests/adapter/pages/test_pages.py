"""The project's own pages, and captured ones: the values or absences that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapter.pages import answers, boards, cases, inference, issues, mig, sharing, vendors
from tests.adapter.pages.scene import (
    CAPTURED,
    Line,
    Scene,
    answer,
    every_line,
    every_scene,
    every_subject,
    listed,
    served,
)
from tests.adapter.pages.tables import own_scenes
from tests.adapter.world import OWN_PAGES, World, captured_folder
from tests.needs import CAPTURED_PAGES, needs

Built = Callable[[Scene], World]
TABLES = (boards, mig, sharing, cases, issues, answers, vendors, inference)
OF_CAPTURED = {
    f"{CAPTURED}{name}": scene for table in TABLES for name, scene in table.SCENES.items()
}
OWN = own_scenes()
SCENES = {**OWN, **(OF_CAPTURED if CAPTURED_PAGES.missing() is None else {})}


@pytest.mark.parametrize(("scene", "subject", "line"), every_line(SCENES))
def test_a_page_gives_the_values_of_its_table(
    scene: Scene, subject: str, line: Line, built: Built
) -> None:
    value = answer(built(scene), subject, line.metric, line.where, scene.now)
    expected = line.value
    assert value == (
        expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-6, abs=1e-9)
    )


@pytest.mark.parametrize(("scene", "subject"), every_subject(SCENES))
def test_a_page_gives_only_the_values_of_its_table(
    scene: Scene, subject: str, built: Built
) -> None:
    assert served(built(scene), subject, scene.now) == listed(scene.says[subject])


@pytest.mark.parametrize("scene", every_scene(SCENES))
def test_everything_that_was_left_out_is_counted_by_its_reason(scene: Scene, built: Built) -> None:
    assert dict(built(scene).store.rejects.totals) == scene.rejects


def _pages(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for kind in ("*.prom", "*.json")
        for path in folder.rglob(kind)
    }


def test_every_own_page_has_a_table() -> None:
    assert {page for scene in OWN.values() for page in scene.pages} == _pages(OWN_PAGES)


@pytest.mark.parametrize("path", sorted(OWN_PAGES.rglob("*.prom")), ids=lambda path: path.stem)
def test_the_first_line_of_an_own_page_names_the_source_of_its_shape(path: Path) -> None:
    assert path.read_text().startswith("# Shape: ")


@needs(CAPTURED_PAGES)
def test_every_captured_page_has_a_table() -> None:
    assert {page for scene in OF_CAPTURED.values() for page in scene.pages} == _pages(
        captured_folder()
    )

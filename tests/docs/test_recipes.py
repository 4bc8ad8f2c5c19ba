"""The recipes show what `generate` prints, and the index names every recipe."""

from __future__ import annotations

import re

import pytest

from adapter.tools.generate.presets import PRESETS
from tests.docs.recipes import FOLDER, ShownManifest, printed, shown

SHOWN = list(shown())


@pytest.mark.parametrize("each", SHOWN, ids=lambda each: each.command.partition("generate ")[2])
def test_a_manifest_is_the_output_of_the_command_above_it(each: ShownManifest) -> None:
    assert each.text == printed(each.command, each.kind), "run python -m tests.docs.recipes"


def test_every_kind_of_server_has_a_recipe() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    assert set(re.findall(r"--for ([\w-]+)", text)) == set(PRESETS)


def test_the_index_names_every_recipe() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert named == {page.name for page in FOLDER.glob("*.md")} - {"README.md"}

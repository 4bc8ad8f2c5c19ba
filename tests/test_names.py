"""Names of local variables say which thing they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "adapter",
    "apiservice",
    "charts",
    "docs",
    "image",
    "load",
    "release",
    "research",
    "tests",
)
NAMELESS = {"found", "each", "said", "told", "there"}  # prose: ignore
"""Words that fit every thing, so they name none."""


def nameless(text: str) -> Iterator[str]:
    """Yield the variables with such a name. A field of a class has that of its class beside it."""
    tree = ast.parse(text)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {row.target for body in classes for row in body.body if isinstance(row, ast.AnnAssign)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node in fields:
            continue
        if isinstance(node.ctx, ast.Store) and node.id in NAMELESS:
            yield f"line {node.lineno}: {node.id}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_variable_has_the_name_of_its_thing(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}, {place}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for place in nameless(path.read_text())
    ]
    assert not wrong, "\n".join(["write which thing it is:", *wrong])


def test_a_nameless_variable_is_found() -> None:
    text = "def f(rows):\n    return [each for each in rows if (found := each.value)]\n"
    assert sorted(nameless(text)) == ["line 2: each", "line 2: found"]

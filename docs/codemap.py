"""The page that names the module for any fact: docs/code-map.md, written from the code.

Docstrings give the text, the imports give the arrows, so neither can drift.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[1]
TOPS: Final = ("adapter", "apiservice")


def page() -> str:
    """The page as Markdown."""
    graph = grimp.build_graph(*TOPS)
    lines = [
        "# Code map",
        "",
        "<!-- written by `make docs` from docstrings and imports -->",
        "",
        "Find the module for a fact here. [architecture.md](architecture.md) explains how the",
        "parts work together. `make lint` checks the layers; their order is in `pyproject.toml`.",
        "",
    ]
    for top in TOPS:
        lines += _drawing(graph, top)
    for package in _packages():
        lines += _section(package)
    return "\n".join(lines).rstrip() + "\n"


def _drawing(graph: grimp.ImportGraph, top: str) -> Iterator[str]:
    """Packages as boxes, imports as arrows; what follows from other arrows is left out."""
    parts = sorted(graph.find_children(top) - {f"{top}.__main__"})
    imports = {
        part: {
            other
            for other in parts
            if other != part
            and graph.direct_import_exists(importer=part, imported=other, as_packages=True)
        }
        for part in parts
    }
    yield f"## Packages of {top}"
    yield ""
    yield "An arrow is an import. An import that follows from other arrows is not drawn."
    yield ""
    yield "```mermaid"
    yield "graph TD"
    for part in parts:
        reachable = {far for near in imports[part] for far in _below(near, imports)}
        for other in sorted(imports[part] - reachable):
            yield f"  {_name(part)} --> {_name(other)}"
    yield "```"
    yield ""


def _below(part: str, imports: dict[str, set[str]]) -> set[str]:
    """What a part imports, directly or through others."""
    found: set[str] = set()
    ahead = list(imports[part])
    while ahead:
        near = ahead.pop()
        if near not in found:
            found.add(near)
            ahead += imports[near]
    return found


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def _packages() -> Iterator[Path]:
    for top in TOPS:
        yield from sorted({file.parent for file in (ROOT / top).rglob("*.py")})


def _section(folder: Path) -> Iterator[str]:
    module = ".".join(folder.relative_to(ROOT).parts)
    files = sorted(
        file for file in folder.glob("*.py") if file.stem != "__init__" and "_pb2" not in file.name
    )
    yield f"## {module}"
    yield ""
    yield _summary(folder / "__init__.py")
    yield ""
    if files:
        yield "| Module | Content |"
        yield "|---|---|"
    for file in files:
        yield f"| [{file.stem}](../{file.relative_to(ROOT)}) | {_summary(file)} |"
    yield ""


def _summary(file: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.replace("|", "\\|").replace("``", "`").removesuffix("::")

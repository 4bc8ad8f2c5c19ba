"""The code map finds a module for any fact: docstrings exist, and a class name has one meaning."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from docs.codemap import ROOT, TOPS


def sources() -> Iterator[Path]:
    for top in TOPS:
        yield from (path for path in (ROOT / top).rglob("*.py") if "_pb2" not in path.name)


def test_every_module_says_what_it_contains() -> None:
    silent = [p for p in sources() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []


def test_a_public_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_every_module_that_a_docstring_names_exists() -> None:
    """`.name` is relative to the package, as in Python."""
    missing = []
    for path in sources():
        package = path.parent.relative_to(ROOT).parts
        for named in re.findall(r":mod:`(\.*)([\w.]+)`", path.read_text(encoding="utf-8")):
            dots, name = named
            base = package[: len(package) - len(dots) + 1] if dots else ()
            target = ROOT.joinpath(*base, *name.split("."))
            if not target.with_suffix(".py").is_file() and not target.is_dir():
                missing.append((str(path.relative_to(ROOT)), dots + name))
    assert missing == []

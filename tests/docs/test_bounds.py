"""Every row of docs/limits.md has the bounds of the code, and a test exceeds them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.docs.bounds.apis import DELEGATES, KEDA, VIEW
from tests.docs.bounds.connections import CONNECTIONS
from tests.docs.bounds.nodepool import NODEPOOL
from tests.docs.bounds.pages import PAGES, STORED
from tests.docs.bounds.requests import REQUESTS
from tests.docs.bounds.row import Line, Row, Rows, forms, lines, numbers
from tests.docs.bounds.stores import OBJECTS, RULES, STORES
from tests.docs.bounds.tools import DOCTOR, RECORDING, TOOLS
from tests.docs.bounds.web import DEMO, UI

TESTS: Final = Path(__file__).parents[1]
SECTIONS: Final[dict[str, Rows]] = {
    "Pages and scrapes": PAGES,
    "Stored samples and devices": STORED,
    "Connections": CONNECTIONS,
    "Requests, identities and selectors": REQUESTS,
    "Delegates": DELEGATES,
    "The view API": VIEW,
    "KEDA's scaler": KEDA,
    "Prometheus and other stores": STORES,
    "Rules": RULES,
    "Kubernetes objects and files": OBJECTS,
    "Node pool": NODEPOOL,
    "The user's tools": TOOLS,
    "Recording and replay": RECORDING,
    "demo": DEMO,
    "The page": UI,
    "doctor": DOCTOR,
}
LINES: Final = lines()


def known(line: Line) -> Row:
    rows = SECTIONS[line.section]
    matches = [row for start, row in rows.items() if f"{line.name} |".startswith(start)]
    assert len(matches) == 1, f"one row of tests/docs/bounds begins as {line.name!r}: {matches}"
    return matches[0]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_the_numbers_of_a_bound_are_those_of_the_code(line: Line) -> None:
    bounds, shown = known(line).bounds, numbers(line.bound)
    assert len(shown) == len(bounds), (line.bound, bounds)
    for number, value in zip(shown, bounds, strict=True):
        assert number in forms(value), (line.bound, value)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_a_bound_has_tests_or_a_reason(line: Line) -> None:
    row = known(line)
    assert bool(row.tests) != bool(row.reason), line.name
    for test in row.tests:
        path, _, name = test.partition("::")
        assert name in collected(TESTS / path), test


@pytest.mark.parametrize("section", SECTIONS)
def test_each_known_row_is_on_the_page(section: str) -> None:
    names = [f"{line.name} |" for line in LINES if line.section == section]
    for start in SECTIONS[section]:
        assert any(name.startswith(start) for name in names), start


@cache
def collected(path: Path) -> frozenset[str]:
    """Return the names of the tests that pytest collects from a module's functions."""
    return frozenset(
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )

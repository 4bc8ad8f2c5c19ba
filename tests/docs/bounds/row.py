"""What is known about a row of docs/limits.md, and how the page writes numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.docs.test_limits import PAGE

FIXED: Final = (Path(__file__).parent / "fixed.md").read_text(encoding="utf-8")
"""Bounds that a user neither sets nor meets, in the form of the page."""


class Row(NamedTuple):
    """One row.

    Attributes:
        bounds: every number of its second cell, in the order of the page: sizes in bytes, times
            in seconds.
        tests: ``path below tests::name of the test`` of those that exceed the bound.
        reason: why no test can exceed it; empty if there are tests.
    """

    bounds: tuple[float, ...]
    tests: tuple[str, ...]
    reason: str = ""


Rows = Mapping[str, Row]
"""Start of a row's first cell -> the row."""


def row(*bounds: float, by: str | tuple[str, ...]) -> Row:
    """Return a row whose bounds are exceeded by tests."""
    return Row(bounds, (by,) if isinstance(by, str) else by)


def untested(*bounds: float, reason: str) -> Row:
    """Return a row that no test can exceed."""
    return Row(bounds, (), reason)


def default(call: Callable[..., Any], name: str) -> float:
    """Return the default of a parameter."""
    return float(inspect.signature(call).parameters[name].default)


def most(cached: Any) -> int:
    """Return the number of results that a cached function keeps."""
    return int(cached.cache_parameters()["maxsize"])


class Line(NamedTuple):
    """A line of a table of the page."""

    section: str
    name: str
    bound: str


def lines() -> list[Line]:
    """Return the rows of all tables of both pages."""
    rows, section = [], ""
    for text in (*PAGE.splitlines(), *FIXED.splitlines()):
        if text.startswith("## "):
            section = text.removeprefix("## ")
        cells = [cell.strip() for cell in text.split("|")]
        if len(cells) == 7 and cells[1] not in ("What", "---"):
            rows.append(Line(section, cells[1], cells[2]))
    return rows


_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d(?:[\d,.]*\d)?(?: (?:s|ms|min|h|KiB|MiB|GiB)\b)?")


def numbers(bound: str) -> list[str]:
    """Return the numbers of a cell with their units."""
    return _NUMBER.findall(bound)


def forms(value: float) -> set[str]:
    """Return how the page may write a number."""
    seconds = {f"{value:g} s", f"{value * 1000:g} ms", f"{value / 60:g} min", f"{value / 3600:g} h"}
    sizes = {f"{value / (1 << 10 * power):g} {unit}" for power, unit in enumerate(_UNITS, 1)}
    return {f"{value:g}", f"{value:,.0f}", f"{value:.0f}"} | seconds | sizes


_UNITS = ("KiB", "MiB", "GiB")

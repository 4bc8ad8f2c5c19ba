"""docs/limits.md names settings that exist, with their defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from adapter.config.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
SECTIONS = (
    "server.",
    "authentication.",
    "cluster.",
    "source.",
    "values.",
    "keda.",
    "nodepool.",
    "rules.",
    "accounting.",
)


class Bound(NamedTuple):
    text: str
    setting: str


def bounds() -> list[Bound]:
    """The first row of each setting: later rows are derived from it."""
    rows: dict[str, Bound] = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 7:
            continue
        for key in re.findall(r"`([a-z_.]+)`", cells[3]):
            if key.startswith(SECTIONS):
                rows.setdefault(key, Bound(cells[2], key))
    return list(rows.values())


def default(key: str) -> object:
    value: object = Settings()
    for name in key.split("."):
        value = getattr(value, name)
    return value


def written(value: float) -> set[str]:
    """How the page may write a number."""
    forms = {f"{value:g}", f"{value:,.0f}", f"{value:g} s", f"{value / 60:g} min"}
    return forms | {f"{value / (1 << 10):g} KiB", f"{value / (1 << 20):g} MiB"}


BOUNDS = bounds()
NUMBERS = [bound for bound in BOUNDS if type(default(bound.setting)) in (int, float)]


@pytest.mark.parametrize("bound", NUMBERS, ids=lambda bound: bound.setting)
def test_a_bound_is_the_default_of_its_setting(bound: Bound) -> None:
    value = default(bound.setting)
    assert isinstance(value, int | float)
    numbers = re.findall(r"[\d.,]*\d(?: (?:s|min|KiB|MiB)\b)?", bound.text)
    assert written(value) & set(numbers), bound.text


def test_bounds_are_read_from_the_page() -> None:
    """`default` raises for a key that is not a setting."""
    assert len(BOUNDS) > len(NUMBERS) > 15

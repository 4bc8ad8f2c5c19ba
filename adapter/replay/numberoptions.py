"""Options of a replay that are numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import click

MOST: Final = 1e9
"""The highest amount."""


class Numbers(click.ParamType[tuple[float, ...]]):
    """``50,60,70``."""

    name = "numbers"

    def __init__(self, *, whole: bool, least: float, most: float) -> None:
        self._whole = whole
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        found = []
        for text in str(value).split(","):
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if not self._least <= number <= self._most or (self._whole and number != int(number)):
                kind = "whole numbers" if self._whole else "numbers"
                self.fail(
                    f"{text.strip()!r}: give {kind} from {self._least:g} to {self._most:.10g}, "
                    "separated by commas",
                    param,
                    ctx,
                )
            found.append(number)
        return tuple(found)


class Amount(click.ParamType[float]):
    """One number, such as ``2.5``."""

    name = "amount"

    def __init__(self, *, least: float) -> None:
        self._least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self._least <= number <= MOST:
            self.fail(f"{value!r}: give a number from {self._least:g} to {MOST:g}", param, ctx)
        return number

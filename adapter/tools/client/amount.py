"""Options that are one number. They refuse NaN, which ``click.FloatRange`` takes."""

from __future__ import annotations

import math
from typing import Any, Final

import click

MOST: Final = 1e9
"""The highest amount."""


class Amount(click.ParamType[float]):
    """One number within bounds, such as ``2.5``."""

    name = "amount"

    def __init__(self, least: float, most: float = MOST) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self._least <= number <= self._most:
            bounds = f"{self._least:g} to {self._most:.10g}"
            self.fail(f"{value!r}: give a number from {bounds}", param, ctx)
        return number

"""Options of a replay that are numbers."""

from __future__ import annotations

import math
from typing import Any

import click


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

"""Values and texts of the cluster as explanations write them."""

from __future__ import annotations

from typing import Any, Final

from adapter.figures import memory, number
from adapter.hpa import quantity

Json = dict[str, Any]

NONE: Final = "\N{EN DASH}"
"""Stands for a value that is missing."""


def milli(value: int, unit: str = "") -> str:
    """Write thousandths of a unit: ``92``, ``87.5``, ``31.2Gi``."""
    return memory(value / 1000) if unit == "bytes" else number(value / 1000)


def to_milli(value: object) -> int | None:
    """Return the thousandths of a quantity; None if it is not one."""
    try:
        return quantity.to_milli(quantity.parse(value))
    except ValueError:
        return None


def one_line(text: object, longest: int = 300) -> str:
    """Return a text of the cluster as one line of bounded length."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[:longest]}…"

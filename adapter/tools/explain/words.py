"""Values and texts of the cluster as explanations write them."""

from __future__ import annotations

import re
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


_DURATION: Final = re.compile(
    r"[-+]?(?:0|(?:(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[nuµμm]?s|m|h))+)"
)
_PART: Final = re.compile(r"([\d.]+)([nuµμm]?s|m|h)")
_SMALL: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3}
_UNITS: Final = {**_SMALL, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: object) -> float | None:
    """Return the seconds of a Go duration such as ``1m30s``; None if it is not one."""
    if not isinstance(text, str) or len(text) > 64 or not _DURATION.fullmatch(text):
        return None
    total = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


def one_line(text: object, longest: int = 300) -> str:
    """Return a text of the cluster as one line of bounded length."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[:longest]}…"

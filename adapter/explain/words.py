"""Numbers, ages and times as explanations write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from adapter.hpa import quantity

Json = dict[str, Any]

NONE: Final = "\N{EN DASH}"
"""Stands for a value that is missing."""
_BINARY: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def number(value: float) -> str:
    """Write a number with at most three decimals, and large ones without."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".")


def milli(value: int, unit: str = "") -> str:
    """Write thousandths of a unit: ``92``, ``87.5``, ``31.2Gi``."""
    if unit == "bytes":
        whole = value / 1000
        for factor, suffix in _BINARY:
            if abs(whole) >= factor:
                return f"{number(round(whole / factor, 1))}{suffix}"
    return number(value / 1000)


def age(seconds: float) -> str:
    """Write an age as kubectl does: ``2s``, ``5m``, ``3h``, ``9d``."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 7200:
        return f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 172800 else f"{whole // 86400}d"


def epoch(timestamp: object) -> float | None:
    """Return the epoch seconds of an RFC 3339 time; None if there is none."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None


def to_milli(value: object) -> int | None:
    """Return the thousandths of a quantity; None if it is not one."""
    try:
        return quantity.to_milli(quantity.parse(value))
    except ValueError:
        return None


def count(amount: int, noun: str) -> str:
    """Write an amount with its noun: ``1 pod``, ``3 pods``."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def one_line(text: object, longest: int = 300) -> str:
    """Return a text of the cluster as one line of bounded length."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[:longest]}…"

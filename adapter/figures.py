"""Ages, numbers, amounts of memory and names as tables and messages write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def age(seconds: float) -> str:
    """Return a duration as ``kubectl`` prints ages: ``12s``, ``3m20s``, ``5h``, ``2d``."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def decimal(value: float, places: int) -> str:
    """Return a number with at most so many decimals."""
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def number(value: float) -> str:
    """Return a number with at most three decimals, and none from 1000 on."""
    return decimal(value, 0 if abs(value) >= 1000 else 3)


def short_number(value: float) -> str:
    """Return a number with at most one decimal, and none from 10 on. Only 0 is ``0``."""
    if 0 < value < 0.05:
        return "<0.1"
    return decimal(value, 1 if 0 < value < 9.95 else 0)


def percent(value: float) -> str:
    """Return a percentage: ``87%``, ``0.4%``."""
    return f"{short_number(value)}%"


def memory(used: float, total: float | None = None) -> str:
    """Return an amount of memory, or two in one unit: ``31.2/80Gi``."""
    most = used if total is None else max(used, total)
    power = 0
    while most >= 1024 and power < len(_UNITS) - 1:
        most, power = most / 1024, power + 1
    part = 1024.0**power
    whole = "" if total is None else f"/{_amount(total / part)}"
    return f"{_amount(used / part)}{whole}{_UNITS[power]}"


def _amount(value: float) -> str:
    """Return a number with at most one decimal. Only 0 is ``0``."""
    return "<0.1" if 0 < value < 0.05 else decimal(value, 1)


def join_names(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    more = len(names) - most
    parts = [*names[:most], f"{more} more"] if more > 0 else [*names]
    return " and ".join([*filter(None, [", ".join(parts[:-1])]), *parts[-1:]])


def count(amount: int, noun: str) -> str:
    """Return an amount with its noun: ``1 pod``, ``3 pods``."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


LEVELS: Final = "▁▂▃▄▅▆▇█"
"""Characters of a graph, from 0 to its top."""


def spark(values: Sequence[float | None], top: float, levels: str = LEVELS, none: str = " ") -> str:
    """Return values as a graph from 0 to ``top``, a character each; ``none`` is a missing one."""
    steps = len(levels) - 1
    return "".join(
        none if value is None else levels[round(steps * min(max(value / top, 0.0), 1.0))]
        for value in values
    )

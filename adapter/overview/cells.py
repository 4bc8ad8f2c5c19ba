"""Numbers of the texts that kubectl prints; None for a cell without one.

The numbers are as exact as the texts. They are for order, colour, bars and rounded means; a value
is shown by its text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from adapter.client.tables import Cell

_AMOUNT: Final = re.compile(r"(<?)(\d{1,15}(?:\.\d{1,9})?)")
_PART: Final = re.compile(r"(\d{1,12})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MEMORY: Final = re.compile(
    r"(?P<less><?)(?P<used>\d{1,15}(?:\.\d+)?)(?:/(?:<?\d[\d.]*))?(?P<unit>[KMGTP]i)?"
)
_BELOW: Final = 4
"""``adapter.figures`` writes ``<0.1`` for a value below 0.05, of which 0.025 is the middle."""
_KNOWN: Final = 8192
"""Texts whose number is kept: those of a large cluster repeat."""
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


@lru_cache(maxsize=_KNOWN)
def number(cell: Cell) -> float | None:
    """Return the number that a text begins with: ``87%``, ``350W``.

    ``<0.1`` stands for all values below 0.05 but 0, and counts as their middle: it sorts above 0,
    and a mean of such values is written as ``<0.1`` again.
    """
    if isinstance(cell, (int, float)):
        return float(cell)
    found = _AMOUNT.match(cell) if cell else None
    if found is None:
        return None
    return float(found[2]) / (_BELOW if found[1] else 1)


@lru_cache(maxsize=_KNOWN)
def seconds(cell: Cell) -> float | None:
    """Return the seconds of an age: ``12s``, ``3m20s``, ``5h``, ``2d``."""
    parts = _PART.findall(cell) if isinstance(cell, str) else []
    if not parts:
        return None
    return float(sum(int(amount) * _SECONDS[unit] for amount, unit in parts))


@lru_cache(maxsize=_KNOWN)
def memory(cell: Cell) -> float | None:
    """Return the used bytes of an amount of memory: ``31.2Gi``, ``31.2/80Gi``.

    ``<0.1Gi`` counts as :func:`number` has it.
    """
    found = _MEMORY.fullmatch(cell) if isinstance(cell, str) else None
    if found is None:
        return None
    amount = float(found["used"]) * 1024.0 ** _UNITS.index(found["unit"] or "")
    return amount / _BELOW if found["less"] else amount

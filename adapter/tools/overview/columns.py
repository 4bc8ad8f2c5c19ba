"""Columns of a table by name, and the order in which people read names with numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from adapter.tools.client.tables import Cell, ObjectTable, TableRow

_NUMBER: Final = re.compile(r"(\d{1,18})")
ZONE: Final = "topology.kubernetes.io/zone"

Natural = tuple[tuple[int, int, str], ...]


class Columns:
    """The rows of a table, column by column. A column that the server does not have is empty."""

    def __init__(self, table: ObjectTable, rows: Sequence[TableRow] | None = None) -> None:
        self._at = {name: index for index, name in enumerate(table.columns)}
        self.rows = table.rows if rows is None else rows
        self._columns: list[tuple[Cell, ...]] = []

    def cells(self, name: str) -> list[Cell]:
        """Return the cells of a column."""
        index = self._at.get(name)
        if index is None or not self.rows:
            return [None] * len(self.rows)
        if not self._columns:
            # One pass over the rows, which lie far apart in memory.
            self._columns = list(zip(*[row.cells for row in self.rows], strict=True))
        return list(self._columns[index])

    def numbers(self, name: str) -> list[float | None]:
        """Return the numbers of a column."""
        return [cell if isinstance(cell, int | float) else None for cell in self.cells(name)]

    def texts(self, name: str) -> list[str | None]:
        """Return the cells of a column as texts."""
        return [
            cell if cell is None or isinstance(cell, str) else str(cell)
            for cell in self.cells(name)
        ]

    def dicts(self) -> list[dict[str, Cell]]:
        """Return each row by column; a column that the server does not have is missing."""
        names = tuple(self._at)
        return [dict(zip(names, row.cells, strict=True)) for row in self.rows]


@lru_cache(maxsize=65536)
def natural_key(text: str | None) -> Natural:
    """Return a key that sorts n2 before n10; a missing text is last."""
    if text is None:
        return ((2, 0, ""),)
    parts = _NUMBER.split(text)
    return tuple(
        (0, int(part), "") if at % 2 else (1, 0, part) for at, part in enumerate(parts) if part
    )

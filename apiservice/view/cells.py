"""The cells of a table's row: texts, and beside them the numbers that they are written from.

A text is always written from the number that is sent, so the two never differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from apiservice.view.resource import Cell, Column, RawCell

MISSING: Final = "<none>"
"""The cell of a missing value, as kubectl writes it in its own tables."""


class RowWriter:
    """Writes the rows of one table.

    Args:
        columns: of the resource.
        numbers: the numbers follow the texts, in the order of the columns; null without a value.
    """

    def __init__(self, columns: Sequence[Column], *, numbers: bool = False) -> None:
        written = [
            (index, column.write, len(column.numbers))
            for index, column in enumerate(columns)
            if column.write is not None
        ]
        self._single = [(index, write) for index, write, count in written if count == 1]
        self._several = [(index, write) for index, write, count in written if count > 1]
        self._counts = [(index, count) for index, _, count in written] if numbers else []

    def texts(self, cells: Sequence[RawCell]) -> list[Cell]:
        """Return the cells as kubectl prints them; None for a missing value."""
        row: list[Any] = list(cells)
        for index, write in self._single:
            if (cell := row[index]) is not None:
                row[index] = write(cell)
        for index, write in self._several:
            if (cell := row[index]) is not None:
                row[index] = write(*cell)
        return row

    def row(self, name: str, cells: Sequence[RawCell]) -> list[Cell]:
        """Return the cells that are sent, the name first."""
        row: list[Cell] = [name]
        row += [MISSING if cell is None else cell for cell in self.texts(cells)]
        for index, count in self._counts:
            cell = cells[index]
            row += cell if isinstance(cell, tuple) else [cell] * count
        return row

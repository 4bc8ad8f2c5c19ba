"""Sorting and filtering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from adapter.fleet.columns import natural
from adapter.top.tables import RowKey, TopRow, TopTable


class Sort(NamedTuple):
    """A column, and whether its usual direction is turned."""

    column: str
    reverse: bool = False


class NameOrder:
    """The places of rows in the order of their names, kept while the names are the same."""

    def __init__(self) -> None:
        self._keys: list[RowKey] = []
        self._places: list[int] = []

    def of(self, rows: Sequence[TopRow]) -> list[TopRow]:
        """Return the rows by namespace and name."""
        keys = [row.key for row in rows]
        if keys != self._keys:
            by_name = [(key.namespace, natural(key.name)) for key in keys]
            self._keys = keys
            self._places = sorted(range(len(keys)), key=by_name.__getitem__)
        return [rows[at] for at in self._places]


def ordered(table: TopTable, sort: Sort, names: NameOrder | None = None) -> list[TopRow]:
    """Return the rows in order: numbers from the highest, texts from the first.

    Rows without a value of the column come last, in either direction. Rows with the same value
    stay in the order of their names.
    """
    at = table.index(sort.column)
    measure = table.columns[at].measure
    known: list[tuple[Any, TopRow]] = []
    missing = []
    for row in (names or NameOrder()).of(table.rows):
        cell = row.cells[at]
        value = None if cell is None else natural(cell) if measure is None else measure(cell)
        if value is None:
            missing.append(row)
        else:
            known.append((value, row))
    descending = (measure is not None) != sort.reverse
    # A reversed sort is stable too: rows with the same value keep the order of their names.
    known.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in known] + missing


def matches(row: TopRow, words: Sequence[str]) -> bool:
    """Return whether a row has every word, and none of the words after ``!``."""
    text = "\n".join(cell for cell in (row.key.namespace, row.key.name, *row.cells) if cell).lower()
    return all(
        (word[1:] not in text) if len(word) > 1 and word[0] == "!" else word in text
        for word in words
    )


def filtered(rows: Sequence[TopRow], typed: str) -> list[TopRow]:
    """Return the rows that match what was typed, in the same order."""
    words = typed.lower().split()
    return [row for row in rows if matches(row, words)] if words else list(rows)

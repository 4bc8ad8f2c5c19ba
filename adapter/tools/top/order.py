"""Sorting and filtering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple

from adapter.tools.overview.columns import natural_key
from adapter.tools.top.rows import TopRow, column, names, numbers, pick_rows
from adapter.tools.top.tables import TopTable


class Sort(NamedTuple):
    """A column, and whether its usual direction is turned."""

    column: str
    reverse: bool = False


class NameOrder:
    """The places of rows in the order of their names, kept while the names are the same."""

    def __init__(self) -> None:
        self._names: tuple[list[str], list[str]] = ([], [])
        self._places: list[int] = []

    def places(self, rows: Sequence[TopRow]) -> list[int]:
        """Return the places of the rows by namespace and name."""
        row_names = names(rows)
        if row_names != self._names:
            by_name = list(zip(row_names[0], map(natural_key, row_names[1]), strict=True))
            self._names = row_names
            self._places = sorted(range(len(by_name)), key=by_name.__getitem__)
        return self._places


def order_rows(table: TopTable, sort: Sort, by_name: NameOrder | None = None) -> Sequence[TopRow]:
    """Return the rows in order: numbers from the highest, texts from the first.

    Rows without a value of the column come last, in either direction. Rows with the same value
    stay in the order of their names.
    """
    values, descending = _values(table, sort)
    places = (by_name or NameOrder()).places(table.rows)
    by_value = [place for place in places if values[place] is not None]
    # A reversed sort is stable too: rows with the same value keep the order of their names.
    by_value.sort(key=values.__getitem__, reverse=descending)
    if len(by_value) < len(places):
        by_value += [place for place in places if values[place] is None]
    return pick_rows(table.rows, by_value)


def first_rows(table: TopTable, sort: Sort, most: int) -> Sequence[TopRow]:
    """Return the first rows that have a value, in the order of :func:`order_rows`."""
    values, descending = _values(table, sort)
    valued = [place for place, value in enumerate(values) if value is not None]
    choose = nlargest if descending else nsmallest
    last = choose(most, (values[place] for place in valued))[-1:]
    near = [
        place
        for place in valued
        if last and (values[place] >= last[0] if descending else values[place] <= last[0])
    ]
    part = TopTable(table.columns, pick_rows(table.rows, near), table.sort)
    return order_rows(part, sort)[:most]


def _values(table: TopTable, sort: Sort) -> tuple[list[Any], bool]:
    """Return what the rows are sorted by, and whether the largest is first."""
    index = table.index(sort.column)
    if table.columns[index].number:
        return list(numbers(table.rows, index)), not sort.reverse
    cells = column(table.rows, index)
    return [None if cell is None else natural_key(cell) for cell in cells], sort.reverse


def matches(row: TopRow, words: Sequence[str]) -> bool:
    """Return whether a row has every word, and none of the words after ``!``."""
    text = "\n".join(cell for cell in (row.key.namespace, row.key.name, *row.cells) if cell).lower()
    return all(
        (word[1:] not in text) if len(word) > 1 and word[0] == "!" else word in text
        for word in words
    )


def filter_rows(rows: Sequence[TopRow], typed: str) -> Sequence[TopRow]:
    """Return the rows that match what was typed, in the same order."""
    words = typed.lower().split()
    if not words:
        return rows
    return pick_rows(rows, [place for place, row in enumerate(rows) if matches(row, words)])

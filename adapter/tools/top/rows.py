"""Rows of a table. Those of a large list are made one at a time, when they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple, cast, overload

from adapter.tools.client.tables import Cell, ObjectTable, TableRow

_PLAIN: Final = frozenset((str, type(None)))
RowKind = Literal["gpu", "pod", "workload", "hpa", "scaledobject", "node", "note"]
Emphasis = Literal["", "good", "warning", "bad", "dim"]


class RowKey(NamedTuple):
    """What a row is about."""

    kind: RowKind
    namespace: str
    name: str


class TopRow(NamedTuple):
    """A row."""

    key: RowKey
    cells: tuple[str | None, ...]
    """One for each column; None for a missing value."""
    about: RowKey
    """What explains it."""
    emphasis: Emphasis = ""
    numbers: tuple[float | None, ...] = ()
    """One for each column, by which rows are sorted and bars are drawn; None for a text, and for a
    missing value."""


About = Callable[[TableRow, Mapping[str, int]], tuple[RowKey, RowKey, Emphasis]]
"""Returns the key of a row, what explains it, and its emphasis, by the places of its columns."""


class PickedRows(Sequence[TopRow]):
    """Rows of a list that was read, with the cells of some columns.

    Args:
        table: the list.
        names: the columns in upper case. One that the server lacks is empty.
        numbers: for each column that of its number, in upper case; empty for a text.
        about: what a row is about.
        spaced: the first column is the namespace.
    """

    def __init__(
        self,
        table: ObjectTable,
        names: Sequence[str],
        numbers: Sequence[str],
        about: About,
        *,
        spaced: bool,
    ) -> None:
        self._at = {name.upper(): place for place, name in enumerate(table.columns)}
        self._places = [self._at.get(name, -1) for name in names]
        self._numbers = [self._at.get(name, -1) for name in numbers]
        self._about = about
        self._spaced = spaced
        self._rows: Sequence[TableRow] = table.rows
        self._columns: list[tuple[Cell, ...]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> TopRow: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[TopRow]: ...

    def __getitem__(self, at: int | slice) -> TopRow | Sequence[TopRow]:
        if isinstance(at, slice):
            return [self._row(row) for row in self._rows[at]]
        return self._row(self._rows[at])

    def pick(self, places: Sequence[int]) -> PickedRows:
        """Return the rows at these places, in this order."""
        picked = object.__new__(PickedRows)
        picked._at, picked._places, picked._numbers = self._at, self._places, self._numbers
        picked._about, picked._spaced = self._about, self._spaced
        picked._rows, picked._columns = [self._rows[place] for place in places], None
        return picked

    def column(self, at: int) -> Sequence[str | None]:
        """Return the cells of a column."""
        place = self._places[at]
        if place < 0:
            if self._spaced and at == 0:
                return [row.namespace for row in self._rows]
            return [None] * len(self._rows)
        cells = self._cells(place)
        if set(map(type, cells)) <= _PLAIN:
            return cast("Sequence[str | None]", cells)
        return [None if cell is None else str(cell) for cell in cells]

    def numbers(self, at: int) -> Sequence[float | None]:
        """Return the numbers of a column."""
        place = self._numbers[at]
        cells = self._cells(place) if place >= 0 else [None] * len(self._rows)
        return [number_of(cell) for cell in cells]

    def _cells(self, place: int) -> Sequence[Cell]:
        if self._columns is None:
            # One pass over the rows, which lie far apart in memory.
            self._columns = list(zip(*[row.cells for row in self._rows], strict=True))
        return self._columns[place] if self._rows else ()

    def names(self) -> tuple[list[str], list[str]]:
        """Return the namespaces and the names."""
        return [row.namespace for row in self._rows], [row.name for row in self._rows]

    def place_of(self, key: RowKey) -> int:
        """Return the place of a row.

        Raises:
            ValueError: there is none.
        """
        name, namespace = key.name, key.namespace
        for place, row in enumerate(self._rows):
            if row.name == name and row.namespace == namespace and self._row(row).key == key:
                return place
        raise ValueError(key)

    def _row(self, row: TableRow) -> TopRow:
        cells = row.cells
        texts = [None if p < 0 or (c := cells[p]) is None else str(c) for p in self._places]
        if self._spaced:
            texts[0] = row.namespace
        key, target, emphasis = self._about(row, self._at)
        numbers = tuple(None if place < 0 else number_of(cells[place]) for place in self._numbers)
        return TopRow(key, tuple(texts), target, emphasis, numbers)


def number_of(cell: Cell) -> float | None:
    """Return a cell that is a number; None for any other."""
    return cell if isinstance(cell, int | float) else None


def pick_rows(rows: Sequence[TopRow], places: Sequence[int]) -> Sequence[TopRow]:
    """Return the rows at these places, in this order."""
    return rows.pick(places) if isinstance(rows, PickedRows) else [rows[place] for place in places]


def column(rows: Sequence[TopRow], at: int) -> Sequence[str | None]:
    """Return the cells of a column."""
    return rows.column(at) if isinstance(rows, PickedRows) else [row.cells[at] for row in rows]


def numbers(rows: Sequence[TopRow], at: int) -> Sequence[float | None]:
    """Return the numbers of a column."""
    return rows.numbers(at) if isinstance(rows, PickedRows) else [row.numbers[at] for row in rows]


def names(rows: Sequence[TopRow]) -> tuple[list[str], list[str]]:
    """Return the namespaces and the names of rows."""
    if isinstance(rows, PickedRows):
        return rows.names()
    keys = [row.key for row in rows]
    return [key.namespace for key in keys], [key.name for key in keys]


class RowKeys(Sequence[RowKey]):
    """The keys of the rows of several tables, one after the other."""

    def __init__(self, parts: Sequence[Sequence[TopRow]] = ()) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, at: int) -> RowKey: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[RowKey]: ...

    def __getitem__(self, at: int | slice) -> RowKey | Sequence[RowKey]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        return self.row(at).key

    def row(self, at: int) -> TopRow:
        """Return a row.

        Raises:
            IndexError: there is none.
        """
        at += len(self) if at < 0 else 0
        for start, part in zip(self._starts, self._parts, strict=False):
            if start <= at < start + len(part):
                return part[at - start]
        raise IndexError(at)

    def index(self, value: RowKey, start: int = 0, stop: int | None = None) -> int:
        """Return the place of a key; see :meth:`Sequence.index`."""
        for begin, part in zip(self._starts, self._parts, strict=False):
            try:
                place = begin + _place_of(part, value)
            except ValueError:
                continue
            if place >= start and (stop is None or place < stop):
                return place
        raise ValueError(value)


def _place_of(rows: Sequence[TopRow], key: RowKey) -> int:
    if isinstance(rows, PickedRows):
        return rows.place_of(key)
    return [row.key for row in rows].index(key)

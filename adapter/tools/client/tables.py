"""A collection as the table that kubectl prints; reading it costs the server a part of the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

TABLE_TYPE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""Media type of a table."""
_MISSING: Final = "<none>"
"""What a table has instead of a missing value."""

Cell = str | int | float | None
CellT = TypeVar("CellT")


class TableRow(msgspec.Struct, frozen=True, gc=False):
    """One object. The garbage collector does not visit it: a large cluster has many."""

    name: str
    namespace: str
    """Empty for an object of the whole cluster."""
    labels: Mapping[str, str]
    cells: Sequence[Cell]
    """One for each column; None for a missing value."""


class ObjectTable(NamedTuple):
    """Every object of a collection."""

    columns: Sequence[str]
    """Names as the server writes them, wide columns included: ``Name``, ``Why-Not``."""
    rows: Sequence[TableRow]


class TablePage(NamedTuple):
    """One page of a table."""

    columns: Sequence[str]
    rows: Sequence[TableRow]
    token: str
    """Leads to the next page; empty on the last one."""


class _Column(msgspec.Struct, gc=False):
    name: str


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


class _Row(msgspec.Struct, Generic[CellT], gc=False):
    cells: tuple[CellT, ...]
    object: _Object


class _ListMeta(msgspec.Struct, rename={"token": "continue"}):
    token: str = ""


class _Table(msgspec.Struct, Generic[CellT], rename="camel", tag_field="kind", tag="Table"):
    column_definitions: list[_Column]
    rows: list[_Row[CellT]] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_decoder = msgspec.json.Decoder(_Table[Cell])
_lenient = msgspec.json.Decoder(_Table[Any])
_KNOWN: Final = frozenset((str, int, float, type(None)))
_TEXTS: Final[Mapping[Cell, None]] = {_MISSING: None}


def decode_table(body: bytes) -> TablePage:
    """Decode one page.

    Raises:
        msgspec.MsgspecError: it is not a table, or a row has another number of cells.
    """
    table: _Table[Cell]
    try:
        table = _decoder.decode(body)
    except msgspec.ValidationError:
        # A cell of another type is not one of this project's: its text cannot be known.
        table = _lenient.decode(body)
        for row in table.rows or ():
            row.cells = tuple([cell if type(cell) in _KNOWN else None for cell in row.cells])
    columns = tuple(column.name for column in table.column_definitions)
    return TablePage(
        columns, [_row(row, len(columns)) for row in table.rows or ()], table.metadata.token
    )


def _row(row: _Row[Cell], columns: int) -> TableRow:
    cells = row.cells
    if len(cells) != columns:
        raise msgspec.ValidationError(f"a row has {len(cells)} cells for {columns} columns")
    meta = row.object.metadata
    # Without a loop in Python: a large cluster has many cells.
    texts = tuple(map(_TEXTS.get, cells, cells))
    return TableRow(meta.name, meta.namespace, meta.labels or {}, texts)

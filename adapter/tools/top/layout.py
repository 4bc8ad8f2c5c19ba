"""Which columns of a table fit in a terminal, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from adapter.tools.top.rows import TopRow, column
from adapter.tools.top.tables import TopTable

GAP: Final = 2
BAR: Final = 8
"""Cells of a bar."""
_BAR_RANK: Final = 2
_CAP: Final = 40
"""Cells of a column while others are chosen; it gets more if there is room."""
_NARROWEST: Final = 3


class PlacedColumn(NamedTuple):
    """A column that is shown."""

    at: int
    """Its place in the table."""
    width: int
    bar: int = 0
    """Cells of the bar before its text."""


def natural_widths(table: TopTable, rows: Sequence[TopRow]) -> list[int]:
    """Return the cells that the longest text of each column needs; 0 if all are missing."""
    return [_longest(column(rows, index)) for index in range(len(table.columns))]


def _longest(texts: Sequence[str | None]) -> int:
    """Return the cells of the longest text."""
    present = list(filter(None, texts))
    measure = len if "".join(present).isascii() else cell_len
    return max(map(measure, present), default=0)


def place(table: TopTable, natural: Sequence[int], width: int) -> list[PlacedColumn]:
    """Return the columns that fit, in their order. Columns of rank 0 are always there."""
    columns = table.columns
    heads = [len(column.name) + 1 for column in columns]
    widths = [max(head, min(_CAP, need)) for head, need in zip(heads, natural, strict=True)]
    # A column without any value is left out, unless it is one of the most important ones.
    optional = [
        at for at, column in enumerate(columns) if column.rank and (natural[at] or column.rank < 2)
    ]
    chosen = [at for at, column in enumerate(columns) if not column.rank]
    used = sum(widths[at] + GAP for at in chosen) - GAP
    bar, barred = 0, next((at for at, column in enumerate(columns) if column.bar), None)
    for at in sorted(optional, key=lambda at: (columns[at].rank, at)):
        if barred is not None and not bar and columns[at].rank > _BAR_RANK and used + BAR < width:
            bar, used = BAR, used + BAR + 1
        if used + GAP + widths[at] <= width:
            chosen.append(at)
            used += GAP + widths[at]
    if barred is not None and not bar and used + BAR < width:
        bar, used = BAR, used + BAR + 1
    chosen.sort()
    spare = width - used
    for at in chosen:
        more = min(max(0, natural[at] - widths[at]), max(0, spare))
        widths[at] += more
        spare -= more
    _shrink(widths, chosen, -spare)
    return [PlacedColumn(at, widths[at], bar if at == barred else 0) for at in chosen]


def _shrink(widths: list[int], chosen: Sequence[int], excess: int) -> None:
    """Narrow the widest columns of those chosen until they fit."""
    while excess > 0:
        widest = max(chosen, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def fit(text: str, width: int, cut: str) -> str:
    """Return a text in exactly ``width`` cells; ``cut`` marks what is left out."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, max(0, width - len(cut))) + cut[: max(0, width)]

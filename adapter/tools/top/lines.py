"""Lines of styled text: the columns and rows of a table, cut to the terminal's width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len

from adapter.config.process.output import Screen
from adapter.tools.top.layout import PlacedColumn, fit
from adapter.tools.top.order import Sort
from adapter.tools.top.rows import TopRow
from adapter.tools.top.tables import DASH, TopTable

Style = Literal["", "bold", "dim", "reverse", "good", "warning", "bad", "bar"]
Span = tuple[str, Style]
Line = list[Span]


class LineFormat:
    """Formats lines with the characters that a terminal can show."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._cut = "…" if screen.unicode else "~"

    def columns(self, table: TopTable, sort: Sort, placed: Sequence[PlacedColumn]) -> Line:
        """Return the names of the columns, with the direction of the sort."""
        line: Line = []
        up, down = ("▲", "▼") if self._screen.unicode else ("^", "v")
        for place in placed:
            column = table.columns[place.at]
            sign = ""
            if column.name == sort.column:
                sign = down if bool(column.number) != sort.reverse else up
            wide = place.width + (place.bar + 1 if place.bar else 0)
            line += [(fit(f"{column.name}{sign}", wide, ""), "bold"), ("  ", "")]
        return line

    def row(
        self, table: TopTable, row: TopRow, placed: Sequence[PlacedColumn], *, selected: bool
    ) -> Line:
        """Return a row of a table."""
        base: Style = "reverse" if selected else "dim" if row.emphasis == "dim" else ""
        line: Line = [("> " if selected else "  ", base)]
        for place in placed:
            cell, column = row.cells[place.at], table.columns[place.at]
            style = base
            # Colour is for what needs attention; a busy GPU does not.
            attention = column.name in ("DECISION", "WHY-NOT") or (cell is None and not column.rank)
            if attention and row.emphasis in ("warning", "bad") and not selected:
                style = row.emphasis
            if place.bar:
                line.append((self._bar(row.numbers[place.at], place.bar), style or "bar"))
                line.append((" ", base))
            text = self._screen.line(DASH if cell is None else cell)
            line += [(fit(text, place.width, self._cut), style), ("  ", base)]
        return line

    def _bar(self, value: float | None, width: int) -> str:
        """Draw a percentage; a missing value has no bar, and anything above 0 is visible."""
        if value is None:
            return " " * width
        full, empty = ("█", "░") if self._screen.unicode else ("#", ".")
        filled = min(width, round(width * value / 100))
        filled = max(1, filled) if value > 0 else 0
        return full * filled + empty * (width - filled)

    def fill_room(self, lines: Sequence[Line], width: int, room: int) -> list[Line]:
        """Return ``room`` lines of at most ``width`` cells."""
        cropped = [self.crop_line(line, width) for line in lines[:room]]
        return cropped + [[] for _ in range(room - len(cropped))]

    def crop_line(self, line: Line, width: int) -> Line:
        """Return a line in at most ``width`` cells, without control characters."""
        parts: Line = []
        for text, style in line:
            clean = self._screen.line(text)
            need = cell_len(clean)
            if need > width:
                parts.append((fit(clean, width, self._cut), style))
                break
            parts.append((clean, style))
            width -= need
        return parts


def wrap_sentence(text: str, width: int, most: int) -> list[str]:
    """Break a sentence between words; the last line has the rest, which is cut later."""
    lines = textwrap.wrap(text, width, break_long_words=False)
    return lines if len(lines) <= most else [*lines[: most - 1], " ".join(lines[most - 1 :])]


def fold_line(line: str, width: int) -> list[str]:
    """Break a line at the edge, so that a long command can be read."""
    if len(line) <= width:
        return [line]
    return [line[start : start + width] for start in range(0, len(line), width)]

"""Tables as text: on the terminal, and between the markers of ``load/README.md``."""

from __future__ import annotations

import re

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from load.table import Table


class MarkerError(ValueError):
    """The document lacks the markers that a result is to be written between."""


def figure(value: float, digits: int = 3) -> str:
    """``value`` with about ``digits`` significant digits, grouped by thousands.

    >>> figure(12345.6), figure(0.01234), figure(7.0)
    ('12,346', '0.0123', '7.00')
    """
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole:
        return f"{value:,.{max(0, digits - whole)}f}"
    return f"{value:.{digits}g}"


def markdown(table: Table) -> str:
    """The table, its goals and notes as Markdown."""
    lines = [
        _line(table.columns),
        _line(["---"] + ["---:"] * (len(table.columns) - 1)),
        *(_line(row) for row in table.rows),
    ]
    if table.goals:
        lines += ["", "| goal | measured | |", "| --- | --- | --- |"]
        lines += [
            _line([g.text, g.measured, "met" if g.met else "**missed**"]) for g in table.goals
        ]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines)


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def show(console: Console, name: str, table: Table) -> None:
    """Print the table for a person."""
    rich = RichTable(title=name, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(table.columns):
        rich.add_column(escape(column), justify="left" if index == 0 else "right")
    for row in table.rows:
        rich.add_row(*(escape(cell) for cell in row))
    console.print(rich)
    for goal in table.goals:
        mark = "[green]met[/]" if goal.met else "[red]missed[/]"
        console.print(f"  goal: {escape(goal.text)}: {escape(goal.measured)} {mark}")
    for note in table.notes:
        console.print(f"  {escape(note)}", style="dim")


def replace(document: str, name: str, body: str) -> str:
    """``document`` with ``body`` between the begin and end markers of ``name``.

    Raises:
        MarkerError: the markers are missing.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    if not pattern.search(document):
        raise MarkerError(f"load/README.md has no lines {begin} and {end}: add them")
    return pattern.sub(lambda match: f"{match[1]}{body}\n{match[2]}", document, count=1)

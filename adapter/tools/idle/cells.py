"""Cells of the tables of costs: amounts of money, and names in CSV."""

from __future__ import annotations

from adapter.config.process.output import Screen


def amount(number: float | None, unknown: str = "-") -> str:
    """Return an amount of money with two decimals."""
    return unknown if number is None else f"{number:.2f}"


def safe_cell(cell: str) -> str:
    """Return a cell that a spreadsheet does not run as a formula, and a terminal not as a command;
    tenants choose names."""
    cell = Screen().line(cell)
    return f"'{cell}" if cell.lstrip()[:1] in ("=", "+", "-", "@") else cell

"""What a scenario hands back: a table of figures, and goals met or missed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Goal(NamedTuple):
    """A figure that was promised, and what was measured."""

    text: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One scenario's result. Cells are text: what is printed is what is published."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    goals: tuple[Goal, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """Sentences that a reader of the figures needs."""

    def __post_init__(self) -> None:
        """Raise ValueError for a row whose cells do not fit the columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns: {row}")


@dataclass(frozen=True, slots=True)
class Run:
    """How a scenario is to be run."""

    quick: bool
    """A smoke run: everything is exercised, nothing is measured long enough to be quoted."""
    folder: Path
    """Scratch space of this scenario."""

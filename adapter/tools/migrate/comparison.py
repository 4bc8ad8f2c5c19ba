"""The values of two servers side by side, and the verdict on each metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.config.process.output import Mark, Screen, table
from adapter.tools.client.access import Json
from adapter.tools.explain.words import NONE, milli

Values = Mapping[str, int]
"""Object -> thousandths. An external metric has one entry, the sum of its series."""
_OBJECTS: Final = 5
"""Objects whose names a row shows."""


class MoveVerdict(StrEnum):
    """What the two answers say."""

    EQUAL = "equal"
    DIFFERENT = "different"
    LOST = "missing here"
    GAINED = "missing there"
    NEITHER = "missing on both"
    FAILED = "not compared"

    @property
    def good(self) -> bool:
        """Whether an HPA loses nothing by the move."""
        return self in (MoveVerdict.EQUAL, MoveVerdict.GAINED, MoveVerdict.NEITHER)


class Compared(NamedTuple):
    """One metric of HPAs."""

    metric: str
    kind: str
    about: str
    """The object and the metric's selector; empty without them."""
    namespace: str
    hpas: Sequence[str]
    verdict: MoveVerdict
    theirs: str
    ours: str
    remark: str = ""

    def json(self) -> Json:
        """The row for programs."""
        return {**self._asdict(), "hpas": list(self.hpas), "verdict": str(self.verdict)}


class Comparison(NamedTuple):
    """All metrics of all HPAs."""

    rows: Sequence[Compared]
    absent: Sequence[str] = ()
    """Names of their discovery that ours does not list."""
    notes: Sequence[str] = ()

    @property
    def good(self) -> bool:
        """Whether no HPA loses a metric or gets another value."""
        return all(row.verdict.good for row in self.rows)

    def lines(self, screen: Screen) -> list[str]:
        """The comparison as text."""
        header = ("", "metric", "HPAs", "theirs", "ours", "verdict")
        cells = [
            (
                screen.mark(_mark(row.verdict)),
                f"{row.metric} ({' '.join(filter(None, (row.kind, row.about)))})",
                _shorten_names(row.hpas, 2),
                row.theirs,
                row.ours,
                f"{row.verdict}{f': {row.remark}' if row.remark else ''}",
            )
            for row in self.rows
        ]
        lines = ["Values of both servers, by metric of HPAs:"]
        lines += table(cells, header, indent="  ") if cells else ["  no HPA uses a metric of it"]
        if self.absent:
            shown = ", ".join(self.absent[:20])
            more = f" and {len(self.absent) - 20} more" if len(self.absent) > 20 else ""
            lines += screen.wrap(f"in their discovery and not in ours: {shown}{more}", "  ")
        return [*lines, *(line for note in self.notes for line in screen.wrap(note, "  "))]

    def json(self) -> Json:
        """The comparison for programs."""
        return {
            "good": self.good,
            "metrics": [row.json() for row in self.rows],
            "absentFromDiscovery": list(self.absent),
            "notes": list(self.notes),
        }


def _mark(verdict: MoveVerdict) -> Mark:
    if not verdict.good:
        return "bad"
    return "good" if verdict is MoveVerdict.EQUAL else "warning"


def judge(first: Values, ours: Values, last: Values, tolerance: float) -> tuple[MoveVerdict, str]:
    """Return the verdict, and the objects that it is about.

    Args:
        first: their values before ours were read.
        ours: our values.
        last: their values after ours were read.
        tolerance: percent by which a value may lie outside of the range of theirs.
    """
    theirs = first.keys() & last.keys()
    lost = sorted(theirs - ours.keys())
    if lost:
        return MoveVerdict.LOST, _shorten_names(lost)
    if not (first.keys() | last.keys()):
        return (MoveVerdict.GAINED, "") if ours else (MoveVerdict.NEITHER, "")
    other = sorted(
        name for name in theirs if not _within(first[name], ours[name], last[name], tolerance)
    )
    if other:
        return MoveVerdict.DIFFERENT, _shorten_names(other)
    gained = sorted(ours.keys() - first.keys() - last.keys())
    # An HPA averages over its pods: a value for one more pod changes the result.
    return (
        (MoveVerdict.DIFFERENT, f"more here: {_shorten_names(gained)}")
        if gained
        else (MoveVerdict.EQUAL, "")
    )


def _within(first: int, ours: int, last: int, tolerance: float) -> bool:
    low, high = min(first, last), max(first, last)
    # One thousandth is what the two servers round differently.
    room = max(abs(low), abs(high)) * tolerance / 100 + 1
    return low - room <= ours <= high + room


def _shorten_names(objects: Sequence[str], most: int = _OBJECTS) -> str:
    more = len(objects) - most
    return ", ".join(objects[:most]) + (f" and {more} more" if more > 0 else "")


def describe_values(values: Values) -> str:
    """Return values for a table: the one value, or their number and range."""
    if not values:
        return NONE
    low, high = min(values.values()), max(values.values())
    if len(values) == 1:
        return milli(low)
    return f"{len(values)} of {milli(low)}..{milli(high)}"

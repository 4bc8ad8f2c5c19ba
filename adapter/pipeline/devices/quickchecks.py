"""Tell from the newest numbers alone that a device's verdict is clear, or stays what it is.

They are bounds on the numbers of a page, so that most pages need no verdict. All are narrower than
the rules of :mod:`adapter.pipeline.devices.plausibility`: numbers outside of them show nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import inf, nextafter
from typing import Final, NamedTuple

from adapter.pipeline.catalog.contradictions import Contradiction
from adapter.pipeline.catalog.layout import Layout
from adapter.pipeline.catalog.nvidia import (
    BUSY,
    CODECS,
    COPY,
    DRAM,
    ENGINES,
    POWER,
    PROFILING,
    UTIL,
)
from adapter.pipeline.catalog.vendors import CONTRADICTIONS
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.idlepower import IdleRange
from adapter.pipeline.devices.series import DEVICE, IDLE, Verdict

REST: Final = 0.01
"""Share up to which a counter does not show work: DCGM's own measurement causes a little."""
AT_IDLE: Final = 1.05
"""Factor on the lowest idle power up to which a device counts as idle.

A device at 100 % with little work draws more: 66 W beside 53 W at 0 % on one V100 node
(GLM-130B#32).
"""
_DECIDED: Final = frozenset((UTIL, DRAM, *ENGINES))
"""Fields whose newest numbers :func:`is_beyond_suspicion` compares in its own way."""


@lru_cache(maxsize=512)
def contradictions_in(layout: Layout) -> tuple[Contradiction, ...]:
    """Return the entries of the catalogue for which the columns have both fields."""
    fields = layout.of_field
    return tuple(entry for entry in CONTRADICTIONS if entry.zero in fields and entry.by in fields)


@lru_cache(maxsize=512)
def _other_columns(layout: Layout) -> tuple[int, ...]:
    """Return the columns of the other fields whose 0 may be false."""
    zeros = {entry.zero for entry in contradictions_in(layout)} - _DECIDED
    return tuple(column for name in sorted(zeros) for column in layout.of_field[name])


class _Columns(NamedTuple):
    """The columns of the fields that decide most cases quickly."""

    util: int | None
    power: int | None
    counters: tuple[int, ...]


@lru_cache(maxsize=512)
def _columns(layout: Layout) -> _Columns | None:
    """Return the columns, or None if a field has several or nothing can be compared."""
    of_field = {name: layout.of_field.get(name, ()) for name in (UTIL, POWER, DRAM, *ENGINES)}
    if any(len(columns) > 1 for columns in of_field.values()):
        return None
    first = {name: columns[0] for name, columns in of_field.items() if columns}
    counters = tuple(first[name] for name in (*ENGINES, DRAM) if name in first)
    if not counters and UTIL not in first:
        return None
    return _Columns(first.get(UTIL), first.get(POWER), counters)


def is_beyond_suspicion(history: History, idle: IdleRange | None) -> bool:
    """Return whether the newest samples and the circumstances rule out every suspicion."""
    row = history.row(-1)
    if not all(row[column] > 0 for column in _other_columns(history.layout)):
        return False
    columns = _columns(history.layout)
    if columns is None:
        return not any(name in history.layout.of_field for name in (UTIL, *ENGINES, DRAM))
    util = BUSY / 2 if columns.util is None else row[columns.util]
    if not util > 0:
        return False
    if columns.counters:
        least = REST if util >= BUSY else 0.0
        return all(row[column] > least for column in columns.counters)
    if columns.power is None or idle is None:
        return True
    return util < BUSY or row[columns.power] > AT_IDLE * idle.low


class Bound(NamedTuple):
    """What a number of the next page must be."""

    column: int
    """Of the device's history."""
    above: float
    """The number is greater than this one."""
    most: float
    """The number is at most this one."""


def lasts(verdict: Verdict, layout: Layout) -> bool:
    """Return whether the verdict stays the same while no field shows work.

    It does for a device that was idle over the whole window. Without GPU_UTIL it does not: power,
    or counters slightly above 0, may end the verdict although no field shows work.
    """
    kinds = verdict.since.keys() - {(POWER, IDLE)}
    plain = UTIL in layout.of_field and not _other_columns(layout)
    return kinds == {(DEVICE, IDLE)} and not verdict.doubts and plain


@lru_cache(maxsize=512)
def resting_bounds(layout: Layout) -> tuple[Bound, ...]:
    """Return bounds within which numbers leave a verdict that :func:`lasts` as it is."""
    fields = layout.of_field
    limits = rest_limits(name for name in fields if name.startswith(PROFILING)) | {UTIL: 0.0}
    for entry in contradictions_in(layout):
        if entry.zero == UTIL and entry.by not in limits:
            limits[entry.by] = nextafter(min(entry.mean, entry.least), 0.0)
    return tuple(
        Bound(column, -inf, limit)
        for name, limit in limits.items()
        for column in fields.get(name, ())
    )


@lru_cache(maxsize=512)
def working_bounds(layout: Layout) -> tuple[Bound, ...]:
    """Return bounds within which numbers show work, so that no field can be doubted."""
    others = tuple(Bound(column, 0.0, inf) for column in _other_columns(layout))
    columns = _columns(layout)
    if columns is None:
        compared = any(name in layout.of_field for name in (UTIL, *ENGINES, DRAM))
        return (Bound(0, inf, inf),) if compared else others
    busy = () if columns.util is None else (Bound(columns.util, 0.0, inf),)
    if columns.counters or columns.power is None:
        return *others, *busy, *(Bound(column, REST, inf) for column in columns.counters)
    return *others, *(Bound(bound.column, 0.0, nextafter(BUSY, 0.0)) for bound in busy)


def rest_limits(counters: Iterable[str]) -> dict[str, float]:
    """Return field -> the highest number that does not show work."""
    highest = {name: REST for name in counters if "PCIE" not in name}
    return highest | {COPY: 100 * REST} | dict.fromkeys(CODECS, 0.0)

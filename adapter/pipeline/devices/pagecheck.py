"""Bounds on the numbers of a page within which they are valid and change no verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from math import inf, nextafter
from operator import itemgetter, le
from typing import Final

from adapter.pipeline.catalog.nvidia import PROFILING
from adapter.pipeline.devices.pageshape import DeviceColumns, PageNumbers
from adapter.pipeline.devices.plausibility import FIELDS
from adapter.pipeline.devices.quickchecks import Bound, resting_bounds, working_bounds
from adapter.pipeline.devices.validity import LEAST_SENTINEL, SENTINELS

_CHECKS: Final = 256
"""Checks of pages with different fields, or with other devices at rest, that are kept."""


class PageCheck:
    """The bounds of each number, as on the page. Pages with equal devices share one.

    Args:
        numbers: the fields of the page.
        rows: the columns of each device series.
        resting: whether each device series rests; empty if fields are not compared.
    """

    __slots__ = (
        "_floor",
        "_high_lows",
        "_highs",
        "_large",
        "_lows",
        "_raised",
        "compared",
        "row_of",
    )

    def __init__(
        self, numbers: PageNumbers, rows: tuple[DeviceColumns, ...], resting: tuple[bool, ...]
    ) -> None:
        spellings = numbers.spellings
        lows = [-inf if s is None else s.low for s in spellings]
        highs = [inf if s is None else s.high for s in spellings]
        compared: set[int] = set()
        for columns, rests in zip(rows, resting, strict=False):
            fields = enumerate(column.field.name for column in columns.layout.columns)
            compared.update(
                columns.places[index]
                for index, name in fields
                if name in FIELDS or name.startswith(PROFILING)
            )
            for bound in (resting_bounds if rests else working_bounds)(columns.layout):
                place = columns.places[bound.column]
                low, high = _limits_on_page(bound, numbers.factors[place])
                lows[place], highs[place] = max(lows[place], low), min(highs[place], high)
        self._lows, self._highs = tuple(lows), tuple(highs)
        self._floor = max([low for low in lows if low <= 0], default=0.0)
        """At least as large as most lows: the others are compared one by one."""
        raised = [place for place, low in enumerate(lows) if low > 0]
        self._raised = _picker(raised)
        self._high_lows = [lows[place] for place in raised]
        self._large = _picker([place for place, high in enumerate(highs) if high >= LEAST_SENTINEL])
        self.compared = frozenset(compared)
        """The numbers on which a verdict depends."""
        self.row_of = {place: row for row, columns in enumerate(rows) for place in columns.places}
        """Place of a number -> the device series."""

    def places_beyond(self, values: Sequence[float]) -> Set[int]:
        """Return the places of the numbers that are not within their bounds.

        Args:
            values: as on the page.
        """
        sound = SENTINELS.isdisjoint(self._large(values))
        if (
            sound
            and min(values) >= self._floor
            and all(map(le, values, self._highs))  # not a NaN, too
            and all(map(le, self._high_lows, self._raised(values)))
        ):
            return frozenset()
        bounds = zip(self._lows, values, self._highs, strict=True)
        odd = {place for place, (low, value, high) in enumerate(bounds) if not low <= value <= high}
        return odd if sound else odd | {place for place, x in enumerate(values) if x in SENTINELS}


def _limits_on_page(bound: Bound, factor: float) -> tuple[float, float]:
    """Return the least and the largest number on a page within a bound in the field's unit."""
    low, high = nextafter(bound.above / factor, inf), bound.most / factor
    while low < inf and not low * factor > bound.above:
        low = nextafter(low, inf)
    while high > -inf and not high * factor <= bound.most:
        high = nextafter(high, -inf)
    return (-inf if bound.above == -inf else low), high


def _picker(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[place] for place in places]


page_check = lru_cache(maxsize=_CHECKS)(PageCheck)

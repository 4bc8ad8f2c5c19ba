"""What a histogram counted over a window, from the pages in a history."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan
from typing import Protocol

from adapter.pipeline.catalog.field import Role
from adapter.pipeline.catalog.increases import (
    Increase,
    cumulative_counts,
    increase_between,
    known_bounds,
    sum_increases,
)
from adapter.pipeline.catalog.layout import Layout
from adapter.pipeline.catalog.metric import DeviceValue

_Row = tuple[float, tuple[float, ...], tuple[float, ...], float | None]
"""Epoch seconds, bounds with infinity, cumulative counts, sum."""


class SampleColumns(Protocol):
    """Samples in order of time."""

    layout: Layout
    times: array[float]

    def column(self, column: int, first: int = 0) -> array[float]:
        """Return a column's numbers from a row on, NaN for times without one."""


def histogram_increase(
    samples: SampleColumns, columns: Sequence[int], window: float
) -> DeviceValue | None:
    """Return the increase of a histogram; None with fewer than two pages.

    A page may write the histogram under several names: the one with the newest page counts.

    Args:
        columns: of the histogram's field.
        window: seconds up to the newest page.
    """
    families: dict[str, list[int]] = {}
    for column in columns:
        families.setdefault(samples.layout.columns[column].family, []).append(column)
    best: DeviceValue | None = None
    for family, family_columns in families.items():
        rows = _rows(samples, family_columns)
        if len(rows) < 2:
            continue
        first = first_used_sample([row[0] for row in rows], rows[-1][0] - window)
        increase = _increase(rows[first:])
        if best is None or increase.end > best.time:
            field = samples.layout.columns[family_columns[0]].field.name
            best = DeviceValue(increase.count, increase.end, family, field, increase)
    return best


def first_used_sample(times: Sequence[float], since: float) -> int:
    """Return the place of the first sample from which on an increase is counted.

    It is the first after ``since`` (epoch seconds), but never the last one: a store that scrapes
    less often than once per window still gives an increase.
    """
    return max(0, min(bisect_right(times, since), len(times) - 2))


def _rows(samples: SampleColumns, columns: Sequence[int]) -> list[_Row]:
    """Return the pages that have the histogram, oldest first."""
    spelled = samples.layout.columns
    buckets = sorted(
        ((spelled[c].bound or 0.0, c) for c in columns if spelled[c].role is Role.BUCKET),
    ) or [(inf, c) for c in columns if spelled[c].role is Role.COUNT]
    numbers = [(bound, samples.column(column)) for bound, column in buckets]
    sums = [samples.column(c) for c in columns if spelled[c].role is Role.SUM]
    rows: list[_Row] = []
    for row, time in enumerate(samples.times):
        hits = [(bound, values[row]) for bound, values in numbers if not isnan(values[row])]
        if hits:
            total = sums[0][row] if sums and not isnan(sums[0][row]) else None
            bounds, counts = zip(*hits, strict=True)
            rows.append((time, bounds, counts, total))
    return rows


def _increase(rows: Sequence[_Row]) -> Increase:
    """Return the increase over at least two pages.

    Between two pages with other bounds, it has those below which the counts of both are known: a
    store leaves out empty buckets of a native histogram. If one of these has fallen, the later page
    is that of a new process.
    """
    parts: list[Increase] = []
    first = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end][1] != rows[first][1]:
            if end - first > 1:
                parts.append(_increase_within(rows[first:end]))
            if end < len(rows):
                parts.append(_increase_across(rows[end - 1], rows[end]))
            first = end
    whole = sum_increases(parts)
    assert whole is not None  # noqa: S101 - two pages have a part between them
    return replace(whole, start=rows[0][0], end=rows[-1][0])


def _increase_within(rows: Sequence[_Row]) -> Increase:
    return increase_between([(time, hits, total) for time, _, hits, total in rows], rows[0][1][:-1])


def _increase_across(before: _Row, after: _Row) -> Increase:
    """Return the increase between two pages with other bounds."""
    pages = [_increase_within((_page_at_start(page), page)) for page in (before, after)]
    bounds = known_bounds(pages)
    old, new = (cumulative_counts(page.at(bounds).counts) for page in pages)
    if any(high < low for low, high in zip(old, new, strict=True)):
        return pages[1]
    return increase_between([(before[0], old, before[3]), (after[0], new, after[3])], bounds)


def _page_at_start(page: _Row) -> _Row:
    """Return the page of the process before its first request."""
    return (page[0], page[1], (0.0,) * len(page[1]), 0.0)

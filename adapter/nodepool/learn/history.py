"""Add observations to histories: one point a minute, and the peaks of each day. Pure."""

from __future__ import annotations

from typing import Final

from adapter.nodepool.model.history import (
    DAY,
    DAYS,
    MINUTE,
    MOST_LOAD,
    PER_POD,
    RECENT,
    SLOT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)

SETBACK: Final = 10 * MINUTE
"""Seconds by which points may be ahead of the clock. Beyond that they are dropped."""
_WHOLE: Final = 1e13
"""A load from which on only whole pods are kept. A float has no exact hundredths of larger ones."""
_NEVER: Final[tuple[float | None, ...]] = (None,) * SLOTS


def learn(history: DemandHistory, point: DemandPoint) -> DemandHistory:
    """Return the history with one more observation.

    A minute keeps its largest observation. An observation older than the newest minute is ignored,
    because minutes may arrive in any order after a restart. If the newest minute is ahead by more
    than :data:`SETBACK`, the clock was wrong, and all points ahead of now are dropped. A number
    that cannot be a load changes nothing.
    """
    if not is_load(point.pods):
        return history
    minute = point.time // MINUTE * MINUTE
    pods = round_load(point.pods)
    if history.recent and minute < history.recent[-1].time - SETBACK:
        history = _drop_later(history, minute)
    recent = history.recent
    if recent and minute < recent[-1].time:
        return history
    if recent and minute == recent[-1].time:
        if pods <= recent[-1].pods:
            return history
        recent = recent[:-1]
    oldest = minute - RECENT * MINUTE
    first = 0
    while first < len(recent) and recent[first].time <= oldest:
        first += 1
    days = _add_peak(history.days, minute, pods)
    return DemandHistory((*recent[first:], DemandPoint(minute, pods)), days)


def union(one: DemandHistory, other: DemandHistory, now: float) -> DemandHistory:
    """Return what either history knows; of a minute and of a slot, the larger load.

    It is the same in either order, and however often it is taken. What is ahead of now by more than
    :data:`SETBACK` is dropped: the newest time decides what is too old to be kept.

    Args:
        now: epoch seconds.
    """
    one, other = (_drop_later(history, now + SETBACK) for history in (one, other))
    minutes: dict[float, float] = {}
    for point in (*one.recent, *other.recent):
        minutes[point.time] = max(point.pods, minutes.get(point.time, point.pods))
    newest = max(minutes, default=0.0)
    recent = (
        DemandPoint(time, minutes[time])
        for time in sorted(minutes)
        if time > newest - RECENT * MINUTE
    )
    days: dict[int, DemandDay] = {}
    for day in (*one.days, *other.days):
        same_day = days.get(day.number)
        days[day.number] = day if same_day is None else DemandDay(day.number, _peaks(same_day, day))
    first = max(days, default=0) - DAYS
    kept_days = (days[number] for number in sorted(days) if number >= first)
    return DemandHistory(tuple(recent), tuple(kept_days))


def _peaks(one: DemandDay, other: DemandDay) -> tuple[float | None, ...]:
    return tuple(
        max((peak for peak in pair if peak is not None), default=None)
        for pair in zip(one.peaks, other.peaks, strict=True)
    )


def is_load(pods: float) -> bool:
    """Return whether a number can be a load: NaN, and what is below 0 or too large, cannot."""
    return 0 <= pods <= MOST_LOAD


def round_load(pods: float) -> float:
    """Return a load in whole hundredths of a pod, and a very large one in whole pods."""
    return round(pods * PER_POD) / PER_POD if pods < _WHOLE else float(round(pods))


def _drop_later(history: DemandHistory, minute: float) -> DemandHistory:
    today = int(minute // DAY)
    return DemandHistory(
        tuple(point for point in history.recent if point.time <= minute),
        tuple(day for day in history.days if day.number <= today),
    )


def _add_peak(days: tuple[DemandDay, ...], minute: float, pods: float) -> tuple[DemandDay, ...]:
    number, second = divmod(int(minute), DAY)
    slot = second // SLOT
    if not days or days[-1].number != number:
        kept_days = tuple(day for day in days if number - DAYS <= day.number < number)
        days = (*kept_days, DemandDay(number, _NEVER))
    running = days[-1]
    peak = running.peaks[slot]
    if peak is not None and peak >= pods:
        return days
    peaks = (*running.peaks[:slot], pods, *running.peaks[slot + 1 :])
    return (*days[:-1], DemandDay(number, peaks))

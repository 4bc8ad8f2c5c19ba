"""The demand history of a workload: each minute of the last hours, and the peaks of earlier days.

It is bounded and immutable, and a ConfigMap holds some hundreds of them. A minute or a slot of a
day without an observation is absent; it is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

MINUTE: Final = 60
PER_POD: Final = 100
"""A load is a whole number of hundredths of a pod."""
MOST_LOAD: Final = 1e16
"""A larger load is none. Loads are of other units than pods too: bytes, for example. In hundredths,
it is a whole number of 64 bits."""
RECENT: Final = 360
"""Maximum number of single minutes."""
SLOT: Final = 15 * MINUTE
"""Seconds of one slot of a day."""
DAY: Final = 86400
SLOTS: Final = DAY // SLOT
DAYS: Final = 7
"""Days kept in addition to the current one."""


class DemandPoint(NamedTuple):
    """One observation of a workload."""

    time: float
    """Epoch seconds."""
    pods: float
    """The load: wanted pods before the limits, the tolerance and the rounding of the
    HorizontalPodAutoscaler."""


class DemandDay(NamedTuple):
    """One day (UTC) of a workload."""

    number: int
    """Days since the epoch."""
    peaks: tuple[float | None, ...]
    """Highest load in each slot of the day; None without an observation."""


@dataclass(frozen=True, slots=True)
class DemandHistory:
    """The history of a workload. :func:`learn` returns an updated one."""

    recent: tuple[DemandPoint, ...] = ()
    """Points at whole minutes, oldest first, for at most :data:`RECENT` minutes."""
    days: tuple[DemandDay, ...] = ()
    """Oldest first. The last is the current day if it has an observation."""


EMPTY: Final = DemandHistory()

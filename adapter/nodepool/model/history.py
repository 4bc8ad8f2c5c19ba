"""What a workload's own past teaches: every minute of the last hours, and the days before.

Bounded, immutable, and small enough that a ConfigMap holds some hundreds of them. A minute
or a stretch of a day without an observation is absent; it is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

MINUTE: Final = 60
RECENT: Final = 360
"""Minutes that are kept one by one."""
SLOT: Final = 15 * MINUTE
"""Seconds of one stretch of a day."""
DAY: Final = 86400
SLOTS: Final = DAY // SLOT
DAYS: Final = 7
"""Days kept beside the running one."""


class DemandPoint(NamedTuple):
    """One observation of a workload."""

    time: float
    """Epoch seconds."""
    pods: int
    """Pods wanted then, before any limit of the HorizontalPodAutoscaler."""


class DemandDay(NamedTuple):
    """One day (UTC) of a workload."""

    number: int
    """Days since the epoch."""
    peaks: tuple[int | None, ...]
    """Most pods wanted in each of the day's slots; None without an observation."""


@dataclass(frozen=True, slots=True)
class DemandHistory:
    """A workload's past. :func:`learn` makes the next one."""

    recent: tuple[DemandPoint, ...] = ()
    """At whole minutes, oldest first, at most one a minute, at most :data:`RECENT` back."""
    days: tuple[DemandDay, ...] = ()
    """Oldest first; the last is the running day, once one was seen."""


EMPTY: Final = DemandHistory()

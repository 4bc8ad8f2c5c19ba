"""What a replay comes to: GPU-hours, time over the limit, changes of the replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from adapter.tools.replay.simulation import Moment

GAP: Final = 4
"""Sync periods between two syncs beyond which the time between is not counted."""


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The figures of one run. Times in seconds."""

    seconds: float = 0.0
    """Time that the figures are about; gaps of the recording are not part of it."""
    gpu_seconds: float = 0.0
    """GPUs of all replicas, times seconds, booting ones included."""
    over: float = 0.0
    """Time with a load of each pod above the limit."""
    longest_over: float = 0.0
    """The longest time without a break above the limit."""
    unknown: float = 0.0
    """Time for which the demand is not known."""
    saturated: float = 0.0
    """Time for which the demand was at least what the recording shows."""
    changes: int = 0
    """Times that the replicas changed."""
    highest: int = 0
    """Most replicas."""
    lowest: int = 0


def outcome_of(moments: Sequence[Moment], limit: int, gpus: float, period: float) -> ReplayOutcome:
    """Return the figures of a run.

    Args:
        moments: by time.
        limit: load of one pod in thousandths.
        gpus: of one replica.
        period: seconds between two syncs.
    """
    seconds = gpu_seconds = over = longest = stretch = unknown = saturated = 0.0
    changes = 0
    for moment, after in pairwise(moments):
        span = after.time - moment.time
        changes += moment.replicas != after.replicas
        if span > GAP * period:
            stretch = 0.0
            continue
        seconds += span
        gpu_seconds += span * gpus * moment.replicas
        saturated += span * moment.saturated
        unknown += span * (moment.load is None)
        beyond = moment.load is not None and moment.load > limit
        over += span * beyond
        stretch = stretch + span if beyond else 0.0
        longest = max(longest, stretch)
    sizes = [moment.replicas for moment in moments]
    return ReplayOutcome(
        seconds=seconds,
        gpu_seconds=gpu_seconds,
        over=over,
        longest_over=longest,
        unknown=unknown,
        saturated=saturated,
        changes=changes,
        highest=max(sizes, default=0),
        lowest=min(sizes, default=0),
    )

"""The times for which the syncs of a recording lack something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from adapter.devices.assignment import Mismatch
from adapter.recording.events import Stretch
from adapter.replay.defects import (
    NO_PODS,
    NO_VALUE,
    NOT_KNOWN,
    SATURATED_TIME,
    Defects,
    covered,
)
from adapter.replay.demand import RecordedDemand
from adapter.replay.outcome import GAP
from adapter.replay.syncs import RecordedSync

_STARTING: Final = frozenset((Mismatch.NOT_RUNNING, Mismatch.NOT_READY, Mismatch.FINISHED))
"""Reasons of pods that are not expected to have a value."""


def note_syncs(
    syncs: Sequence[RecordedSync], demands: Sequence[RecordedDemand], period: float, into: Defects
) -> None:
    """Add what the syncs lack.

    Args:
        syncs: by time.
        demands: of each sync.
        period: seconds between two syncs.
        into: also has the defects that the events show.
    """
    seen = tuple(into)
    for before, after in pairwise(syncs):
        if after.time - before.time > GAP * period:
            gap = Stretch(before.time, after.time, NOT_KNOWN, "")
            if not covered(gap, seen):
                into.add(gap)
    for sync, demand, end in zip(syncs, demands, _ends(syncs, period), strict=True):
        for reason in _reasons(sync, demand):
            into.add(Stretch(sync.time, end, reason, ""))


def saturated_times(
    syncs: Sequence[RecordedSync], demands: Sequence[RecordedDemand], period: float
) -> Defects:
    """Return when the pods did as much as they can, so that the demand may have been higher."""
    found = Defects()
    for demand, end in zip(demands, _ends(syncs, period), strict=True):
        if demand.saturated:
            found.add(Stretch(demand.time, end, SATURATED_TIME, ""))
    return found


def _ends(syncs: Sequence[RecordedSync], period: float) -> Iterator[float]:
    """Yield until when each sync's state is counted."""
    for before, after in pairwise(syncs):
        yield min(after.time, before.time + GAP * period)
    yield syncs[-1].time


def _reasons(sync: RecordedSync, demand: RecordedDemand) -> Iterator[str]:
    if not any(not pod.deleting and not pod.finished for pod in sync.pods):
        yield NO_PODS
    elif demand.total is None:
        yield NO_VALUE
    for reason in sorted(set(sync.absent) - _STARTING):
        yield str(reason)

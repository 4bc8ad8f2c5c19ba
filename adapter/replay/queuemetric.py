"""What servers of a recording show of their queues: how many requests run while none wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from adapter.catalog.serverkinds import WAITING
from adapter.hpa import HpaSpec, MetricKind, MetricSpec, MetricTarget, TargetKind
from adapter.recording.events import Recording
from adapter.replay.divisible import RUNNING
from adapter.replay.syncs import Syncs

_LEAST: Final = 20
"""Syncs without waiting requests that make evidence."""
_USUAL: Final = 0.95
"""Share of these syncs that are at the level or below."""
_TARGET: Final = 0.8
"""Share of the level that makes a target: new pods need time to start."""


class QueueEvidence(NamedTuple):
    """How requests ran and waited."""

    syncs: int
    """At which pods had both numbers."""
    waiting: int
    """Those of ``syncs`` at which requests waited."""
    level: int
    """Thousandths of requests that ran in each pod while none waited."""

    @property
    def target(self) -> int:
        """A target for the requests that run in a pod, in thousandths."""
        return max(1000, round(_TARGET * self.level / 100) * 100)


def queue_of(recording: Recording, spec: HpaSpec, period: float) -> QueueEvidence | None:
    """Return what the pods of an HPA show, or None if they do not show enough.

    Args:
        period: seconds between two syncs.

    Raises:
        RecordingError: the recording cannot be read.
    """
    both = replace(spec, metrics=(running_metric(1000), _pods(WAITING, 1000)))
    syncs = waits = 0
    free: list[int] = []
    for sync in Syncs(both, period).of(recording.events()):
        running, waiting = sync.seen.values
        if not isinstance(running, Mapping) or not isinstance(waiting, Mapping):
            continue
        if not running or not waiting:
            continue
        syncs += 1
        if any(waiting.values()):
            waits += 1
        elif any(running.values()):
            free.append(sum(running.values()) // len(running))
    if len(free) < _LEAST:
        return None
    return QueueEvidence(syncs, waits, sorted(free)[int(_USUAL * (len(free) - 1))])


def running_metric(target: int) -> MetricSpec:
    """Return the metric of the requests that run in a pod, with a target in thousandths."""
    return _pods(RUNNING, target)


def _pods(name: str, target: int) -> MetricSpec:
    return MetricSpec(MetricKind.PODS, name, MetricTarget(TargetKind.AVERAGE_VALUE, target))

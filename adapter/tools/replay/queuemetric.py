"""What servers of a recording show of their queues, and which metric shows that requests wait."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.hpa import HpaSpec, MetricKind, MetricSpec, MetricTarget, TargetKind
from adapter.pipeline.catalog.serverkind import RUNNING, WAITING
from adapter.server.recording.events import Recording
from adapter.tools.replay.demand import SATURATED
from adapter.tools.replay.syncs import Syncs

_LEAST: Final = 20
"""Syncs without waiting requests that make evidence."""
_USUAL: Final = 0.95
"""Share of these syncs that are at the level or below."""
_TARGET: Final = 0.8
"""Share of the level that makes a target: new pods need time to start."""


class Spread(NamedTuple):
    """Values of one pod, in thousandths, of the syncs of one kind."""

    low: int
    """5 % of the syncs are below."""
    median: int
    high: int
    """5 % of the syncs are above."""


class QueueSignal(NamedTuple):
    """How a metric differs between syncs with and without waiting requests."""

    metric: str
    without: Spread | None
    """At syncs without waiting requests; None if there are none."""
    waiting: Spread | None
    """At syncs with waiting requests; None if there are none."""
    higher: float | None
    """Probability that the value at a sync with waiting requests is above that at one without.

    Equal values count as half. None if one of both has no sync.
    """


class QueueEvidence(NamedTuple):
    """How requests ran and waited."""

    syncs: int
    """At which pods had all numbers."""
    waiting: int
    """Those of ``syncs`` at which requests waited."""
    most: int
    """Thousandths of requests that waited at one sync, of all pods."""
    free: int
    """Syncs at which requests ran, and none waited."""
    level: int
    """Thousandths of requests that ran in each pod while none waited."""
    signals: tuple[QueueSignal, ...]
    """Of the HPA's metric, and of the requests that run."""
    saturated: int = 0
    """Those of ``syncs`` at which the pods did as much as they can."""
    saturated_waiting: int = 0
    """Those of ``saturated`` at which requests waited."""
    backlog: float = 0.0
    """Requests that waited at ``saturated``, as a share of those that ran."""

    @property
    def enough(self) -> bool:
        """Whether the evidence supports a target."""
        return self.free >= _LEAST

    @property
    def target(self) -> int:
        """A target for the requests that run in a pod, in thousandths."""
        return max(1000, round(_TARGET * self.level / 100) * 100)


@dataclass(slots=True)
class _Seen:
    """Values of one pod at the syncs without and with waiting requests."""

    without: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def signal(self, metric: str) -> QueueSignal:
        without, waiting = sorted(self.without), sorted(self.waiting)
        return QueueSignal(
            metric, _spread(without), _spread(waiting), probability_higher(without, waiting)
        )


def queue_of(
    recording: Recording, spec: HpaSpec, highest: int | None, period: float
) -> QueueEvidence | None:
    """Return what the pods of an HPA show; None if they show no queue.

    Args:
        recording: of serve, a store or saved pages.
        spec: with one metric of type Pods.
        highest: the highest value that a pod can have, in thousandths; None if there is none.
        period: seconds between two syncs.

    Raises:
        RecordingError: the recording cannot be read.
    """
    metric = spec.metrics[0]
    all_three = replace(spec, metrics=(metric, running_metric(1000), _pods(WAITING, 1000)))
    by_metric: dict[str, _Seen] = {metric.name: _Seen(), RUNNING: _Seen()}
    most = saturated = saturated_waiting = ran = waited = 0
    free: list[int] = []
    for sync in Syncs(all_three, period).of(recording.events()):
        values = [by_pod for by_pod in sync.seen.values if isinstance(by_pod, Mapping) and by_pod]
        if len(values) < len(all_three.metrics):
            continue
        load, running = (sum(by_pod.values()) // len(by_pod) for by_pod in values[:2])
        queue = sum(values[2].values())
        most = max(most, queue)
        for name, value in ((metric.name, load), (RUNNING, running)):
            (by_metric[name].waiting if queue else by_metric[name].without).append(value)
        if running and not queue:
            free.append(running)
        if highest is not None and load >= SATURATED * highest:
            saturated += 1
            saturated_waiting += queue > 0
            ran += sum(values[1].values())
            waited += queue
    running_values = by_metric[RUNNING]
    if not running_values.without and not running_values.waiting:
        return None
    return QueueEvidence(
        syncs=len(running_values.without) + len(running_values.waiting),
        waiting=len(running_values.waiting),
        most=most,
        free=len(free),
        level=_at(sorted(free), _USUAL) if free else 0,
        signals=tuple(pod_values.signal(name) for name, pod_values in by_metric.items()),
        saturated=saturated,
        saturated_waiting=saturated_waiting,
        backlog=waited / ran if ran else 0.0,
    )


def probability_higher(without: Sequence[int], waiting: Sequence[int]) -> float | None:
    """Return how probably one of ``waiting`` is above one of ``without``.

    Args:
        without: ascending.
        waiting: in any order.

    Returns:
        0 to 1, equal values counted as half; None if one of both is empty.
    """
    if not without or not waiting:
        return None
    below = sum(bisect_left(without, value) + bisect_right(without, value) for value in waiting)
    return below / (2 * len(without) * len(waiting))


def _spread(ascending: Sequence[int]) -> Spread | None:
    if not ascending:
        return None
    return Spread(_at(ascending, 1 - _USUAL), _at(ascending, 0.5), _at(ascending, _USUAL))


def _at(ascending: Sequence[int], share: float) -> int:
    return ascending[round(share * (len(ascending) - 1))]


def running_metric(target: int) -> MetricSpec:
    """Return the metric of the requests that run in a pod, with a target in thousandths."""
    return _pods(RUNNING, target)


def _pods(name: str, target: int) -> MetricSpec:
    return MetricSpec(MetricKind.PODS, name, MetricTarget(TargetKind.AVERAGE_VALUE, target))

"""The syncs of an HPA in a recording: what the controller saw each time it decided.

The controller writes the HPA's status at a sync if it changed. Between two such times the syncs are
one period apart.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from adapter.answers.promises.workload import PromisedWorkload
from adapter.hpa import (
    HpaSpec,
    HpaState,
    MetricKind,
    Missing,
    Observation,
    PodState,
    Values,
    decide,
    quantity,
)
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.promise import Promise
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.pod import Pod
from adapter.server.recording.events import Begun, Event, HpaSeen, Missed
from adapter.tools.replay.virtualcluster import VirtualCluster
from apiservice.labels.manifest import selector_text
from apiservice.labels.selector import Selector, parse

WRITTEN: Final = 0.25
"""Seconds, at most, between the values that the controller read and the status that it wrote."""
_MOST_APART: Final = 3.0
"""Sync periods between two syncs, at most: figures leave out longer times."""
NOT_RECORDED: Final = "a recording has no values of {kind} metrics"


@dataclass(frozen=True, slots=True)
class RecordedSync:
    """One sync of the HPA."""

    time: float
    """Epoch seconds."""
    seen: Observation
    """``replicas`` is the number of the workload's pods where the status does not give it."""
    pods: tuple[Pod, ...]
    absent: Counter[str] = field(default_factory=Counter)
    """Why pods had no value, over all metrics."""
    desired: int | None = None
    """``status.desiredReplicas`` that the controller wrote at this sync; None if it wrote none."""
    exact: bool | None = None
    """Whether the values equal those in the status; None if it wrote none."""
    first: bool = False
    """Nothing is known of the time before: the recording begins here, or begins again."""
    within: float = 0.0
    """Seconds to which its time is known: a store has the status at each scrape only."""


class Syncs:
    """Finds the syncs of one HPA.

    Args:
        spec: the HPA, with its namespace, name and target.
        period: seconds between two syncs.
        begin: see :class:`adapter.tools.replay.virtualcluster.VirtualCluster`.
    """

    def __init__(
        self,
        spec: HpaSpec,
        period: float,
        begin: Callable[[Promise], PromisedWorkload] = PromisedWorkload,
    ) -> None:
        self._spec = spec
        self._period = period
        self._selectors = [_selector(metric.selector) for metric in spec.metrics]
        self._last: float | None = None
        self._status: ShownHpa | None = None
        self._first = True
        self._open: HpaSeen | None = None
        """A status that was written within a span of time which has not ended."""
        self._sampled = False
        """The statuses are those at the scrapes of a store."""
        self._cluster = VirtualCluster(begin)
        self._waiting: deque[Event] = deque()
        """Events that the controller may not have seen at its next sync."""

    @property
    def catalog(self) -> Catalog:
        """The catalogue of the recording's settings, with the user's own metrics."""
        return self._cluster.catalog

    def of(self, events: Iterable[Event]) -> Iterator[RecordedSync]:
        """Yield the syncs of a recording, oldest first; raises RecordingError."""
        for event in events:
            if self._open is not None and self._ends(event):
                yield from self._resolve(self._open)
            if isinstance(event, Begun):
                self._take_until(event.time)
                self._last = self._status = None
                self._first = True
                self._cluster.take(event)
                continue
            if self._open is None:
                yield from self._unchanged_syncs(event.time)
            if isinstance(event, HpaSeen):
                yield from self._status_seen(event)
            elif not isinstance(event, Missed):
                self._waiting.append(event)
            if self._open is None:
                due = event.time if self._last is None else self._last + self._period
                self._take_until(min(event.time, due) - WRITTEN)
        if self._open is not None:
            yield from self._resolve(self._open)

    def _ends(self, event: Event) -> bool:
        """Return whether the span in which the open status was written ends before an event."""
        end = (self._open.until if self._open is not None else None) or 0.0
        if isinstance(event, HpaSeen):  # the last event of its time
            return event.time >= end
        return isinstance(event, Begun) or event.time > end

    def _unchanged_syncs(self, until: float) -> Iterator[RecordedSync]:
        """Yield the syncs that did not change the status, one period after the last one."""
        while self._last is not None and until >= self._last + 1.5 * self._period:
            self._last += self._period
            self._take_until(self._last)
            yield self._begin(self._observe(self._last))

    def _status_seen(self, event: HpaSeen) -> Iterator[RecordedSync]:
        if not self._is_new_status(event):
            return
        if event.until is not None:
            self._open, self._sampled = event, True
            return
        self._last = event.time
        yield self._begin(self._settle(event))

    def _resolve(self, event: HpaSeen) -> Iterator[RecordedSync]:
        """Yield the sync that wrote a status within a span of time, and those before it.

        The status has the values, so the first state of the cluster that has them too is taken.
        """
        self._open = None
        end = event.until or event.time
        self._take_until(event.time)
        moment = event.time
        while True:
            sync = self._observe(moment, event.hpa)
            if sync.exact or not self._waiting or self._waiting[0].time > end:
                break
            # The pods are known at the beginning of this span: there may have been a sync, too.
            apart = 0.5 if moment == event.time else _MOST_APART
            if self._last is not None and moment >= self._last + apart * self._period:
                self._last = moment
                yield self._begin(self._observe(moment))
            moment = self._waiting[0].time
            self._take_until(moment)
        if not sync.exact:
            sync = self._observe(end, event.hpa)
        self._last = sync.time
        yield self._begin(replace(sync, within=end - event.time))

    def _take_until(self, time: float) -> None:
        """Take the events up to a time into the cluster."""
        while self._waiting and self._waiting[0].time <= time:
            self._cluster.take(self._waiting.popleft())

    def _begin(self, sync: RecordedSync) -> RecordedSync:
        """Return the sync, marked if it is the first of a run of the recorder."""
        first, self._first = self._first, False
        return replace(sync, first=True) if first else sync

    def _settle(self, event: HpaSeen) -> RecordedSync:
        """Return the sync whose status was written.

        The controller read the values up to :data:`WRITTEN` seconds before. The status has the
        values, so the state of the cluster that has them too is taken.
        """
        self._take_until(event.time - WRITTEN)
        while True:
            sync = self._observe(event.time, event.hpa)
            if sync.exact or not self._waiting:
                return sync
            self._cluster.take(self._waiting.popleft())

    def _is_new_status(self, event: HpaSeen) -> bool:
        """Return whether the event is a status that the controller has just written."""
        hpa = event.hpa
        if (hpa.namespace, hpa.name) != (self._spec.namespace, self._spec.name):
            return False
        before, self._status = self._status, None if event.gone else hpa
        if before is None:
            self._last = self._last or event.time
            return False
        return (
            not event.gone
            and _shown_status(before) != _shown_status(hpa)
            and hpa.current is not None
        )

    def _observe(self, now: float, hpa: ShownHpa | None = None) -> RecordedSync:
        pods = tuple(self._cluster.pods_of(self._spec))
        absent: Counter[str] = Counter()
        values: list[Values] = []
        for metric, selector in zip(self._spec.metrics, self._selectors, strict=True):
            if metric.kind is not MetricKind.PODS:
                values.append(Missing(NOT_RECORDED.format(kind=metric.kind)))
                continue
            pod_values = self._cluster.values(pods, metric.name, selector, now)
            absent.update(pod_values.absent.values())
            values.append(pod_values.milli)
        states = [pod_state(pod) for pod in pods]
        alive = sum(not pod.deleting and not pod.finished for pod in pods)
        current = alive if hpa is None or hpa.current is None else hpa.current
        seen = Observation(current, states, tuple(values))
        return RecordedSync(
            now,
            seen,
            pods,
            absent,
            hpa.desired if hpa is not None else None,
            self._is_exact(seen, hpa, now)
            if hpa is not None and self._is_comparable(hpa)
            else None,
        )

    def _is_comparable(self, hpa: ShownHpa) -> bool:
        """Return whether the status has the values: a store may lack that series."""
        if not self._sampled:
            return True
        pairs = zip(self._spec.metrics, hpa.metrics, strict=False)
        return all(shown.current for metric, shown in pairs if metric.kind is MetricKind.PODS)

    def _is_exact(self, observation: Observation, hpa: ShownHpa, now: float) -> bool:
        """Return whether the controller computed the same values of its metrics of pods."""
        decision, _ = decide(self._spec, HpaState(), observation, now)
        theirs = [_milli(metric.current) for metric in hpa.metrics]
        ours = [proposal.usage for proposal in decision.proposals]
        if len(theirs) != len(ours):
            return False
        return all(
            metric.kind is not MetricKind.PODS or mine == other
            for metric, mine, other in zip(self._spec.metrics, ours, theirs, strict=True)
        )


def pod_state(pod: Pod) -> PodState:
    """Return a pod as the HPA controller groups it."""
    return PodState(
        pod.ref.name,
        pod.phase,
        pod.ready,
        pod.deleting,
        pod.born or None,
        pod.ready_since or None,
    )


def _shown_status(hpa: ShownHpa) -> tuple[object, ...]:
    """Return what the controller writes at a sync."""
    currents = tuple(metric.current for metric in hpa.metrics)
    return (hpa.current, hpa.desired, currents, hpa.conditions)


def _milli(text: str) -> int | None:
    """Return a quantity in thousandths; None without one."""
    return int(quantity.parse(text) * 1000) if text else None


def _selector(manifest: Mapping[str, Any] | None) -> Selector:
    return parse(selector_text(manifest))

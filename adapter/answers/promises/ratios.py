"""``inference_slo_ratio`` for the pods of a query: the promise is in the query's selector.

What a workload's pods can take is learned from the questions themselves: an HPA asks every 15 s.
All readers of one process learn together. A process that has just started, or a promise that is
new, has learned nothing. It serves no value for :data:`PATIENCE` seconds then, unless the promise
is being broken: another rule than before a restart would scale a workload that has not changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from weakref import ref

import structlog

from adapter.answers.promises.capacity import PodCapacity, load_of
from adapter.answers.promises.memory import Lessons, Topic, better_of, dump_lessons, load_lessons
from adapter.answers.promises.ratio import Basis, Ratio, describe_ratio
from adapter.answers.promises.workload import PromisedWorkload
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.values import READING_BEGINS
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.promise import Promise, promise_in
from adapter.pipeline.catalog.requestwindow import RequestWindow
from adapter.pipeline.catalog.serverkind import RUNNING
from adapter.pipeline.catalog.servermeasures import WINDOW
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import PODS
from adapter.pipeline.cluster.nodelabels import facts
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.cluster.workload import Workload, workloads
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.labels.selector import EVERYTHING, Selector
from apiservice.runtime.steps import Steps

log = structlog.get_logger(__name__)

LEARNING: Final = "promise_learning"
NOT_MEASURED: Final = "promise_not_measured"
PATIENCE: Final = 180.0
"""Seconds after the first question in which there is no value without a capacity."""
_REASON: Final = 15.0
"""Seconds for which the reasons hold while no pod has a value."""
_OF_NAMESPACE: Final = 32
"""Promises of workloads that are remembered for one namespace."""
_OF_ALL: Final = 2048
"""The same for all namespaces. Each takes 15 kB at most, and 1 kB for each pod that has a value
now."""
_KEPT: Final = 86400.0
"""Seconds for which one is remembered after the last question."""


class PodQuestion(NamedTuple):
    """What a query asks of pods."""

    metric: Metric
    """Any; only a promised one is answered from here."""
    selector: Selector
    """The metric selector without ``aggregate``: of devices, or the promise."""
    snapshot: Snapshot
    now: float
    """Epoch seconds."""


Ask = Callable[[Pod], Reading | Absence]
"""Returns the value of a pod, or why there is none."""


_GONE: Final = Absence(NOT_MEASURED, "the pod went while the question was answered")


@dataclass(slots=True)
class _Asked:
    """A workload and a promise that somebody asks for."""

    workload: PromisedWorkload
    since: float
    """Epoch seconds of the first question."""
    made_of: tuple[ref[Snapshot], int] | None = None
    """The snapshot, which is not kept for it, and the version of the pods behind ``values``."""
    until: float = 0.0
    """Epoch seconds at which they are too old."""
    values: Mapping[PodRef, Reading | Absence] = field(default_factory=dict)
    at: float = 0.0
    """Epoch seconds of the last question."""


class PromisedRatios:
    """What the questions of one process have taught.

    Args:
        index: every pod.
        begin: returns what is known of a workload before its first window.
    """

    def __init__(
        self, index: PodIndex, begin: Callable[[Promise], PromisedWorkload] = PromisedWorkload
    ) -> None:
        self._index = index
        self._begin = begin
        self._asked: dict[str, OrderedDict[tuple[Workload, Promise], _Asked]] = {}
        """Namespace -> its workloads and promises, the one that was asked for last at the end."""
        self._recalled: Lessons = {}
        """What other processes know, and this one knew before its start."""
        self._gpus: dict[tuple[str, Workload, Promise], list[str]] = {}
        """What it is about -> the types of GPUs in ``_recalled``."""
        self.forgotten = 0
        """Promises that were too many for their namespace, or for all."""

    def about(self, pods: Sequence[Pod], question: PodQuestion) -> Steps[Ask]:
        """Return what answers a question about some pods.

        Raises:
            PromiseError: the selector states no promise, or one that cannot be meant.
        """
        metric, selector, snapshot, now = question
        if not metric.promised:
            return lambda pod: snapshot.pod(pod, metric.name, selector, now)
        promise = promise_in(selector.requirements)
        values: dict[PodRef, Reading | Absence] = {}
        keys = {(pod.namespace, _workload(pod)): None for pod in pods}
        for namespace, workload in keys:
            values |= yield from self._of(namespace, workload, promise, snapshot, now)
        return lambda pod: values.get(pod.ref, _GONE)

    def stated_promises(self, pod: Pod, now: float) -> Iterator[tuple[Promise, Reading | Absence]]:
        """Yield the promises that queries about a pod stated lately, with its last value for each.

        A look at a pod teaches nothing, and keeps nothing from being forgotten.
        """
        workload = _workload(pod)
        for (about, promise), entry in self._asked.get(pod.namespace, {}).items():
            if about == workload and now < entry.until and pod.ref in entry.values:
                yield promise, entry.values[pod.ref]

    @property
    def size(self) -> int:
        """How many promises of workloads somebody has asked for."""
        return sum(map(len, self._asked.values()))

    def lessons(self, now: float) -> Lessons:
        """Return what is known, that of other processes included."""
        lessons = {
            Topic(namespace, workload, promise, gpu): lesson
            for namespace, topics in self._asked.items()
            for (workload, promise), entry in topics.items()
            for gpu, lesson in entry.workload.lessons().items()
        }
        return better_of(lessons, self._recalled, now)

    def merge(self, text: str, now: float) -> str:
        """Take what a text knows better, and return the text of what both know.

        A line that cannot be read is logged, left out, and missing from the answer; of what is too
        much for the text, what has the least evidence.
        """
        self._prune(now)
        lessons, unread = load_lessons(text)
        if unread:
            log.warning("lines of what was learned about promises cannot be read", lines=unread)
        self.recall(lessons, now)
        if not self._asked:
            return text
        merged, left_out = dump_lessons(self.lessons(now), now)
        if left_out:
            log.warning("too many promises to keep all of them", left_out=left_out)
        return merged

    def recall(self, lessons: Lessons, now: float) -> None:
        """Take what other processes know, where it is more; at the start that is everything."""
        self._recalled, self._gpus = lessons, {}
        for namespace, workload, promise, gpu in lessons:
            self._gpus.setdefault((namespace, workload, promise), []).append(gpu)
        for (namespace, workload, promise, gpu), lesson in lessons.items():
            entry = self._peek(namespace, workload, promise)
            if entry is not None:
                entry.workload.recall(gpu, lesson, now)

    def _of(
        self, namespace: str, workload: Workload, promise: Promise, snapshot: Snapshot, now: float
    ) -> Steps[Mapping[PodRef, Reading | Absence]]:
        made_of = ref(snapshot), self._index.changes_in(namespace)
        entry = self._peek(namespace, workload, promise)
        if entry is not None and entry.made_of == made_of and now < entry.until:
            return entry.values
        pods = yield from self._members(namespace, workload)
        latencies = tuple(dict.fromkeys(bound.latency for bound in promise))
        values: dict[PodRef, Reading | Absence] = {}
        windows: dict[str, RequestWindow] = {}
        types: dict[str | None, str] = {}
        for pod in pods:
            window = snapshot.requests(pod, now, latencies)
            absence = _find_absence(pod, window, promise, snapshot, now)
            if absence is not None:
                values[pod.ref] = absence
            elif window is not None:
                windows[pod.name] = window
            if pod.node not in types:
                types[pod.node] = facts(snapshot.cluster.labels(pod.node or "")).model
            yield  # a pod may have hundreds of servers
        if not windows and entry is None:
            return values  # a query may be about many workloads without servers
        entry = self._recall(namespace, workload, promise, now)
        gpus = {pod.name: types[pod.node] for pod in pods}
        entry.workload.observe(windows, gpus)
        yield
        oldest = snapshot.options.oldest
        ratios = entry.workload.ratios(windows, gpus)
        for name, (ratio, capacity) in ratios.items():
            values[PodRef(namespace, name)] = self._value(
                entry, ratio, capacity, windows[name], gpus[name], oldest, now
            )
        entry.values, entry.made_of = values, made_of
        entry.until = min(
            (window.time + oldest for window in windows.values()), default=now + _REASON
        )
        return values

    def _value(
        self,
        entry: _Asked,
        ratio: Ratio,
        capacity: PodCapacity | None,
        window: RequestWindow,
        gpu: str,
        oldest: float,
        now: float,
    ) -> Reading | Absence:
        evidence = entry.workload.evidence(gpu)
        late = entry.workload.latency
        if ratio.basis is Basis.CAUTIOUS and abs(now - entry.since) < PATIENCE:
            if late is None or late <= 1:
                return Absence(LEARNING, f"{evidence:.0f} requests were seen so far")
            ratio = Ratio(late, Basis.LATENCY)
        text = describe_ratio(ratio, window, capacity, entry.workload.promise, evidence, late)
        return Reading(
            value=ratio.value,
            time=window.time,
            window=int(WINDOW),
            expires=window.time + oldest,
            devices=(),
            partial=False,
            note=text,
        )

    def _members(self, namespace: str, workload: Workload) -> Steps[Sequence[Pod]]:
        if workload.resource == PODS:
            pod = self._index.get(namespace, workload.name)
            return () if pod is None else (pod,)
        return (yield from self._index.owned_by_in_steps(namespace, *workload))

    def _peek(self, namespace: str, workload: Workload, promise: Promise) -> _Asked | None:
        entries = self._asked.get(namespace)
        return None if entries is None else entries.get((workload, promise))

    def _recall(self, namespace: str, workload: Workload, promise: Promise, now: float) -> _Asked:
        """Return what is known of a workload and a promise; new if nobody has asked before."""
        key = (workload, promise)
        entry = self._peek(namespace, workload, promise)
        if entry is None:
            self._prune(now)
            entries = self._asked.setdefault(namespace, OrderedDict())
            entry = entries[key] = _Asked(self._begin(promise), now)
            self._forget(entries)
            for gpu in self._gpus.get((namespace, workload, promise), ()):
                lesson = self._recalled[Topic(namespace, workload, promise, gpu)]
                entry.workload.recall(gpu, lesson, now)
        entry.at = now
        self._asked[namespace].move_to_end(key)
        return entry

    def _prune(self, now: float) -> None:
        """Drop values that are too old, and what nobody has asked for in a day."""
        for namespace, entries in tuple(self._asked.items()):
            for key, entry in tuple(entries.items()):
                if abs(now - entry.at) > _KEPT:
                    del entries[key]
                elif now >= entry.until:
                    entry.values = {}
            if not entries:
                del self._asked[namespace]

    def _forget(self, entries: OrderedDict[tuple[Workload, Promise], _Asked]) -> None:
        """Drop the oldest of a namespace that has too many, then of the one with the most."""
        if len(entries) > _OF_NAMESPACE:
            entries.popitem(last=False)
            self.forgotten += 1
        if self.size <= _OF_ALL:
            return
        self.forgotten += 1
        namespace = max(self._asked, key=lambda name: len(self._asked[name]))
        self._asked[namespace].popitem(last=False)
        if not self._asked[namespace]:
            del self._asked[namespace]


def _workload(pod: Pod) -> Workload:
    """Return the topmost workload of a pod; the pod itself if nothing owns it."""
    above = workloads(pod)
    return above[-1] if above else Workload(PODS, pod.name)


def _find_absence(
    pod: Pod, window: RequestWindow | None, promise: Promise, snapshot: Snapshot, now: float
) -> Absence | None:
    """Return why a pod's page does not say how its promise stands; None if it does."""
    if window is None:
        value = snapshot.pod(pod, RUNNING, EVERYTHING, now)
        return value if isinstance(value, Absence) else Absence(READING_BEGINS)
    for bound in promise:
        if bound.latency in window.latencies and window.latencies[bound.latency].bounds:
            continue
        value = snapshot.pod(pod, f"{bound.latency}_mean", EVERYTHING, now)
        if isinstance(value, Absence) and value.reason == READING_BEGINS:
            return value
        return Absence(
            NOT_MEASURED, f"no histogram of {bound.latency} on the page, for {bound.key}"
        )
    if load_of(window) is None:
        return Absence(NOT_MEASURED, "the page shows neither running nor waiting requests")
    return None

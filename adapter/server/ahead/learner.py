"""Learns the load of the workloads that somebody asks about, and says what it will not exceed.

A workload is followed from the first question for an expected metric of one of its pods. What is
learned comes from the values that ``serve`` serves and from its pods, and from no request: a
question only begins and keeps the learning, and each namespace has a fair share of the places.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from adapter.answers.api.aggregate import PodValue, find_missing
from adapter.answers.api.expectedpods import expected_pods
from adapter.answers.api.provider import Values
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog.names import Names
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import workloads
from adapter.pipeline.store.outlook import UNKNOWN, MeasuredValues, Rise
from adapter.server.ahead.expectation import Expectation
from adapter.server.ahead.workloadload import LoadKey, Present, WorkloadLoad
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import Steps, run_in_slices

EVERY: Final = 15.0
"""Seconds between two rounds."""
_MINUTE: Final = 60.0
_ASKED: Final = 3600.0
"""Seconds after the last question for which a workload is learned."""
_KEPT: Final = 7 * 86400.0
"""Seconds after the last question for which what was learned is kept."""
_CURRENT: Final = 300.0
"""Seconds for which an expectation may be served: rounds may be late, but not missing."""
_MOST: Final = 500
"""Workloads and metrics that are followed."""
_STEP: Final = 64
"""Pods that one step looks at."""


class Learner:
    """Implements :class:`adapter.pipeline.store.outlook.Outlook`.

    Args:
        names: the metrics.
        values: the current values.
        index: the pods.
        probability: with which a load should not exceed what is said.
        most: workloads and metrics that are followed.
    """

    def __init__(
        self,
        names: Names,
        values: Values,
        index: PodIndex,
        probability: float,
        most: int = _MOST,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._names = names
        self._values = values
        self._index = index
        self._probability = probability
        self._most = most
        self._clock = clock
        self.loads: dict[LoadKey, WorkloadLoad] = {}
        """What is followed."""

    def rise(self, values: MeasuredValues, pod: Pod, metric: str, now: float) -> Rise | Absence:
        """See :class:`adapter.pipeline.store.outlook.Outlook`."""
        above = workloads(pod)
        if not above:
            return Absence(UNKNOWN, "the pod has no controller")
        key = LoadKey(pod.namespace, *above[-1], metric)
        load = self.loads.get(key)
        if load is None:
            self._make_room(pod.namespace, now)
            load = self.loads[key] = WorkloadLoad(now)
        load.asked = now
        expectation = load.expectation
        if isinstance(expectation, str):
            return Absence(UNKNOWN, expectation)
        if abs(now - load.computed) > _CURRENT:
            return Absence(UNKNOWN, "it has not been computed for minutes")
        present = self._present_load(values, key, load, now)
        if not present.pods:
            return Absence(UNKNOWN, "no pod of the workload has a value")
        return Rise(max(0.0, expectation.most - present.total) / present.pods, expectation.text)

    async def run(self) -> None:
        """Learn until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await run_in_slices(self.round(self._clock()))

    def round(self, now: float) -> Steps[None]:
        """Look at each workload once, and once a minute say what its load will not exceed."""
        for key, load in tuple(self.loads.items()):
            silent = abs(now - load.asked)
            if silent > _KEPT:
                self.loads.pop(key, None)
            if silent > _ASKED:
                continue
            present = yield from self._observe_load(key, load, now)
            if present is not None:
                load.learn(present, now)
            yield
            if now // _MINUTE != load.computed // _MINUTE:
                load.compute(self._probability, now)
            yield

    def restore(self, stored: Mapping[LoadKey, WorkloadLoad], now: float) -> None:
        """Take over what is stored, as far as less is known here, and not what nobody has asked
        about for days."""
        for key, old in stored.items():
            if abs(now - old.asked) > _KEPT:
                continue
            if key in self.loads or len(self.loads) < self._most:
                load = self.loads.setdefault(key, WorkloadLoad(old.asked))
                load.take_over(old, now)

    def _observe_load(self, key: LoadKey, load: WorkloadLoad, now: float) -> Steps[Present | None]:
        """Return the load of a workload; None if a pod that should have a value has none."""
        metric = self._names.metrics.get(key.metric)
        if metric is None:
            return None
        pods = yield from self._index.owned_by_in_steps(key.namespace, key.resource, key.name)
        load.starts = load.starts.watch(pods, now)
        snapshot = self._values.snapshot
        expected = yield from expected_pods(pods, metric, snapshot)
        values: list[PodValue] = []
        for number, pod in enumerate(expected):
            values.append(PodValue(pod, snapshot.pod(pod, metric.name, EVERYTHING, now)))
            if number % _STEP == 0:
                yield
        readings = [row.value for row in values if isinstance(row.value, Reading)]
        lacking = yield from find_missing(values, expected)
        if lacking or not readings:
            return None
        return Present(sum(reading.value for reading in readings), len(readings))

    def _present_load(
        self, values: MeasuredValues, key: LoadKey, load: WorkloadLoad, now: float
    ) -> Present:
        """Return the load in the values that are asked about: once for all pods of a query."""
        if load.seen is not None and load.seen[0]() is values:
            return load.seen[1]
        total, count = 0.0, 0
        for pod in self._index.owned_by(key.namespace, key.resource, key.name):
            if pod.deleting:
                continue
            reading = values.pod(pod, key.metric, EVERYTHING, now)
            if isinstance(reading, Reading):
                total, count = total + reading.value, count + 1
        present = Present(total, count)
        load.seen = (weakref.ref(values), present)
        return present

    def _make_room(self, namespace: str, now: float) -> None:
        """Drop what was asked about least recently: of what is no longer learned, or else of the
        namespace that has most."""
        if len(self.loads) < self._most:
            return
        oldest = min(self.loads, key=lambda key: self.loads[key].asked)
        if now - self.loads[oldest].asked > _ASKED:
            del self.loads[oldest]
            return
        counts = Counter(key.namespace for key in self.loads)
        counts[namespace] += 1
        largest = max(counts, key=lambda name: counts[name])
        of_it = [key for key in self.loads if key.namespace == largest]
        if of_it:
            del self.loads[min(of_it, key=lambda key: self.loads[key].asked)]

    def count_expectations(self) -> Mapping[str, int]:
        """Return how many loads have a stated probability, the present load, or nothing yet."""
        counts: Counter[str] = Counter()
        for load in self.loads.values():
            kind = load.expectation
            if isinstance(kind, Expectation):
                counts["stated" if kind.stated else "present"] += 1
            else:
                counts["unknown"] += 1
        return counts

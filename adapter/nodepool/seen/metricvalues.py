"""Read the values of HPAs' metrics through the metrics APIs, as the HPA controller does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from adapter.hpa import MetricKind, MetricSpec, Missing, Values
from adapter.nodepool.model.apicall import ApiCall
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.seen.targets import ScaleTarget
from adapter.pipeline.cluster.metricsapi import (
    NEWEST,
    GarbledAnswerError,
    pods_path,
    read_values,
    value_path,
)
from apiservice.kube.client import ClusterAnswerError

_AT_ONCE: Final = 8
"""Concurrent requests: priority and fairness of the API server would delay more from one user."""


class MetricValues:
    """Requests the values of many targets concurrently, in bounded time."""

    def __init__(self, call: ApiCall) -> None:
        self._call = call
        self.version = NEWEST
        """Version of custom.metrics.k8s.io: v1beta2 if it is served, else v1beta1."""
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.failures: Counter[str] = Counter()
        """Reason -> answers without a value."""

    async def read(
        self, targets: Sequence[ScaleTarget], seconds: float
    ) -> Mapping[WorkloadRef, tuple[Values, ...]]:
        """Return target -> values of its metrics, in the order of its spec.

        Errors and values that do not arrive within ``seconds`` are :class:`Missing`.
        """
        wanted = [(target, metric) for target in targets for metric in target.readable.spec.metrics]
        answers = await self._wait_for_answers(seconds, [self._read(*pair) for pair in wanted])
        by_workload: dict[WorkloadRef, list[Values]] = {}
        for (target, _), values in zip(wanted, answers, strict=True):
            by_workload.setdefault(target.workload, []).append(values)
        return {workload: tuple(values) for workload, values in by_workload.items()}

    async def pods(
        self, namespaces: Iterable[str], metric: str, seconds: float
    ) -> Mapping[str, Mapping[str, float]]:
        """Return a Pods metric for all pods of some namespaces: namespace -> pod -> value.

        A namespace without an answer within ``seconds`` has no entry.
        """

        async def read_namespace(namespace: str) -> Values:
            async with self._slots:
                path = pods_path(namespace, metric, version=self.version)
                return await self._ask(MetricKind.PODS, path)

        all_namespaces = list(namespaces)
        answers = await self._wait_for_answers(seconds, map(read_namespace, all_namespaces))
        return {
            namespace: {name: milli / 1000 for name, milli in values.items()}
            for namespace, values in zip(all_namespaces, answers, strict=True)
            if isinstance(values, Mapping)
        }

    async def _wait_for_answers(
        self, seconds: float, questions: Iterable[Coroutine[Any, Any, Values]]
    ) -> list[Values]:
        """Return the answers in the order of the requests. Late answers are missing."""
        tasks = [asyncio.create_task(question) for question in questions]
        if not tasks:
            return []
        try:
            await asyncio.wait(tasks, timeout=seconds)
        finally:
            late = [task for task in tasks if not task.done()]
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if late:
            self.failures["late"] += len(late)
        return [
            Missing("no answer in time") if task.cancelled() else task.result() for task in tasks
        ]

    async def _read(self, target: ScaleTarget, metric: MetricSpec) -> Values:
        try:
            namespace = target.workload.namespace
            path = value_path(metric, target.selector, namespace, self.version)
        except (KeyError, ValueError) as error:
            # The API server does not validate the selector of a metric.
            self.failures["selector"] += 1
            return Missing(f"metric {metric.name}: invalid selector: {error}")
        async with self._slots:
            return await self._ask(metric.kind, path)

    async def _ask(self, kind: MetricKind, path: str) -> Values:
        try:
            values = read_values(await self._call("GET", path))
        except ClusterAnswerError as error:
            self.failures[str(error.status) if error.status else "unreachable"] += 1
            return Missing(str(error))
        except GarbledAnswerError as error:
            self.failures["garbled"] += 1
            return Missing(f"GET {path}: {error}")
        if kind is MetricKind.PODS:
            return {value.name: value.milli for value in values}
        if kind is MetricKind.EXTERNAL:
            return tuple(value.milli for value in values)
        return values[0].milli if values else Missing(f"GET {path}: no value")

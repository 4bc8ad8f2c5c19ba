"""Read the values of HPAs' metrics through the metrics APIs, as the HPA controller does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from adapter.hpa import MetricKind, MetricSpec, Missing, Values, quantity
from adapter.nodepool.model.apicall import ApiCall
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.seen.meta import resource_of
from adapter.nodepool.seen.targets import ScaleTarget
from apiservice.kube.client import ClusterAnswerError
from apiservice.labels.manifest import selector_text

CUSTOM: Final = "/apis/custom.metrics.k8s.io"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
_AT_ONCE: Final = 8
"""Concurrent requests: priority and fairness of the API server would delay more from one user."""


class _Object(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct, rename="camel"):
    value: str | int | float
    described_object: _Object = msgspec.field(default_factory=_Object)


class _List(msgspec.Struct):
    items: list[_Item]


_list = msgspec.json.Decoder(_List)


def read_values(body: bytes) -> list[tuple[str, int]]:
    """Return the objects' names and values in thousandths, from the JSON of a list of values.

    Raises:
        msgspec.DecodeError: it is not such a list.
        ValueError: a value is not a quantity.
    """
    return [
        (item.described_object.name, quantity.to_milli(quantity.parse(item.value)))
        for item in _list.decode(body).items
    ]


class MetricValues:
    """Requests the values of many targets concurrently, in bounded time."""

    def __init__(self, call: ApiCall) -> None:
        self._call = call
        self.version = "v1beta2"
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
        answers = await self._within(seconds, [self._read(*each) for each in wanted])
        found: dict[WorkloadRef, list[Values]] = {}
        for (target, _), values in zip(wanted, answers, strict=True):
            found.setdefault(target.workload, []).append(values)
        return {workload: tuple(values) for workload, values in found.items()}

    async def pods(
        self, namespaces: Iterable[str], metric: str, seconds: float
    ) -> Mapping[str, Mapping[str, float]]:
        """Return a Pods metric for all pods of some namespaces: namespace -> pod -> value.

        A namespace without an answer within ``seconds`` has no entry.
        """

        async def one(namespace: str) -> Values:
            async with self._slots:
                path = _path(f"{CUSTOM}/{self.version}", {}, namespace, "pods", "*", metric)
                return await self._ask(MetricKind.PODS, path)

        asked = list(namespaces)
        answers = await self._within(seconds, map(one, asked))
        return {
            namespace: {name: milli / 1000 for name, milli in values.items()}
            for namespace, values in zip(asked, answers, strict=True)
            if isinstance(values, Mapping)
        }

    async def _within(
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
            path = path_of(target, metric, self.version)
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
        except (msgspec.DecodeError, ValueError) as error:
            self.failures["garbled"] += 1
            return Missing(f"GET {path}: the answer is not a list of values: {error}")
        if kind is MetricKind.PODS:
            return dict(values)
        if kind is MetricKind.EXTERNAL:
            return tuple(milli for _, milli in values)
        return values[0][1] if values else Missing(f"GET {path}: no value")


def path_of(target: ScaleTarget, metric: MetricSpec, version: str) -> str:
    """Return the path at which the HPA controller requests a metric
    (``k8s.io/kubernetes/pkg/controller/podautoscaler/metrics/client.go``)."""
    namespace, custom = target.workload.namespace, f"{CUSTOM}/{version}"
    selector, described = selector_text(metric.selector), metric.described
    if metric.kind is MetricKind.EXTERNAL:
        return _path(EXTERNAL, {"labelSelector": selector}, namespace, metric.name)
    query = {"metricLabelSelector": selector}
    if metric.kind is MetricKind.PODS or described is None:
        query["labelSelector"] = target.selector
        return _path(custom, query, namespace, "pods", "*", metric.name)
    if described.kind == "Namespace":
        return _path(custom, query, described.name, "metrics", metric.name)
    resource = resource_of(described.api_version, described.kind)
    named = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    return _path(custom, query, namespace, named, described.name, metric.name)


def _path(root: str, query: Mapping[str, str], *parts: str) -> str:
    path = "/".join(quote(part, safe="") for part in parts)
    given = urlencode({key: value for key, value in query.items() if value})
    return f"{root}/namespaces/{path}" + (f"?{given}" if given else "")

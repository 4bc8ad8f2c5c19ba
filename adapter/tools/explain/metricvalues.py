"""The values that an HPA controller reads for a metric, read with the caller's rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.hpa import (
    MetricKind,
    MetricSpec,
    Missing,
    ResourceSample,
    ResourceUsage,
    TargetKind,
    Values,
)
from adapter.pipeline.cluster.metricsapi import (
    OLDER,
    AnsweredValue,
    GarbledAnswerError,
    read_values,
    value_path,
)
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.words import seconds, to_milli
from apiservice.wire import instant

RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
_UNREADABLE: Final = (401, 403)
_NO_TIME: Final = -62135596800.0
"""The epoch seconds of Go's zero time: what the controller decodes without a timestamp."""


class Sampled(NamedTuple):
    """When a value was measured."""

    time: float | None
    """Epoch seconds; None if the answer does not say."""
    window: int | None
    """Seconds of its window; None for a newest value, and if the answer does not say."""


@dataclass(frozen=True, slots=True)
class ReadValues:
    """What the API returned for one metric."""

    values: Values | None
    """None if the caller cannot read it; the HPA controller may be able to."""
    problem: ClientError | None = None
    """Why the caller cannot read it, or what the API answered instead of values."""
    sampled: Mapping[str, Sampled] = field(default_factory=dict)
    """Pod name -> when its value was measured."""


async def read(
    api: Api, metric: MetricSpec, selector: str, pods: Sequence[Json], namespace: str
) -> ReadValues:
    """Return the values of a metric.

    Args:
        api: the cluster.
        metric: of the HPA.
        selector: of the scale target's pods.
        pods: the manifests of these pods.
        namespace: of the HPA.
    """
    try:
        if metric.kind.of_resources:
            return await _resource(api, metric, selector, pods, namespace)
        return _read(metric, await _values(api, metric, selector, namespace))
    except ClientError as error:
        if error.status in _UNREADABLE or error.status == 0:
            return ReadValues(None, error)
        return ReadValues(Missing(error.answer), error)
    except GarbledAnswerError as error:
        return ReadValues(Missing(f"the answer of the metrics API is not valid: {error}"))
    except (KeyError, ValueError) as error:
        return ReadValues(Missing(f"the selector of the metric is not valid: {error}"))


async def _values(
    api: Api, metric: MetricSpec, selector: str, namespace: str
) -> list[AnsweredValue]:
    path = value_path(metric, selector, namespace)
    try:
        return read_values(await api.get(path))
    except ClientError as error:
        # An adapter that serves v1beta1 only.
        if error.status != 404 or "requested resource" not in error.answer:
            raise
    return read_values(await api.get(value_path(metric, selector, namespace, OLDER)))


def _read(metric: MetricSpec, values: Sequence[AnsweredValue]) -> ReadValues:
    sampled = {value.name: Sampled(value.time, value.window) for value in values}
    if metric.kind is MetricKind.PODS:
        return ReadValues({value.name: value.milli for value in values}, sampled=sampled)
    if metric.kind is MetricKind.EXTERNAL:
        return ReadValues([value.milli for value in values], sampled=sampled)
    if not values:
        return ReadValues(Missing("no value in the answer"))
    return ReadValues(values[0].milli, sampled=sampled)


async def _resource(
    api: Api, metric: MetricSpec, selector: str, pods: Sequence[Json], namespace: str
) -> ReadValues:
    query = urlencode({"labelSelector": selector})
    answer = await api.get(f"{RESOURCE}/namespaces/{quote(namespace)}/pods?{query}")
    rows = [row for row in answer.get("items") or () if isinstance(row, dict)]
    if not rows:
        nothing = "no metrics returned from resource metrics API"
        return ReadValues(Missing(nothing, answered=True))
    samples: dict[str, ResourceSample] = {}
    sampled: dict[str, Sampled] = {}
    for row in rows:
        name = str(row["metadata"]["name"])
        time, window = _time(row, name), _window(row, name)
        containers = row.get("containers") or []
        if metric.container:
            # A pod without the container has no value, as the controller of 1.36 has it.
            containers = [part for part in containers if part.get("name") == metric.container]
        usages = [part.get("usage") or {} for part in containers]
        if usages and all(metric.name in usage for usage in usages):
            used = sum(_quantity(usage[metric.name], name) for usage in usages)
            moment = _NO_TIME if time is None else time
            samples[name] = ResourceSample(used, moment, 0.0 if window is None else window)
            sampled[name] = Sampled(time, None if window is None else int(window))
    requests, problem = requests_of(pods, metric)
    return ReadValues(ResourceUsage(samples, requests, problem), sampled=sampled)


def _quantity(value: object, name: str) -> int:
    quantity = to_milli(value)
    if quantity is None:
        raise GarbledAnswerError(f"the value of {name}, {value!r}, is not a quantity")
    return quantity


def _time(row: Json, name: str) -> float | None:
    """Return the timestamp of a row; None without one."""
    stamp = row.get("timestamp")
    moment = instant.read(stamp)
    if stamp is not None and moment is None:
        raise GarbledAnswerError(f"the timestamp of {name}, {stamp!r}, is not a time")
    return moment


def _window(row: Json, name: str) -> float | None:
    """Return the seconds of a row's window; None without one, which the controller takes as 0."""
    if "window" not in row:
        return None
    window = seconds(row["window"])
    if window is None:
        raise GarbledAnswerError(f"the window of {name}, {row['window']!r}, is not a duration")
    return window


def requests_of(pods: Sequence[Json], metric: MetricSpec) -> tuple[dict[str, int], str]:
    """Return what each pod requests, or the first request that is missing.

    As ``calculateRequests`` of the HPA controller adds it up. A request that is not a quantity
    counts as missing.

    Args:
        pods: manifests.
        metric: of the HPA. Only a Utilization target needs requests.
    """
    if metric.target.kind is not TargetKind.UTILIZATION:
        return {}, ""
    requests: dict[str, int] = {}
    for pod in pods:
        name, spec = str(pod["metadata"]["name"]), pod.get("spec") or {}
        parts = [
            (f"container {row.get('name')} of Pod", row)
            for row in _counted_containers(spec, metric)
        ]
        if not metric.container and metric.name in _declared_requests(spec):
            parts = [("Pod", spec)]
        total = 0
        for what, owner in parts:
            amount = _declared_requests(owner).get(metric.name)
            wanted = None if amount is None else to_milli(amount)
            if wanted is None:
                why = "" if amount is None else f": {amount!r} is not a quantity"
                return {}, f"missing request for {metric.name} in {what} {name}{why}"
            total += wanted
        requests[name] = total
    return requests, ""


def _declared_requests(owner: Json) -> Json:
    return (owner.get("resources") or {}).get("requests") or {}


def _counted_containers(spec: Json, metric: MetricSpec) -> list[Json]:
    """Return the containers and sidecars whose requests count."""
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    rows = [*(spec.get("containers") or ()), *sidecars]
    return [row for row in rows if not metric.container or row.get("name") == metric.container]

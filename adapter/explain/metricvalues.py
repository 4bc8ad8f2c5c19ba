"""The values that an HPA controller reads for a metric, read with the caller's rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.client.access import Api, Json
from adapter.client.errors import ClientError
from adapter.cluster.workload import plural
from adapter.explain.podrequests import requests_of
from adapter.explain.words import seconds, to_milli
from adapter.hpa import (
    MetricKind,
    MetricSpec,
    Missing,
    ResourceSample,
    ResourceUsage,
    Values,
)
from apiservice.labels.manifest import selector_text
from apiservice.wire import instant

CUSTOM: Final = "/apis/custom.metrics.k8s.io"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
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


class _UnreadableError(Exception):
    """The controller cannot decode a field of the answer, so it rejects the whole answer."""


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
        return _parsed(metric, await _rows(api, metric, selector, namespace))
    except ClientError as error:
        if error.status in _UNREADABLE or error.status == 0:
            return ReadValues(None, error)
        return ReadValues(Missing(error.answer), error)
    except _UnreadableError as error:
        return ReadValues(Missing(f"the answer of the metrics API is not valid: {error}"))
    except (KeyError, ValueError) as error:
        return ReadValues(Missing(f"the selector of the metric is not valid: {error}"))


async def _rows(api: Api, metric: MetricSpec, selector: str, namespace: str) -> list[Json]:
    rest = value_path(metric, selector, namespace)
    if metric.kind is MetricKind.EXTERNAL:
        return items_of(await api.get(f"{EXTERNAL}/{rest}"))
    return items_of(await _custom(api, rest))


def value_path(metric: MetricSpec, selector: str, namespace: str) -> str:
    """Return the path, below the API's version, that the controller asks for a metric's values.

    Args:
        metric: of type Pods, Object or External.
        selector: of the scale target's pods.
        namespace: of the HPA.

    Raises:
        KeyError, ValueError: the metric's selector is not valid.
    """
    chosen = selector_text(metric.selector)
    if metric.kind is MetricKind.EXTERNAL:
        query = {"labelSelector": chosen} if chosen else {}
        return _with(f"namespaces/{quote(namespace)}/{quote(metric.name, safe='')}", query)
    query = {"metricLabelSelector": chosen} if chosen else {}
    described = metric.described
    name = quote(metric.name, safe="")
    if metric.kind is MetricKind.PODS or described is None:
        query["labelSelector"] = selector
        path = f"namespaces/{quote(namespace)}/pods/%2A/{name}"
    elif described.kind == "Namespace" and "/" not in described.api_version:
        path = f"namespaces/{quote(namespace)}/metrics/{name}"
    else:
        group, _, _ = described.api_version.rpartition("/")
        kind = plural(described.kind)
        resource = f"{kind}.{group}" if group else kind
        resource = quote(resource, safe="")
        path = f"namespaces/{quote(namespace)}/{resource}/{quote(described.name, safe='')}/{name}"
    return _with(path, query)


async def _custom(api: Api, rest: str) -> Json:
    """Ask v1beta2, or v1beta1 of an adapter that serves only that."""
    try:
        return await api.get(f"{CUSTOM}/v1beta2/{rest}")
    except ClientError as error:
        if error.status != 404 or "requested resource" not in error.answer:
            raise
    return await api.get(f"{CUSTOM}/v1beta1/{rest}")


def _parsed(metric: MetricSpec, rows: Sequence[Json]) -> ReadValues:
    found: list[tuple[str, int]] = []
    sampled = {}
    for row in rows:
        name = str((row.get("describedObject") or {}).get("name") or "")
        found.append((name, _quantity(row.get("value"), name or metric.name)))
        window = row.get("windowSeconds", row.get("window"))
        length = int(window) if isinstance(window, int) else None
        sampled[name] = Sampled(_time(row, name or metric.name), length)
    if metric.kind is MetricKind.PODS:
        return ReadValues(dict(found), sampled=sampled)
    if metric.kind is MetricKind.EXTERNAL:
        return ReadValues([value for _, value in found], sampled=sampled)
    if not found:
        return ReadValues(Missing("no value in the answer"))
    return ReadValues(found[0][1], sampled=sampled)


async def _resource(
    api: Api, metric: MetricSpec, selector: str, pods: Sequence[Json], namespace: str
) -> ReadValues:
    path = _with(f"{RESOURCE}/namespaces/{quote(namespace)}/pods", {"labelSelector": selector})
    rows = items_of(await api.get(path))
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
            containers = [each for each in containers if each.get("name") == metric.container]
        usages = [each.get("usage") or {} for each in containers]
        if usages and all(metric.name in usage for usage in usages):
            used = sum(_quantity(usage[metric.name], name) for usage in usages)
            at = _NO_TIME if time is None else time
            samples[name] = ResourceSample(used, at, 0.0 if window is None else window)
            sampled[name] = Sampled(time, None if window is None else int(window))
    requests, problem = requests_of(pods, metric)
    return ReadValues(ResourceUsage(samples, requests, problem), sampled=sampled)


def _quantity(value: object, name: str) -> int:
    found = to_milli(value)
    if found is None:
        raise _UnreadableError(f"the value of {name}, {value!r}, is not a quantity")
    return found


def _time(row: Json, name: str) -> float | None:
    """Return the timestamp of a row; None without one."""
    stamp = row.get("timestamp")
    found = instant.read(stamp)
    if stamp is not None and found is None:
        raise _UnreadableError(f"the timestamp of {name}, {stamp!r}, is not a time")
    return found


def _window(row: Json, name: str) -> float | None:
    """Return the seconds of a row's window; None without one, which the controller takes as 0."""
    if "window" not in row:
        return None
    found = seconds(row["window"])
    if found is None:
        raise _UnreadableError(f"the window of {name}, {row['window']!r}, is not a duration")
    return found


def items_of(answer: Json) -> list[Json]:
    """Return the rows of an answer; none if it has no list."""
    rows = answer.get("items") or []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _with(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(query)}" if query else path

"""The values that an HPA controller reads for a metric, read with the caller's rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.client.access import Api, Json
from adapter.client.errors import ClientError
from adapter.cluster.workload import plural
from adapter.explain.words import to_milli
from adapter.hpa import (
    MetricKind,
    MetricSpec,
    Missing,
    ResourceSample,
    ResourceUsage,
    TargetKind,
    Values,
)
from apiservice.labels.manifest import selector_text
from apiservice.wire import instant

CUSTOM: Final = "/apis/custom.metrics.k8s.io"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
_UNREADABLE: Final = (401, 403)


class Sampled(NamedTuple):
    """When a value was measured."""

    time: float | None
    window: int | None
    """Seconds of its window; None for a newest value."""


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
        rows = await _rows(api, metric, selector, namespace)
    except ClientError as error:
        if error.status in _UNREADABLE or error.status == 0:
            return ReadValues(None, error)
        return ReadValues(Missing(error.answer), error)
    except (KeyError, ValueError) as error:
        return ReadValues(Missing(f"the selector of the metric is not valid: {error}"))
    return _parsed(metric, rows)


async def _rows(api: Api, metric: MetricSpec, selector: str, namespace: str) -> list[Json]:
    chosen = selector_text(metric.selector)
    if metric.kind is MetricKind.EXTERNAL:
        query = {"labelSelector": chosen} if chosen else {}
        path = f"{EXTERNAL}/namespaces/{quote(namespace)}/{quote(metric.name, safe='')}"
        return _items(await api.get(_with(path, query)))
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
    return _items(await _custom(api, _with(path, query)))


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
        value = to_milli(row.get("value"))
        if value is None:
            continue
        name = str((row.get("describedObject") or {}).get("name") or "")
        found.append((name, value))
        window = row.get("windowSeconds", row.get("window"))
        seconds = int(window) if isinstance(window, int) else None
        sampled[name] = Sampled(instant.read(row.get("timestamp")), seconds)
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
    rows = _items(await api.get(path))
    if not rows:
        nothing = "no metrics returned from resource metrics API"
        return ReadValues(Missing(nothing, answered=True))
    samples: dict[str, ResourceSample] = {}
    for row in rows:
        name = str(row["metadata"]["name"])
        containers = row.get("containers") or []
        if metric.container:
            # A pod without the container has no value, as the controller of 1.36 has it.
            containers = [each for each in containers if each.get("name") == metric.container]
        used = [to_milli((each.get("usage") or {}).get(metric.name)) for each in containers]
        known = [value for value in used if value is not None]
        if known and len(known) == len(used):
            at, window = instant.read(row.get("timestamp")) or 0.0, _seconds(row.get("window"))
            samples[name] = ResourceSample(sum(known), at, window)
    requests, problem = _requests(pods, metric)
    sampled = {name: Sampled(each.time, int(each.window)) for name, each in samples.items()}
    return ReadValues(ResourceUsage(samples, requests, problem), sampled=sampled)


def _requests(pods: Sequence[Json], metric: MetricSpec) -> tuple[dict[str, int], str]:
    """calculateRequests: what each pod requests, and the first request that is missing."""
    if metric.target.kind is not TargetKind.UTILIZATION:
        return {}, ""
    requests: dict[str, int] = {}
    for pod in pods:
        name, spec = str(pod["metadata"]["name"]), pod.get("spec") or {}
        whole = ((spec.get("resources") or {}).get("requests") or {}).get(metric.name)
        if whole is not None and not metric.container:
            requests[name] = to_milli(whole) or 0
            continue
        total = 0
        for container in _counted(spec, metric.container):
            wanted = ((container.get("resources") or {}).get("requests") or {}).get(metric.name)
            if wanted is None:
                text = (
                    f"missing request for {metric.name} in container {container.get('name')} "
                    f"of Pod {name}"
                )
                return {}, text
            total += to_milli(wanted) or 0
        requests[name] = total
    return requests, ""


def _counted(spec: Json, only: str) -> list[Json]:
    """Return the containers and sidecars whose requests count."""
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    rows = [*(spec.get("containers") or ()), *sidecars]
    return [row for row in rows if not only or row.get("name") == only]


def _items(answer: Json) -> list[Json]:
    rows = answer.get("items") or []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _with(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _seconds(window: object) -> float:
    """Return the seconds of a Go duration of minutes and seconds; a minute if it is none."""
    if not isinstance(window, str):
        return 60.0
    total, digits = 0.0, ""
    for character in window:
        if character.isdigit() or character == ".":
            digits += character
        elif digits:
            factor = {"h": 3600.0, "m": 60.0, "s": 1.0}.get(character, 0.0)
            total, digits = total + float(digits) * factor, ""
    return total or 60.0

"""A custom, external and resource metrics API whose answers a test sets, without checks.

It replaces an adapter, so that only the HPA controller is measured.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import uvicorn

from adapter.hpa import Missing, ResourceSample, ResourceUsage, Values
from tests.e2e.certificates import KeyPair
from tests.e2e.process import free_port, wait_until

CUSTOM = "custom.metrics.k8s.io/v1beta2"
EXTERNAL = "external.metrics.k8s.io/v1beta1"
RESOURCE = "metrics.k8s.io/v1beta1"
_TIME = "2026-01-02T03:04:05Z"


class MetricsApi:
    """Serves on loopback until stopped. ``values`` is namespace -> metric name -> values."""

    def __init__(self, serving: KeyPair) -> None:
        self.port = free_port()
        self.values: dict[str, dict[str, Values]] = {}
        self.asked: Counter[tuple[str, str]] = Counter()
        """(namespace, metric name in lower case) -> requests so far."""
        config = uvicorn.Config(
            self._serve,
            host="127.0.0.1",
            port=self.port,
            ssl_certfile=serving.cert,
            ssl_keyfile=serving.key,
            http="httptools",
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_level="error",
            timeout_keep_alive=120,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="metrics api", daemon=True)

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()
        wait_until(lambda: self._server.started, "the metrics API listens", 10, 0.02)

    def stop(self) -> None:
        """Stop serving, without waiting for the aggregator's idle connections."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return status and body for a decoded path."""
        group, _, rest = path.removeprefix("/apis/").partition("/namespaces/")
        if not rest:
            return _discovery(path)
        parts = rest.split("/")
        namespace, name = parts[0], parts[-1]
        if group == RESOURCE:
            return self._resource(namespace)
        self.asked[namespace, name.lower()] += 1
        by_name = {key.lower(): value for key, value in self.values.get(namespace, {}).items()}
        values = by_name.get(name.lower(), Missing(f"{name} was never set"))
        if isinstance(values, Missing):
            return 404, _not_found(values.message)
        if group == EXTERNAL:
            series = values if isinstance(values, (list, tuple)) else ()
            return 200, _list("ExternalMetricValueList", EXTERNAL, [_row(name, v) for v in series])
        return 200, _list("MetricValueList", CUSTOM, _objects(namespace, parts, name, values))

    def _resource(self, namespace: str) -> tuple[int, dict[str, Any]]:
        """Answer with the usage of the namespace's one resource metric."""
        for name in ("cpu", "memory"):
            if (values := self.values.get(namespace, {}).get(name)) is None:
                continue
            self.asked[namespace, name] += 1
            if isinstance(values, Missing) and not values.answered:
                return 404, _not_found(values.message)
            return 200, _list("PodMetricsList", RESOURCE, _pod_metrics(namespace, name, values))
        return 404, _not_found("no resource was ever set")

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        status, body = self.answer(scope["path"].rstrip("/"))
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def _not_found(message: str) -> dict[str, Any]:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return head | {"message": message, "reason": "NotFound", "code": 404}


def _pod_metrics(namespace: str, name: str, values: Values) -> list[dict[str, Any]]:
    """One container called main in each pod; an answered Missing is an empty answer."""
    if isinstance(values, Missing):
        return []
    if not isinstance(values, ResourceUsage):
        return []
    if not values.samples:
        # A pod that has no sample of the container that the case asks for.
        values = ResourceUsage({"p0": ResourceSample(1, 0.0, 30.0)}, {})
    return [
        {
            "metadata": {"name": pod, "namespace": namespace},
            "timestamp": datetime.fromtimestamp(sample.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "window": f"{sample.window:g}s",
            "containers": [{"name": "main", "usage": {name: f"{sample.milli}m"}}],
        }
        for pod, sample in values.samples.items()
    ]


def _objects(namespace: str, parts: list[str], name: str, values: Values) -> list[dict[str, Any]]:
    if isinstance(values, int):
        kind, described = ("Namespace", namespace) if len(parts) == 3 else ("Service", parts[2])
        return [_item(kind, namespace, described, name, values)]
    if not isinstance(values, Mapping):
        return []
    return [_item("Pod", namespace, pod, name, milli) for pod, milli in values.items()]


def _item(kind: str, namespace: str, described: str, name: str, milli: int) -> dict[str, Any]:
    about = {"kind": kind, "namespace": namespace, "name": described, "apiVersion": "v1"}
    metric = {"name": name, "selector": None}
    return {"describedObject": about, "metric": metric, "timestamp": _TIME, "value": f"{milli}m"}


def _row(name: str, milli: int) -> dict[str, Any]:
    return {"metricName": name, "metricLabels": {}, "timestamp": _TIME, "value": f"{milli}m"}


def _list(kind: str, version: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": items}


def _discovery(path: str) -> tuple[int, dict[str, Any]]:
    """Answer the probes. Every path except a group-version is 404, which clients tolerate."""
    version = path.removeprefix("/apis/")
    kinds = {
        CUSTOM: ("pods/gpu", "MetricValueList"),
        EXTERNAL: ("queue", "ExternalMetricValueList"),
        RESOURCE: ("pods", "PodMetrics"),
    }
    if version not in kinds:
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
    name, kind = kinds[version]
    row: dict[str, Any] = {"name": name, "singularName": "", "namespaced": True, "kind": kind}
    row["verbs"] = ["get", "list"]
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
    return 200, body | {"resources": [row]}

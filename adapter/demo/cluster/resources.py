"""The resources of the demo's API server: their names, their columns, and their objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from adapter.demo.certificates import CLIENT_NAME, FrontProxy
from adapter.demo.cluster import columns
from adapter.demo.cluster.events import events
from adapter.demo.cluster.hpas import hpas
from adapter.demo.cluster.nodes import SYSTEM, namespaces, nodes
from adapter.demo.cluster.snapshot import all_pods
from adapter.demo.cluster.workloads import daemonsets, deployments, replicasets
from adapter.demo.manifests import EXPORTER_NAMESPACE, identity
from adapter.demo.state import DemoState
from apiservice.runtime.steps import Steps
from apiservice.view.resource import (
    Cell,
    Column,
    Key,
    ServedResource,
    ViewGroup,
    ViewResource,
)

Json = dict[str, Any]
NAME: Final = "gpu-metrics-adapter"
_APIS: Final = (
    ("custom.metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("view.gpu-metrics-adapter.io", "v1alpha1"),
)


def configmaps(state: DemoState, proxy: FrontProxy) -> Iterator[Json]:
    """Yield the ConfigMap from which ``serve`` would learn the front proxy's CA in a cluster."""
    name = "extension-apiserver-authentication"
    yield {
        "metadata": {
            "name": name,
            "namespace": SYSTEM,
            "uid": identity("configmap", name, SYSTEM),
            "creationTimestamp": state.times.text(state.world.start),
        },
        "data": {
            "requestheader-client-ca-file": proxy.ca.read_text(encoding="ascii"),
            "requestheader-allowed-names": json.dumps([CLIENT_NAME]),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


def apiservices(state: DemoState, proxy: FrontProxy) -> Iterator[Json]:
    """Yield the registrations of the APIs that ``serve`` answers."""
    for group, version in _APIS:
        name = f"{version}.{group}"
        yield {
            "metadata": {
                "name": name,
                "uid": identity("apiservice", name),
                "creationTimestamp": state.times.text(state.world.start),
                "labels": {"app.kubernetes.io/name": NAME},
            },
            "spec": {
                "group": group,
                "version": version,
                "service": {"namespace": EXPORTER_NAMESPACE, "name": NAME, "port": 443},
                "caBundle": base64.b64encode(proxy.ca.read_bytes()).decode(),
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
            "status": {
                "conditions": [
                    {
                        "type": "Available",
                        "status": "True",
                        "reason": "Passed",
                        "message": "all checks passed",
                        "lastTransitionTime": state.times.text(state.world.start),
                    }
                ]
            },
        }


class Objects:
    """Implements :class:`apiservice.view.resource.ViewProvider` with whole manifests.

    Args:
        make: returns the manifests of now.
        cells: returns the cells of a manifest at epoch seconds.
        fields: selectable field -> path in the manifest.
    """

    def __init__(
        self,
        make: Callable[[], Iterable[Json]],
        cells: Callable[[Json, float], Sequence[Cell]],
        fields: Mapping[str, str],
    ) -> None:
        self._make = make
        self._cells = cells
        self._fields = {field: path.split(".") for field, path in fields.items()}
        self._found: dict[Key, Json] = {}

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        self._refresh()
        yield
        return sorted(key for key in self._found if namespace in (None, key.namespace))

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        self._refresh()
        yield

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        labels: Mapping[str, str] = self._found.get(key, {}).get("metadata", {}).get("labels", {})
        return labels

    def fields(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        row = self._found.get(key, {})
        return {field: _text(row, path) for field, path in self._fields.items()}

    def cells(self, key: Key, now: float) -> Sequence[Cell] | None:
        """See the port."""
        row = self._found.get(key)
        return None if row is None else self._cells(row, now)

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        return self._found.get(key)

    def _refresh(self) -> None:
        self._found = {
            Key(row["metadata"].get("namespace", ""), row["metadata"]["name"]): row
            for row in self._make()
        }


def groups(state: DemoState, proxy: FrontProxy) -> tuple[ViewGroup, ...]:
    """Return what the API server serves of the simulation."""
    return (
        ViewGroup(
            "",
            "v1",
            (
                _serve_resource(_NAMESPACES, columns.namespace, partial(namespaces, state)),
                _serve_resource(_NODES, columns.node, partial(nodes, state)),
                _serve_resource(_PODS, columns.pod, partial(all_pods, state), _POD_FIELDS),
                _serve_resource(_EVENTS, columns.event, partial(events, state), _EVENT_FIELDS),
                _serve_resource(_CONFIGMAPS, columns.none, partial(configmaps, state, proxy)),
            ),
        ),
        ViewGroup(
            "apps",
            "v1",
            (
                _serve_resource(_DEPLOYMENTS, columns.deployment, partial(deployments, state)),
                _serve_resource(_REPLICASETS, columns.replicaset, partial(replicasets, state)),
                _serve_resource(_DAEMONSETS, columns.daemonset, partial(daemonsets, state)),
                _serve_resource(_STATEFULSETS, columns.none, tuple),
            ),
        ),
        ViewGroup("batch", "v1", (_serve_resource(_JOBS, columns.none, tuple),)),
        ViewGroup("scheduling.k8s.io", "v1", (_serve_resource(_CLASSES, columns.none, tuple),)),
        ViewGroup(
            "autoscaling", "v2", (_serve_resource(_HPAS, columns.hpa, partial(hpas, state)),)
        ),
        ViewGroup(
            "apiregistration.k8s.io",
            "v1",
            (
                _serve_resource(
                    _APISERVICES, columns.apiservice, partial(apiservices, state, proxy)
                ),
            ),
        ),
    )


def _serve_resource(
    resource: ViewResource,
    cells: Callable[[Json, float], Sequence[Cell]],
    make: Callable[[], Iterable[Json]],
    fields: Mapping[str, str] | None = None,
) -> ServedResource:
    return ServedResource(resource, Objects(make, cells, fields or {}))


def _text(value: Any, path: Sequence[str]) -> str:
    for name in path:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return str(value)


def _resource(
    plural: str,
    kind: str,
    short: str,
    names: Sequence[Column],
    *,
    namespaced: bool = True,
    fields: Iterable[str] = (),
    everything: bool = False,
) -> ViewResource:
    return ViewResource(
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        short_names=(short,) if short else (),
        namespaced=namespaced,
        columns=tuple(names),
        schema={},
        fields=tuple(fields),
        categories=("all",) if everything else (),
    )


_POD_FIELDS: Final = {name: name for name in ("spec.nodeName", "status.phase")}
_EVENT_FIELDS: Final = {
    name: name
    for name in (
        *(f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid", "apiVersion")),
        *("reason", "type", "source", "reportingComponent"),
    )
}
_NAMESPACES: Final = _resource("namespaces", "Namespace", "ns", columns.NAMESPACE, namespaced=False)
_NODES: Final = _resource("nodes", "Node", "no", columns.NODE, namespaced=False)
_PODS: Final = _resource("pods", "Pod", "po", columns.POD, fields=_POD_FIELDS, everything=True)
_EVENTS: Final = _resource("events", "Event", "ev", columns.EVENT, fields=_EVENT_FIELDS)
_CONFIGMAPS: Final = _resource("configmaps", "ConfigMap", "cm", columns.NONE)
_APISERVICES: Final = _resource(
    "apiservices", "APIService", "", columns.APISERVICE, namespaced=False
)
_DEPLOYMENTS: Final = _resource(
    "deployments", "Deployment", "deploy", columns.DEPLOYMENT, everything=True
)
_REPLICASETS: Final = _resource(
    "replicasets", "ReplicaSet", "rs", columns.REPLICASET, everything=True
)
_DAEMONSETS: Final = _resource("daemonsets", "DaemonSet", "ds", columns.DAEMONSET, everything=True)
_STATEFULSETS: Final = _resource(
    "statefulsets", "StatefulSet", "sts", columns.NONE, everything=True
)
_JOBS: Final = _resource("jobs", "Job", "", columns.NONE, everything=True)
_CLASSES: Final = _resource(
    "priorityclasses", "PriorityClass", "pc", columns.NONE, namespaced=False
)
_HPAS: Final = _resource(
    "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", columns.HPA, everything=True
)

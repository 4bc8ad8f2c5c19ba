"""Registers an adapter on loopback in the API: a Service and its APIServices."""

from __future__ import annotations

import base64
from http import HTTPStatus

from tests.e2e.cluster import Cluster, Object, RefusedError, condition

NAMESPACE = "gpu-metrics"
SERVICE = "gpu-metrics-adapter"
DNS = (f"{SERVICE}.{NAMESPACE}.svc",)
"""The name the API server checks a serving certificate against."""

CUSTOM = (("custom.metrics.k8s.io", "v1beta2", 50), ("custom.metrics.k8s.io", "v1beta1", 100))
EXTERNAL = (("external.metrics.k8s.io", "v1beta1", 100),)
VIEW = (("view.gpu-metrics-adapter.io", "v1alpha1", 100),)
CHARTED = CUSTOM + VIEW
"""What the chart registers by default."""


def ensure_namespace(admin: Cluster, name: str) -> None:
    """Create a namespace if it does not exist."""
    try:
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except RefusedError as error:
        if error.code != HTTPStatus.CONFLICT:
            raise


def register(
    admin: Cluster, port: int, ca_bundle: bytes, rows: tuple[tuple[str, str, int], ...] = CUSTOM
) -> None:
    """Create the Service and the APIServices; the namespace exists.

    Endpoints on loopback are refused by the API server; an ExternalName is not.
    """
    meta = {"name": SERVICE, "namespace": NAMESPACE}
    spec: Object = {"type": "ExternalName", "externalName": "localhost"}
    admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    register_group(admin, port, ca_bundle, rows)


def register_group(
    admin: Cluster, port: int, ca_bundle: bytes, rows: tuple[tuple[str, str, int], ...]
) -> None:
    """Create the APIServices of group-versions; the Service exists."""
    meta = {"name": SERVICE, "namespace": NAMESPACE}
    for group, version, priority in rows:
        admin.create(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{version}.{group}"},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": priority,
                    "service": meta | {"port": port},
                    "caBundle": base64.b64encode(ca_bundle).decode(),
                },
            }
        )


def unregister_group(admin: Cluster, rows: tuple[tuple[str, str, int], ...]) -> None:
    """Delete the APIServices of group-versions."""
    for group, version, _ in rows:
        admin.delete(f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}")


def wait_available(
    admin: Cluster, rows: tuple[tuple[str, str, int], ...] = CUSTOM, seconds: float = 120.0
) -> None:
    """Wait until the API server reports every group-version as available."""
    for group, version, _ in rows:
        name = f"{version}.{group}"
        admin.wait(
            f"/apis/apiregistration.k8s.io/v1/apiservices/{name}",
            lambda obj: condition(obj, "Available")[0] == "True",
            f"APIService {name} is Available",
            seconds,
        )

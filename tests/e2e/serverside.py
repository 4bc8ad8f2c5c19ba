"""Applies objects like ``kubectl apply --server-side --validate=strict``."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.cluster import Cluster, Object, collection


def apply(admin: Cluster, obj: Object, more: str = "&dryRun=All") -> Object:
    """Apply an object, by default as a dry run.

    Raises:
        RefusedError: a field is unknown, missing or wrong, or an admission plugin objects.
    """
    query = f"fieldManager=chart&force=true&fieldValidation=Strict{more}"
    path = f"{collection(obj)}/{obj['metadata']['name']}?{query}"
    kind = {"Content-Type": "application/apply-patch+yaml"}
    applied: Object = admin.request("PATCH", path, obj, **kind)
    return applied


def ensure(admin: Cluster, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Create a namespace if it does not exist."""
    meta = {"name": name, "labels": dict(labels or {})}
    apply(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "")

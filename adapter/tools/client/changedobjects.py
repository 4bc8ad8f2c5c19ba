"""Objects that a fix changes, read with the caller's rights, with what manages them."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.cluster.changes import ChangedObject
from adapter.pipeline.cluster.managers import Manager, Way, manager_of
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.client.servedkinds import HOME, group_of, served_kind

_POLICIES: Final = "/apis/nvidia.com/v1/clusterpolicies"


async def read_changed(api: Api, kind: str, namespace: str, name: str) -> ChangedObject:
    """Return an object of a kind of Kubernetes with what manages it.

    Raises:
        ClientError: the caller cannot read it.
    """
    served = await served_kind(api, HOME.get(kind, ""), kind)
    if served is None:
        raise ClientError(f"no matches for kind {kind}", 404)
    return await build_changed(api, kind, await api.get(served.path(namespace, name)))


async def build_changed(api: Api, kind: str, manifest: Json) -> ChangedObject:
    """Return an object whose manifest was read, with what manages it; reads its owner, if a change
    has to be made there. An owner that the caller cannot read is named without its manifest.
    """
    meta = manifest["metadata"]
    of = ChangedObject(
        kind,
        str(meta.get("namespace") or ""),
        str(meta["name"]),
        manager_of(meta),
        _variables(manifest),
    )
    if of.manager is None or of.manager.way is not Way.OWNER:
        return of
    try:
        owner = await _owner(api, of.manager)
    except ClientError:  # the fix then names the owner, and what to change in it
        return of
    if owner is None:
        return of
    manager = of.manager._replace(name=str(owner["metadata"]["name"]))
    return of._replace(manager=manager, owner=owner, above=manager_of(owner["metadata"]))


async def _owner(api: Api, manager: Manager) -> Json | None:
    if not manager.name:  # a ClusterPolicy is the only one of its cluster
        rows = await api.list(_POLICIES) if manager.kind == "ClusterPolicy" else []
        return rows[0] if len(rows) == 1 else None
    group = group_of(manager.api_version)
    served = await served_kind(api, group, manager.kind)
    if served is None:
        return None
    return await api.get(served.path(manager.namespace, manager.name))


def _variables(manifest: Json) -> list[Json] | None:
    """Return the variables of the first container of a pod template; None without one."""
    spec = ((manifest.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers = spec.get("containers") or ()
    return list(containers[0].get("env") or ()) if containers else None

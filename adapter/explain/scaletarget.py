"""The scale target of an HPA: its size and its pods' selector, as the HPA controller reads them."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote

from adapter.client.access import Api, Json
from adapter.client.errors import ClientError

_KNOWN: Final = {
    ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("apps/v1", "ReplicaSet"): "replicasets",
    ("v1", "ReplicationController"): "replicationcontrollers",
}


class Scale(NamedTuple):
    """The scale subresource of a workload."""

    replicas: int
    status_replicas: int
    selector: str


class ScaleError(Exception):
    """The HPA controller cannot read the scale either; the text is as it has it."""


async def read_scale(api: Api, hpa: Json) -> Scale:
    """Return the scale of an HPA's target.

    Raises:
        ScaleError: the target does not exist, or has no scale.
        ClientError: the caller cannot read it.
    """
    reference = hpa["spec"]["scaleTargetRef"]
    version, kind = str(reference.get("apiVersion") or "v1"), str(reference["kind"])
    plural = await _plural(api, version, kind)
    namespace, name = hpa["metadata"]["namespace"], str(reference["name"])
    path = f"{_root(version)}/namespaces/{quote(namespace)}/{plural}/{quote(name, safe='')}/scale"
    try:
        scale = await api.get(path)
    except ClientError as error:
        if error.status == 404:
            group, _, _ = version.rpartition("/")
            full = f"{plural}.{group}" if group else plural
            raise ScaleError(f'{full} "{name}" not found') from None
        raise
    spec, status = scale.get("spec") or {}, scale.get("status") or {}
    return Scale(
        int(spec.get("replicas") or 0),
        int(status.get("replicas") or 0),
        str(status.get("selector") or ""),
    )


async def _plural(api: Api, version: str, kind: str) -> str:
    if (version, kind) in _KNOWN:
        return _KNOWN[version, kind]
    group, _, _ = version.rpartition("/")
    missing = f'no matches for kind "{kind}" in group "{group}"'
    if ".." in version.split("/"):  # a client resolves it, and asks another path
        raise ScaleError(missing)
    try:
        served = await api.get(_root(version))
    except ClientError as error:
        if error.status == 404:
            raise ScaleError(missing) from None
        raise
    for row in served.get("resources") or ():
        if row.get("kind") == kind and "/" not in str(row.get("name")):
            return str(row["name"])
    raise ScaleError(missing)


def _root(version: str) -> str:
    return f"/apis/{quote(version)}" if "/" in version else f"/api/{quote(version)}"

"""Kinds as the cluster serves them: group and kind, whichever version an object names.

The HPA controller asks its RESTMapper for a target's group and kind over all served versions
(kubernetes ``pkg/controller/podautoscaler/horizontal.go``: ``RESTMappings(targetGK)`` and
``scaleForResourceMappings``), so a reference to ``apps/v1beta1`` finds a Deployment
of ``apps/v1``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple
from urllib.parse import quote

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError


class ServedKind(NamedTuple):
    """A kind that the API server serves."""

    root: str
    """Path of the group's version: ``/apis/apps/v1``."""
    plural: str
    """As in the path: ``deployments``."""
    scales: bool
    """Whether it has a scale subresource."""

    def path(self, namespace: str, name: str) -> str:
        """Return the path of an object; ``namespace`` is empty for one without."""
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return f"{self.root}{within}/{self.plural}/{quote(name, safe='')}"


_CORE: Final = "/api/v1"
_APPS: Final = "/apis/apps/v1"
_KNOWN: Final = {
    ("apps", "Deployment"): ServedKind(_APPS, "deployments", scales=True),
    ("apps", "StatefulSet"): ServedKind(_APPS, "statefulsets", scales=True),
    ("apps", "ReplicaSet"): ServedKind(_APPS, "replicasets", scales=True),
    ("apps", "DaemonSet"): ServedKind(_APPS, "daemonsets", scales=False),
    ("", "ReplicationController"): ServedKind(_CORE, "replicationcontrollers", scales=True),
    ("", "Pod"): ServedKind(_CORE, "pods", scales=False),
    ("batch", "Job"): ServedKind("/apis/batch/v1", "jobs", scales=False),
}
"""Kinds that every cluster serves: asking for them would only cost requests."""
HOME: Final = {kind: group for group, kind in _KNOWN}
"""Kind of Kubernetes -> its API group."""


def group_of(version: str) -> str:
    """Return the group of an ``apiVersion``; empty for ``v1``."""
    return version.rpartition("/")[0]


async def served_kind(api: Api, group: str, kind: str) -> ServedKind | None:
    """Return how a kind is served, by a version with a scale subresource if one has it; None if no
    version of the group has the kind.

    Raises:
        ClientError: the API server does not say.
    """
    if (group, kind) in _KNOWN:
        return _KNOWN[group, kind]
    first: ServedKind | None = None
    async for root in _roots(api, group):
        try:
            rows = (await api.get(root)).get("resources") or ()
        except ClientError as error:
            if error.status == 404:
                continue
            raise
        names = {str(row.get("name")) for row in rows}
        for name in sorted(name for name in names if "/" not in name):
            if not any(row.get("name") == name and row.get("kind") == kind for row in rows):
                continue
            served = ServedKind(root, name, f"{name}/scale" in names)
            if served.scales:
                return served
            first = first or served
    return first


async def _roots(api: Api, group: str) -> AsyncIterator[str]:
    """Yield the paths of a group's versions, the preferred one first; none if it is not served."""
    if not group:
        yield _CORE
        return
    if "/" in group or group.strip(".") == "":  # a client resolves it, and asks another path
        return
    try:
        about = await api.get(f"/apis/{quote(group, safe='')}")
    except ClientError as error:
        if error.status == 404:
            return
        raise
    preferred = str((about.get("preferredVersion") or {}).get("version") or "")
    rows: list[Json] = about.get("versions") or []
    versions = dict.fromkeys([preferred, *(str(row.get("version") or "") for row in rows)])
    for version in filter(None, versions):
        yield f"/apis/{quote(group, safe='')}/{quote(version, safe='')}"

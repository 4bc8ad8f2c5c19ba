"""The headroom that ``nodepool`` holds, with the forecast behind it: of an HPA's workload, or all.

The controller writes both on the headroom object. Anybody who may create a Deployment can write the
same in a namespace of their own, so only two namespaces count: that of the adapter, and that of the
HPA, in which headroom with ResourceClaims is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from adapter.figures import count
from adapter.nodepool.model import names
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.words import one_line

_APISERVICE: Final = (
    "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.view.gpu-metrics-adapter.io"
)
_NONE: Final = (404, 410)


class HeadroomRow(NamedTuple):
    """One headroom object."""

    kind: str
    namespace: str
    name: str
    pods: int
    pool: str
    why: str
    """What the controller expects, and how sure it is."""

    @property
    def text(self) -> str:
        """The row as a sentence."""
        where = f" in pool {self.pool}" if self.pool else ""
        by = f"{self.kind} {self.namespace}/{self.name}"
        return f"{count(self.pods, 'pod')}{where}, held by {by}: {self.why}"

    def json(self) -> Json:
        """The row for programs."""
        return self._asdict()


class HeldHeadroom(NamedTuple):
    """Headroom, or why it cannot be read."""

    rows: Sequence[HeadroomRow] = ()
    problem: ClientError | None = None


NO_HEADROOM: Final = HeldHeadroom()


async def headroom_of(api: Api, hpa: Json) -> HeldHeadroom:
    """Return the headroom for an HPA's workload."""
    namespace = str(hpa["metadata"]["namespace"])
    reference = hpa["spec"]["scaleTargetRef"]
    workload = f"{reference.get('kind')}/{reference.get('name')}"
    try:
        home = await _home(api)
        if not home:
            return NO_HEADROOM
        served = f"{names.SERVES}={namespace}"
        rows: list[HeadroomRow] = []
        for place in dict.fromkeys((home, namespace)):
            objects = await _list_headroom(api, place, served)
            rows += [_row(kind, row) for kind, row in objects if workload in _workloads(row)]
    except ClientError as error:
        return HeldHeadroom((), error)
    return HeldHeadroom(rows)


async def all_headroom(api: Api) -> HeldHeadroom:
    """Return the headroom in the adapter's namespace: all but that with ResourceClaims."""
    try:
        home = await _home(api)
        objects = await _list_headroom(api, home, names.SERVES) if home else ()
    except ClientError as error:
        return HeldHeadroom((), error)
    return HeldHeadroom([_row(kind, row) for kind, row in objects])


async def _home(api: Api) -> str:
    """Return the namespace of the adapter; empty if it is not installed."""
    try:
        apiservice = await api.get(_APISERVICE)
    except ClientError as error:
        if error.status in _NONE:
            return ""
        raise
    service = (apiservice.get("spec") or {}).get("service") or {}
    return str(service.get("namespace") or "")


async def _list_headroom(api: Api, place: str, labels: str) -> list[tuple[str, Json]]:
    """Return the objects in a namespace that a selector matches, each with its kind."""
    within = f"namespaces/{quote(place, safe='')}"
    kinds = [
        (f"/apis/{names.BUFFER_GROUP}/{v}/{within}/capacitybuffers") for v in names.BUFFER_VERSIONS
    ]
    buffers: list[Json] = []
    for path in kinds:
        buffers = await _list_if_served(api, path, labels)
        if buffers:
            break
    deployments = await _list_if_served(api, f"/apis/apps/v1/{within}/deployments", labels)
    objects = [("CapacityBuffer", row) for row in buffers]
    return [*objects, *(("Deployment", row) for row in deployments)]


async def _list_if_served(api: Api, path: str, labels: str) -> list[Json]:
    try:
        return await api.list(path, labels=labels)
    except ClientError as error:
        if error.status in _NONE:  # the cluster has no CapacityBuffers
            return []
        raise


def _workloads(row: Json) -> list[str]:
    text = str((row["metadata"].get("annotations") or {}).get(names.WORKLOADS) or "")
    return text.split(", ")


def _row(kind: str, row: Json) -> HeadroomRow:
    meta = row["metadata"]
    notes = meta.get("annotations") or {}
    pods = (row.get("spec") or {}).get("replicas")
    return HeadroomRow(
        kind,
        str(meta.get("namespace") or ""),
        str(meta.get("name") or ""),
        pods if isinstance(pods, int) else 0,
        one_line(str(notes.get(names.POOL) or "")),
        one_line(str(notes.get(names.WHY) or "no reason is written on it")),
    )

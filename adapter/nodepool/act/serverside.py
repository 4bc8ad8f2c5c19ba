"""Writes to the API server: server-side apply with one field manager, never forced.

If another manager owns a field, the field is not changed and the error names the manager.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

import msgspec

from adapter.nodepool.model.apicall import ApiCall
from adapter.nodepool.model.names import MANAGER
from apiservice.kube.client import ClusterAnswerError
from apiservice.kube.failures import NOT_AN_API_SERVER

KubeObject = dict[str, Any]

KINDS: Final = ("CapacityBuffer", "ConfigMap", "Deployment", "Job", "Pod", "PodTemplate")
"""Kinds that the controller applies and deletes. Their plurals are regular."""
_OTHERS = re.compile(r'conflicts? with "([^"]+)"')


class WriteFailure(StrEnum):
    """Why a write failed."""

    CONFLICT = "conflict"
    """Another field manager owns the field."""
    FORBIDDEN = "forbidden"
    """The ServiceAccount lacks the permission (RBAC)."""
    REFUSED = "refused"
    """The API server, a quota or a webhook rejected the write."""
    UNREACHABLE = "unreachable"
    """The API server did not answer in time; the next round tries again."""
    NOT_LEADING = "not_leading"
    """The lease was lost before the write was sent."""


class WriteError(Exception):
    """A write failed. The message names the object and the fix."""

    def __init__(self, failure: WriteFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class Writer:
    """Applies and deletes objects while this replica is the leader.

    ``may_write`` is called immediately before each request. Without the lease, nothing is sent.
    """

    def __init__(self, call: ApiCall, may_write: Callable[[], bool]) -> None:
        self._call = call
        self._may_write = may_write
        self.done: Counter[str] = Counter()
        """Kind -> writes that succeeded."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """Kind and :class:`WriteFailure` -> writes that failed."""

    async def read(self, obj: KubeObject) -> KubeObject | None:
        """Return the current object; None if it does not exist. Raises WriteError."""
        try:
            body = await self._call("GET", path_of(obj))
        except ClusterAnswerError as error:
            if error.status == 404:
                return None
            raise _failure(obj, error.status, str(error)) from error
        return _object(obj, body)

    async def apply(self, obj: KubeObject) -> KubeObject:
        """Apply our fields and return the resulting object.

        Raises:
            WriteError: see :class:`WriteFailure`.
        """
        path = f"{path_of(obj)}?fieldManager={MANAGER}&fieldValidation=Strict"
        body = await self._send("PATCH", path, obj, obj, "application/apply-patch+yaml")
        return _object(obj, body)

    async def create(self, obj: KubeObject) -> None:
        """Create an object, which may have a generated name. Raises WriteError."""
        path = f"{collection(obj)}?fieldManager={MANAGER}"
        await self._send("POST", path, obj, obj)

    async def delete(self, obj: KubeObject) -> None:
        """Delete an object, and its dependents in the background. A missing object is not an error.

        Raises:
            WriteError: see :class:`WriteFailure`.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        await self._send("DELETE", path_of(obj), options, obj, gone=True)

    async def _send(
        self,
        method: str,
        path: str,
        body: Any,
        obj: KubeObject,
        content_type: str = "application/json",
        *,
        gone: bool = False,
    ) -> bytes:
        kind = str(obj["kind"])
        if not self._may_write():
            self.failed[kind, WriteFailure.NOT_LEADING] += 1
            raise WriteError(WriteFailure.NOT_LEADING, f"{label(obj)}: the lease was lost")
        try:
            answer = await self._call(method, path, body, content_type=content_type)
        except ClusterAnswerError as error:
            if gone and error.status == 404:
                return b""
            failure = _failure(obj, error.status, str(error))
            self.failed[kind, failure.failure] += 1
            raise failure from error
        self.done[kind] += 1
        return answer


def _object(obj: KubeObject, body: bytes) -> KubeObject:
    try:
        return msgspec.json.decode(body, type=KubeObject)
    except msgspec.DecodeError as error:
        raise _failure(obj, 0, f"{NOT_AN_API_SERVER}: {error}") from error


def _failure(obj: KubeObject, status: int, text: str) -> WriteError:
    name = label(obj)
    if status == 409 and (others := sorted(set(_OTHERS.findall(text)))):
        return WriteError(
            WriteFailure.CONFLICT,
            f"fields of {name} are owned by {', '.join(others)}: stop that writer, or delete the "
            f"object",
        )
    if status == 403:
        return WriteError(
            WriteFailure.FORBIDDEN,
            f"{name}: {text}; grant it to this ServiceAccount (the chart does), or raise the quota "
            f"or policy that it names",
        )
    if status in (0, 408, 429) or status >= 500:
        return WriteError(WriteFailure.UNREACHABLE, f"{name}: {text}")
    return WriteError(WriteFailure.REFUSED, f"{name}: {text}")


def label(obj: KubeObject) -> str:
    """Return an object's name for messages: ``Kind namespace/name``."""
    meta = obj["metadata"]
    place = "/".join(p for p in (meta.get("namespace"), meta.get("name") or "") if p)
    return f"{obj['kind']} {place}"


def collection(obj: KubeObject) -> str:
    """Return the path of the object's collection."""
    version, meta = obj["apiVersion"], obj["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{quote(meta['namespace'], safe='')}" if meta.get("namespace") else ""
    return f"{root}{scope}/{obj['kind'].lower()}s"


def path_of(obj: KubeObject) -> str:
    """Return the path of the object."""
    return f"{collection(obj)}/{quote(obj['metadata']['name'], safe='')}"

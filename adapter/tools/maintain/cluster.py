"""Access to the API server: read, patch and delete of single objects."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import msgspec

from adapter import __version__


class MaintainError(Exception):
    """The job failed; the message names the object and the fix."""


class RefusalError(MaintainError):
    """An object belongs to somebody else, so a retry does not help."""


class ConflictError(Exception):
    """Another client wrote the object since it was read."""


class ObjectStore(Protocol):
    """Objects by their path. Each method raises MaintainError."""

    async def read(self, path: str) -> dict[str, Any] | None:
        """Return the object, or None if it does not exist."""

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        """Merge into the object; raises ConflictError too."""

    async def delete(self, path: str, version: str) -> None:
        """Delete the object of this resourceVersion; a missing object is fine. Raises
        ConflictError too."""

    def now(self) -> float:
        """Epoch seconds."""


class ClusterObjects:
    """:class:`ObjectStore` of a real API server. Its clock checks the certificates."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ahead = 0.0

    def now(self) -> float:
        """The API server's clock, once it has answered."""
        return time.time() + self._ahead

    async def read_clock(self) -> None:
        """Read the API server's clock; raises MaintainError."""
        from apiservice.kube.client import ClusterAnswerError, server_time  # noqa: PLC0415 - 35 MB
        from apiservice.kube.failures import describe_failure  # noqa: PLC0415 - 35 MB

        try:
            self._ahead = await server_time(self._client) - time.time()
        except ClusterAnswerError as error:
            raise MaintainError(describe_failure(self._client, error)) from None

    async def read(self, path: str) -> dict[str, Any] | None:
        """See :class:`ObjectStore`."""
        body = await self._send("GET", path, gone=True)
        try:
            return msgspec.json.decode(body, type=dict[str, Any]) if body else None
        except msgspec.DecodeError as error:
            from apiservice.kube.failures import NOT_AN_API_SERVER, describe_failure  # noqa: PLC0415 - 35 MB

            wrong = MaintainError(f"GET {path}: {NOT_AN_API_SERVER}: {error}")
            raise MaintainError(describe_failure(self._client, wrong)) from None

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        """See :class:`ObjectStore`."""
        await self._send("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, version: str) -> None:
        """See :class:`ObjectStore`."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": version},
        }
        await self._send("DELETE", path, options, gone=True)

    async def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        *,
        gone: bool = False,
    ) -> bytes:
        from apiservice.kube.client import ClusterAnswerError, call  # noqa: PLC0415 - 35 MB

        try:
            return await call(self._client, method, path, body, content_type=content_type)
        except ClusterAnswerError as error:
            if error.status == 404 and gone:
                return b""
            if error.status == 409:
                raise ConflictError(str(error)) from None
            text = _with_hint(error.status, str(error))
            raise MaintainError(f"{text}; server: {self._client.origin}") from None


async def reach(
    stack: AsyncExitStack, kubeconfig: Path | None, context: str | None
) -> ClusterObjects:
    """Return the API server of a kubeconfig, or of the pod's cluster; raises MaintainError."""
    from apiservice.kube.connection import connect  # noqa: PLC0415 - 35 MB
    from apiservice.kube.failures import ClusterError  # noqa: PLC0415 - 35 MB

    agent = f"gpu-metrics-adapter-maintain/{__version__}"
    try:
        client = await connect(kubeconfig, context, user_agent=agent)
    except ClusterError as error:
        raise MaintainError(str(error)) from None
    stack.push_async_callback(client.close)
    server = ClusterObjects(client)
    await server.read_clock()
    return server


def _with_hint(status: int, text: str) -> str:
    if status == 403:
        return f"{text}; apply the chart again: its roles grant this right"
    if status == 404:
        return f"{text}; apply the chart again: it creates the object"
    if status in (0, 408, 429) or status >= 500:
        return f"{text}; the Job retries"
    return text

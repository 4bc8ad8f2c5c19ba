"""The port to the API server: one request."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from apiservice.kube.client import ClusterAnswerError
from apiservice.kube.failures import NOT_AN_API_SERVER

T = TypeVar("T")


class ApiCall(Protocol):
    """One request to the API server; raises ClusterAnswerError."""

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        """Return the body of the response, within bounded time."""


async def get(call: ApiCall, path: str, kind: type[T]) -> T:
    """GET an object and decode it; raises ClusterAnswerError, also for another answer."""
    body = await call("GET", path)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ClusterAnswerError(f"GET {path}: {NOT_AN_API_SERVER}: {error}") from error

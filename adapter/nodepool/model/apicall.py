"""The port to the API server: one request."""

from __future__ import annotations

from typing import Any, Protocol


class ApiCall(Protocol):
    """One request to the API server; raises ClusterAnswerError."""

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        """Return the body of the response, within bounded time."""

"""An API server at our own port :class:`adapter.nodepool.act.serverside.Call`, in memory."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from apiservice.kube.client import ClusterAnswerError

Object = dict[str, Any]


class FakeApi:
    """Path -> object. Apply replaces objects, and all requests are recorded."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.sent: list[tuple[str, str, Any]] = []
        """(method, path without query, body) of all requests except reads."""
        self.asked: list[str] = []
        """Paths of the reads, with their queries."""
        self.failures: list[tuple[str, str, Exception]] = []
        """(method, pattern of the path, what is raised), the first that matches."""
        self.starts_jobs: str | None = "2026-01-01T00:00:00Z"
        """``startTime`` from the Job controller; None while it does not run."""

    def fail(self, method: str, pattern: str, status: int, text: str = "no") -> None:
        """From now on, answer such requests with an error; 0 means that no answer arrives."""
        message = f"{method} {pattern}: {status} {text}"
        self.failures.insert(0, (method, pattern, ClusterAnswerError(message, status)))

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        for verb, pattern, error in self.failures:
            if verb == method and re.search(pattern, path):
                raise error
        plain = urlsplit(path).path
        if method == "GET":
            self.asked.append(path)
            if plain not in self.objects:
                raise ClusterAnswerError(f"GET {plain}: 404 not found", 404)
            return json.dumps(self.objects[plain]).encode()
        self.sent.append((method, plain, body))
        if method == "DELETE":
            if self.objects.pop(plain, None) is None:
                raise ClusterAnswerError(f"DELETE {plain}: 404 not found", 404)
            return b"{}"
        if method == "POST":
            return json.dumps(body).encode()
        return json.dumps(self._apply(plain, body)).encode()

    def paths(self, method: str) -> list[str]:
        """The paths of the requests with this method."""
        return [path for verb, path, _ in self.sent if verb == method]

    def _apply(self, path: str, body: Object) -> Object:
        before = self.objects.get(path, {})
        stored: Object = json.loads(json.dumps(body))
        stored["metadata"].setdefault(
            "uid", before.get("metadata", {}).get("uid", f"uid of {path}")
        )
        if "status" in before:
            stored["status"] = before["status"]
        elif body["kind"] == "Job" and self.starts_jobs:
            stored["status"] = {"startTime": self.starts_jobs}
        self.objects[path] = stored
        return stored

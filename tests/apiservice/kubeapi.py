"""An API server that gives configured answers, and kubeconfigs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

NOWHERE = {"HOME": "/nonexistent"}


class FakeApiServer:
    """Gives configured answers, and records its requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.more: list[tuple[bytes, bytes]] = []
        """Further headers of each answer."""
        self.asked: list[tuple[str, str, dict[bytes, bytes], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((scope["method"], scope["path"], dict(scope["headers"]), b""))
        status, body = self.answers.pop(0) if self.answers else (200, b"{}")
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += self.more
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    @property
    def tokens(self) -> list[bytes]:
        return [headers.get(b"authorization", b"") for _, _, headers, _ in self.asked]


def kubeconfig(server: str = "http://127.0.0.1:1", **user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }


def write(folder: Path, content: Any) -> Path:
    path = folder / "kubeconfig"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path

"""A proxy before a real API server that changes an answer, or ends the client at a request."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.controlplane import ControlPlane

Forward = Callable[[], httpx.Response]
"""Sends the request to the API server as the admin; returns its answer."""
Around = Callable[[str, str, Forward], bytes]
"""Takes method, path and how to forward the request; returns the body of the answer."""


@contextlib.contextmanager
def api_proxy(plane: ControlPlane, around: Around) -> Iterator[Path]:
    """Yield a kubeconfig whose server is the proxy."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            answers: list[httpx.Response] = []

            def forward() -> httpx.Response:
                client = plane.admin.client
                answers.append(
                    client.request(self.command, self.path, content=body, headers=headers)
                )
                return answers[0]

            content = around(self.command, self.path, forward)
            if not answers:  # the client has ended
                return
            with contextlib.suppress(ConnectionError):  # of a client that has ended
                self.send_response(answers[0].status_code)
                for name in ("Content-Type", "Date"):
                    self.send_header(name, answers[0].headers.get(name, ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def send_response(self, code: int, message: str | None = None) -> None:
            self.send_response_only(code, message)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - its names there

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    config = {
        "current-context": "proxy",
        "clusters": [
            {"name": "e2e", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "e2e", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "e2e", "user": "e2e"}}],
    }
    path = plane.folder / "proxy.kubeconfig"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def version_proxy(plane: ControlPlane, change: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a kubeconfig whose server has another answer of ``/version``."""

    def around(method: str, path: str, forward: Forward) -> bytes:
        answer = forward()
        return (
            json.dumps({**answer.json(), **change}).encode()
            if path == "/version"
            else (answer.content)
        )

    with api_proxy(plane, around) as kubeconfig:
        yield kubeconfig

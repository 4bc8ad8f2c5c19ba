"""A proxy before a real API server that changes the answer of ``/version``, and nothing else."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.controlplane import ControlPlane


@contextlib.contextmanager
def version_proxy(plane: ControlPlane, change: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a kubeconfig whose server is the proxy. Requests go on as the admin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {"Content-Type": "application/json"}
            found = plane.admin.client.request(
                self.command, self.path, content=body, headers=headers
            )
            content = found.content
            if self.path == "/version":
                content = json.dumps({**found.json(), **change}).encode()
            self.send_response(found.status_code)
            self.send_header("Content-Type", found.headers.get("Content-Type", ""))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

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
    path = plane.folder / "version-proxy.kubeconfig"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()

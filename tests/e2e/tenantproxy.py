"""A small proxy with the tenants of Mimir and of a VictoriaMetrics cluster. It is neither.

It takes a tenant from ``X-Scope-OrgID`` as Mimir does, or from the path
``/select/TENANT/prometheus`` as vmselect does, and passes the request on to that tenant's own
engine. Only the way in which a tenant is named is like the real programs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class TenantProxy:
    """Serves until stopped.

    Args:
        engines: tenant -> base URL of its engine's query API.
    """

    def __init__(self, engines: Mapping[str, str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                tenant, path = self.headers.get("X-Scope-OrgID"), self.path
                if parts := re.fullmatch(r"/select/(\w+)/prometheus(/.*)", path):
                    tenant, path = parts[1], parts[2]
                if tenant is None:
                    self._send(401, b"no org id\n", "text/plain")
                    return
                if tenant not in engines:
                    empty = b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
                    self._send(200, empty, "application/json")
                    return
                answer = httpx.post(
                    engines[tenant] + path,
                    content=body,
                    headers={"Content-Type": self.headers["Content-Type"]},
                    trust_env=False,
                )
                self._send(answer.status_code, answer.content, "application/json")

            def _send(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

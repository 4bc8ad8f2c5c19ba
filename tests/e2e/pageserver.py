"""Pages for Prometheus, served on loopback or at an address of a pod."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class PageServer:
    """Serves until stopped.

    Args:
        page: returns the page at a path, which begins with a slash.
    """

    def __init__(self, page: Callable[[str], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page(self.path).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()

    def job(self, name: str, **more: Any) -> dict[str, Any]:
        """Return a scrape job of the page ``/metrics`` that keeps its labels."""
        targets = [{"targets": [f"127.0.0.1:{self.port}"]}]
        return {"job_name": name, "honor_labels": True, "static_configs": targets, **more}

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

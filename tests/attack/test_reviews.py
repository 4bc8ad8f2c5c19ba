"""Questions that clients without proven identity make the API server answer."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import yaml

from tests.adapter.serving import POD
from tests.attack.siege import Siege

SECONDS = 10.0
THREADS = 6
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
LISTS: dict[str, list[Any]] = {
    "/api/v1/pods": [POD | {"status": READY}],
    "/api/v1/nodes": [NODE],
}


class ApiServer:
    """Lists one pod and one node, denies every review, and counts the reviews."""

    def __init__(self) -> None:
        self.reviews: Counter[str] = Counter()
        self.ended = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if "watch=" in query:
                    api.ended.wait()
                    self.close_connection = True
                    return
                items = LISTS.get(path, [])
                self._answer({"metadata": {"resourceVersion": "1"}, "items": items})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                api.reviews[self.path.rpartition("/")[2]] += 1
                self._answer({"status": {"allowed": False, "authenticated": False}})

            def _answer(self, body: object) -> None:
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def kubeconfig(self, folder: Path) -> Path:
        file = folder / "kubeconfig"
        server = f"http://127.0.0.1:{self._server.server_port}"
        content = {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "current-context": "c",
        }
        file.write_text(yaml.safe_dump(content))
        return file

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def api_server() -> Iterator[ApiServer]:
    server = ApiServer()
    try:
        yield server
    finally:
        server.close()


def _paths(client: httpx.Client, seed: str) -> int:
    """Ask for a path that nobody asked for, of 8 kB in memory."""
    return client.get(quote(f"/{seed}-" + "\U0001f642" * 700)).status_code


def _tokens(client: httpx.Client, seed: str) -> int:
    return client.get("/apis", headers={"Authorization": f"Bearer {seed}"}).status_code


ATTACKS = {
    "anonymous": (_paths, "subjectaccessreviews", {403, 429}),
    "tokens": (_tokens, "tokenreviews", {401, 429}),
}


@pytest.mark.parametrize(("ask", "kind", "codes"), ATTACKS.values(), ids=ATTACKS)
def test_unknown_clients_do_not_cause_requests_to_the_api_server(
    siege: Callable[..., Siege],
    tmp_path: Path,
    ask: Callable[[httpx.Client, str], int],
    kind: str,
    codes: set[int],
) -> None:
    with api_server() as api:
        cluster = {"pods_file": None, "kubeconfig": str(api.kubeconfig(tmp_path))}
        attacked = siege(cluster=cluster, authentication={"configmap": False})
        statuses: Counter[int] = Counter()
        started = time.monotonic()
        until = started + SECONDS

        def attack(name: int) -> None:
            with attacked.serving.client(user=None) as client:
                number = 0
                while time.monotonic() < until and number < 5000:
                    statuses[ask(client, f"{name}.{number}")] += 1
                    number += 1

        threads = [threading.Thread(target=attack, args=(name,)) for name in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        took = time.monotonic() - started
        attacked.verdict()

    assert set(statuses) == codes
    assert api.reviews[kind] <= 50 + 10 * took + THREADS

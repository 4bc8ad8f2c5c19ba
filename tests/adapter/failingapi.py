"""An API server on loopback that fails in one way, and kubeconfigs that fail before it is asked."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

from tests.apiservice.pki import HOUR, SERVER, Authority

HTML: Final = b"<html><body><h1>Sign in</h1></body></html>"
ANSWERS: Final = ("401", "403", "404", "500", "html", "silent")
"""Failures of a server that is reached."""
UNREACHED: Final = ("refused", "expired", "untrusted")
WELL: Final = "well"
AUTHENTICATION: Final = (
    "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3Dext"
)
KUBECONFIGS: Final = ("missing", "not-yaml", "empty", "no-context", "folder")
"""Failures before any server is asked."""


@dataclass(frozen=True)
class Failing:
    """One failure, and the kubeconfig that leads to it."""

    kubeconfig: Path
    server: str
    context: str = "lab"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, failure: str, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failure = failure
        self.held: list[Any] = []
        self.configmap: Any = {}
        if failure != "silent":
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def answer_to(self, request: BaseHTTPRequestHandler) -> bytes:
        """What an API server with nothing in it answers."""
        items = [self.configmap] if request.path.startswith(AUTHENTICATION) else []
        answer: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": items}
        if request.path == "/apis":
            answer = {"groups": []}
        return json.dumps(answer).encode()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer; a server that is silent does not even answer the handshake."""
        if self.failure == "silent":
            self.held.append(request)
            return
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks a handshake off is part of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def answer(self) -> None:
        failure = self.server.failure
        if failure == WELL and "watch=true" in self.path:
            self.send_response(200)
            self.end_headers()
            # Until the client goes: it says so, and an API server answers that.
            select.select([self.connection], [], [], 60)
            return
        code, kind, body = 200, "text/html", HTML
        if failure == WELL:
            code, kind, body = 200, "application/json", self.server.answer_to(self)
        elif failure != "html":
            code, kind = int(failure), "application/json"
            status = {"kind": "Status", "status": "Failure", "message": f"lab says {failure}"}
            body = json.dumps(status | {"code": code}).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the library's names

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def failing(failure: str, folder: Path) -> Iterator[Failing]:
    """The failure, for as long as the block runs."""
    if failure in KUBECONFIGS:
        yield _broken_kubeconfig(failure, folder)
        return
    now = time.time()
    authority, other = Authority("lab", now), Authority("other", now)
    starts, ends = (-2 * HOUR, -HOUR) if failure == "expired" else (-HOUR, HOUR)
    issued = authority.issue(usage=SERVER, hosts=["127.0.0.1"], starts=starts, ends=ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*issued.write(folder, "server"))
    trusted = folder / "ca.crt"
    trusted.write_bytes((other if failure == "untrusted" else authority).pem)
    if failure == "refused":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"https://127.0.0.1:{free.getsockname()[1]}"
            # Bound and not listening: connections are refused, and nobody else gets the port.
            yield Failing(_kubeconfig(folder, url, trusted), url)
        return
    server = _Server(failure, context)
    server.configmap = {
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "requestheader-client-ca-file": authority.pem.decode(),
            "requestheader-allowed-names": "[]",
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }
    url = f"https://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Failing(_kubeconfig(folder, url, trusted), url)
    finally:
        server.shutdown()
        thread.join()
        for connection in server.held:
            connection.close()
        server.server_close()


def _kubeconfig(folder: Path, url: str, trusted: Path) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [
            {"name": "c", "cluster": {"server": url, "certificate-authority": str(trusted)}}
        ],
        "users": [{"name": "u", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


def _broken_kubeconfig(failure: str, folder: Path) -> Failing:
    file = folder / "kubeconfig"
    if failure == "folder":
        file.mkdir()
    elif failure == "not-yaml":
        file.write_text("clusters: [\n")
    elif failure == "empty":
        file.write_text("")
    elif failure == "no-context":
        _kubeconfig(folder, "https://127.0.0.1:1", folder / "none")
        return Failing(file, "", "elsewhere")
    return Failing(file, "")

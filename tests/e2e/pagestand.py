"""A pod of a site whose port a test serves, with a page, an error, TLS, or nothing at all."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.e2e.certificates import KeyPair
from tests.e2e.cluster import PODS, Object, RefusedError, collection
from tests.e2e.podsandbox import host_address
from tests.e2e.process import wait_until
from tests.e2e.site import Site


@contextlib.contextmanager
def listening(
    address: str,
    port: int,
    body: bytes,
    status: int = 200,
    pair: KeyPair | None = None,
    rejected: Collection[str] = (),
) -> Iterator[None]:
    """Serve a body at every path of an address. Clients at ``rejected`` addresses get 403."""

    class Page(PageHandler):
        def page(self) -> tuple[int, bytes]:
            return (403 if self.client_address[0] in rejected else status), body

    with answering(address, port, Page, pair):
        yield


class PageHandler(BaseHTTPRequestHandler):
    """Answers every GET with a page."""

    def page(self) -> tuple[int, bytes]:
        """Return the status and the body."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer."""
        status, body = self.page()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(OSError):
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log nothing."""


@contextlib.contextmanager
def answering(
    address: str, port: int, handler: type[PageHandler], pair: KeyPair | None = None
) -> Iterator[None]:
    """Listen at an address, with TLS if there is a key pair."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that breaks off a handshake is part of the test."""

    server = Server((address, port), handler)
    if pair is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def stand(
    site: Site,
    pod: Object,
    port: int,
    body: bytes | None = b"",
    status: int = 200,
    pair: KeyPair | None = None,
    rejected: Collection[str] = (),
) -> Iterator[None]:
    """Run a pod whose port answers; nothing listens if there is no body."""
    meta = pod["metadata"]
    address = site.kubelet.reserve(meta["namespace"], meta["name"])
    host_address(address)
    answering = None
    if body is not None:
        answering = listening(address, port, body, status, pair, rejected)
    with answering or contextlib.nullcontext(), made(site, pod):
        path = f"{PODS.format(ns=meta['namespace'])}/{meta['name']}"
        site.admin.wait(path, lambda obj: obj["status"].get("podIP") == address, "it runs")
        yield


@contextlib.contextmanager
def made(site: Site, *objects: Object) -> Iterator[None]:
    """Create objects, and delete them in the end."""
    paths = []
    try:
        for obj in objects:
            created = site.admin.create(obj)
            paths.append(path_of(created))
        yield
    finally:
        for path in reversed(paths):
            site.admin.delete(path)
        for path in paths:
            wait_until(partial(gone, site, path), f"{path} is gone")


def path_of(obj: Object) -> str:
    """Return the path of an object."""
    return f"{collection(obj)}/{obj['metadata']['name']}"


def gone(site: Site, path: str) -> bool:
    """Return whether nothing is at a path."""
    try:
        site.admin.get(path)
    except RefusedError as error:
        return error.code == 404
    return False


@contextlib.contextmanager
def patched(
    site: Site, path: str, change: Mapping[str, Any], back: Mapping[str, Any]
) -> Iterator[None]:
    """Merge a change into an object, and another one in the end."""
    site.admin.patch(path, dict(change))
    try:
        yield
    finally:
        site.admin.patch(path, dict(back))

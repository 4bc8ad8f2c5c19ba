"""The listener of the demo's API server: HTTPS on loopback, in the event loop of the demo."""

from __future__ import annotations

import contextlib
import json
import secrets
import ssl
import time
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp

from adapter.demo.certificates import FrontProxy
from adapter.demo.cluster.app import ClusterApi
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.server import HOST
from adapter.demo.state import DemoState
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.server import Server
from apiservice.tls.authority import new_authority
from apiservice.tls.context import server_context

CONTEXT: Final = "gpu-metrics-adapter-demo"
AT_ONCE: Final = 256
"""Connections that are answered at once."""
_CONNECTING: Final = 64
"""TLS handshakes at once."""


class Listener:
    """Serves an application over HTTPS on a free port, and writes the kubeconfig for it.

    Args:
        kubeconfig: the file; its folder exists and is private.
        namespace: of the kubeconfig's context.
        now: epoch seconds; the certificate is valid for a day from then.
    """

    def __init__(self, kubeconfig: Path, namespace: str, now: float) -> None:
        self.token = secrets.token_urlsafe(32)
        self._kubeconfig, self._namespace = kubeconfig, namespace
        folder = kubeconfig.parent
        authority = new_authority(now, days=1)
        issued = authority.issue((HOST, "localhost"), now, days=1)
        self._ca = authority.certificate_pem
        self._certificate, self._key = folder / "api.crt", folder / "api.key"
        self._certificate.write_bytes(issued.certificate)
        _write_private(self._key, issued.key)
        self._server: Server | None = None

    async def start(self, app: ASGIApp) -> None:
        """Listen, and write the kubeconfig."""
        context = server_context()
        # OpenSSL keeps sessions of TLS 1.2, and a connection that resumes one is closed.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self._certificate, self._key)
        # Every client is on this machine, so one address may use all of the limits.
        options = ServingOptions(
            host=HOST,
            port=0,
            read_bodies=True,
            max_connections=AT_ONCE + _CONNECTING,
            reserved_connections=0,
            max_connections_per_address=AT_ONCE,
            max_handshakes=_CONNECTING,
            handshakes_per_second=4000,
            shutdown_seconds=2,
        )
        server = Server(app, options, lambda: context, stats=ServingStats("demo"))
        await server.start()
        self._server = server
        _write_private(self._kubeconfig, self._config(server.port).encode())

    async def stop(self) -> None:
        """Stop to listen, and wait for the requests in progress."""
        if self._server is not None:
            await self._server.stop()

    def _config(self, port: int) -> str:
        ca = self._kubeconfig.with_name("api-ca.crt")
        ca.write_bytes(self._ca)
        cluster = {"server": f"https://{HOST}:{port}", "certificate-authority": str(ca)}
        context = {"cluster": CONTEXT, "user": "demo", "namespace": self._namespace}
        # JSON is YAML.
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": CONTEXT,
                "clusters": [{"name": CONTEXT, "cluster": cluster}],
                "users": [{"name": "demo", "user": {"token": self.token}}],
                "contexts": [{"name": CONTEXT, "context": context}],
            },
            indent=2,
        )


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


async def start_cluster(
    state: DemoState,
    base: str,
    proxy: FrontProxy,
    ca: Path,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Listen, and write the kubeconfig that ``state`` names.

    Args:
        state: the simulation.
        base: address of ``serve``.
        proxy: proves to ``serve`` who forwards.
        ca: of the certificate of ``serve``; it may appear later.
        stack: ends what is started.
    """
    upstream = Upstream(base, proxy, ca)
    stack.push_async_callback(upstream.close)
    listener = Listener(state.kubeconfig, state.shown.namespace, time.time())
    await listener.start(ClusterApi(state, upstream, proxy, listener.token))
    stack.push_async_callback(listener.stop)

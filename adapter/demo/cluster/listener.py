"""The listener of the demo's API server: HTTPS on loopback, in the event loop of the demo."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from adapter.demo.certificates import FrontProxy
from adapter.demo.cluster.app import ClusterApi
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.server import HOST
from adapter.demo.state import DemoState
from apiservice.tls.authority import new_authority

CONTEXT: Final = "gpu-metrics-adapter-demo"
AT_ONCE: Final = 256
"""Connections. While there are more, new requests are answered with 503."""
_GRACE: Final = 2
"""Seconds that requests in progress may take when the demo ends."""


class _Server(uvicorn.Server):
    """Leaves signals to the demo."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


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
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, app: ASGIApp) -> None:
        """Listen, and write the kubeconfig."""
        self._socket = socket.create_server((HOST, 0))
        port = self._socket.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                app,
                ssl_certfile=self._certificate,
                ssl_keyfile=self._key,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # uvicorn refuses from this number on.
                limit_concurrency=AT_ONCE + 1,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        _write_private(self._kubeconfig, self._config(port).encode())

    async def stop(self) -> None:
        """Stop to listen, and wait for the requests in progress."""
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        await self._task

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

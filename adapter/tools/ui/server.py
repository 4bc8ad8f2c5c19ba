"""uvicorn on one socket of loopback, ended by signals without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from adapter.tools.client.errors import ClientError

LOOPBACK: Final = "127.0.0.1"
CONNECTIONS: Final = 96
"""Connections at once; uvicorn answers more of them 503."""
_GRACE: Final = 2
"""Seconds for requests in progress when the process stops."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback.

    Raises:
        ClientError: the port is in use, or not allowed.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((LOOPBACK, port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise ClientError(
            f"cannot listen on {LOOPBACK}:{port}: {error.strerror or error}; stop what uses the "
            f"port, or name another one: --port 0 takes a free one"
        ) from None
    return found


class PageServer(uvicorn.Server):
    """Serves until a signal arrives, then ends the streams and returns.

    Args:
        app: what answers.
        stopping: ends what would not end alone.
        connections: that are served at once.
    """

    def __init__(
        self, app: ASGIApp, stopping: Callable[[], None], connections: int = CONNECTIONS
    ) -> None:
        # uvicorn logs a traceback for each client that breaks off: the app reports its mistakes.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # uvicorn counts the connection that it rejects.
                limit_concurrency=connections + 1,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal stops the server; it is not raised again afterwards, as uvicorn does."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(self._stop)

        before = {each: signal.signal(each, lambda *_: stop()) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _stop(self) -> None:
        self.should_exit = True
        self._stopping()

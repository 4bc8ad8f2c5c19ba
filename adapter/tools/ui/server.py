"""The page's listener on loopback, with the limits of the API server's own.

Every account of the machine may connect. A head is bounded, and a new connection takes the place of
the one that has been idle for longest, so that nobody without the key fills the page's memory or
keeps its owner out.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

from starlette.types import ASGIApp

from adapter.tools.client.errors import ClientError
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.server import ListenError, Server, bind

LOOPBACK: Final = "127.0.0.1"
CONNECTIONS: Final = 128
"""Connections at once."""
_CONNECTING: Final = 64
"""Connections that may be between accept and the first read."""
LIMITS: Final = ServingOptions(
    host=LOOPBACK,
    write_timeout=60,
    max_connections=CONNECTIONS + _CONNECTING,
    reserved_connections=0,
    max_connections_per_address=CONNECTIONS,
    max_handshakes=_CONNECTING,
    shutdown_seconds=2,
    backlog=128,
)


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback.

    Raises:
        ClientError: the port is in use, or not allowed.
    """
    try:
        return bind(replace(LIMITS, port=port))
    except ListenError as error:
        why = str(error).partition(";")[0]
        raise ClientError(
            f"{why}; stop what uses the port, or name another one: --port 0 takes a free one"
        ) from None


@asynccontextmanager
async def serve_app(
    app: ASGIApp, listener: socket.socket, limits: ServingOptions = LIMITS
) -> AsyncIterator[Server]:
    """Serve ``app`` while the block runs; then requests in progress have two seconds."""
    # uvicorn logs a traceback for each client that breaks off: the app reports its mistakes.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    server = Server(app, limits, None, stats=ServingStats("page"))
    await server.start(listener)
    try:
        yield server
    finally:
        await server.stop()


@contextmanager
def signals(stop: Callable[[], None]) -> Iterator[asyncio.Event]:
    """Let SIGINT and SIGTERM call ``stop``, and set the event."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        stopped.set()
        stop()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, end)
    try:
        yield stopped
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

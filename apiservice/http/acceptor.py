"""Accepts connections, and runs their TLS handshakes.

The event loop's own server creates a TLS object of 70 kB for every connection before the
connection can be counted. Here a connection is admitted by its address when it is accepted, and its
handshake is a task that can be cancelled.

A handshake takes up to a millisecond of CPU once its first bytes have come, and the event loop
reads every socket that has some in one iteration. Hundreds of clients that are cut at once come
back at once. So only a few handshakes start in one iteration, and requests have their turn between
them: with 128 at once, the longest iteration takes 3 ms of CPU instead of 17. A client that sends
nothing takes no turn.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from apiservice.http.handshakes import Handshakes
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.peer import peer_address

_AT_ONCE: Final = 32
"""Connections accepted before other tasks run."""
_SHAKES_AT_ONCE: Final = 4
"""Handshakes that start in one iteration of the event loop."""
_GOODBYE: Final = 5.0
"""Seconds that a client may take to end TLS normally."""
_LEAST: Final = 0.1
"""Seconds that a handshake has at least once it started."""
_EXHAUSTED: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

Context = Callable[[], ssl.SSLContext]
"""Returns the TLS context for the next connection."""


class Acceptor:
    """Accepts on one listening socket until it is closed.

    Args:
        listener: bound, and listening.
        make: creates the protocol of a connection whose handshake is done.
        context: TLS; None serves plain text.
        make_room: closes a connection that may be closed; False if there is none.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        context: Context | None,
        options: ServingOptions,
        stats: ServingStats,
        make_room: Callable[[], bool],
    ) -> None:
        self._listener = listener
        self._make = make
        self._context = context
        self._options = options
        self._stats = stats
        self._make_room = make_room
        self._loop = asyncio.get_running_loop()
        self._spare = os.open(os.devnull, os.O_RDONLY)
        self._turn = asyncio.Lock()
        self._started = 0
        """Handshakes of this turn."""
        self.handshakes = Handshakes(options, stats)

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        """Start to accept."""
        self._listener.setblocking(False)
        self._listener.listen(self._options.backlog)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept the clients that have connected already, and no more after that."""
        if self._listener.fileno() < 0:
            return
        self._loop.remove_reader(self._listener.fileno())
        for _ in range(self._options.backlog):
            if not self._accept_one():
                break
        self._listener.close()
        os.close(self._spare)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            if not self._accept_one():
                return

    def _accept_one(self) -> bool:
        """Accept one connection. Return False if none is waiting."""
        try:
            connection, name = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                return True  # the client disconnected before it was accepted
            return self._no_more_files()
        connection.setblocking(False)
        address = peer_address(name)
        if self._context is None or self.handshakes.admit(address):
            shake = self._loop.create_task(self._shake(connection, address))
            shake.add_done_callback(lambda done: _hang_up(done, connection))
            self.handshakes.begin(address, shake)
        else:
            connection.close()
        return True

    def _no_more_files(self) -> bool:
        """Refuse one connection, which would otherwise wait forever, and make room for the next."""
        os.close(self._spare)
        try:
            with suppress(OSError):
                connection, name = self._listener.accept()
                connection.close()
                self._stats.refuse("files", peer_address(name))
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY)
        if not self._make_room():
            self.handshakes.drop_oldest()
        return False

    async def _shake(self, connection: socket.socket, address: str) -> None:
        tls: dict[str, Any] = {}
        try:
            if self._context is not None:
                until = self._loop.time() + self._options.handshake_timeout
                try:
                    await self._its_turn(connection, until)
                except TimeoutError:
                    connection.close()
                    raise
                tls = {
                    "ssl": self._context(),
                    "ssl_handshake_timeout": max(until - self._loop.time(), _LEAST),
                    "ssl_shutdown_timeout": _GOODBYE,
                }
            await self._loop.connect_accepted_socket(self._make, connection, **tls)
        except (OSError, TimeoutError) as error:
            self._stats.failed += 1
            if isinstance(error, ssl.SSLCertVerificationError):
                reason = error.verify_message
                self._stats.refuse("client-certificate", address, reason=reason)

    async def _its_turn(self, connection: socket.socket, until: float) -> None:
        """Wait for the client's first bytes, and for a turn.

        Raises:
            TimeoutError: no byte came in time.
        """
        readable = self._loop.create_future()
        self._loop.add_reader(connection, _settle, readable)
        try:
            async with asyncio.timeout_at(until):
                await readable
        finally:
            self._loop.remove_reader(connection)
        async with self._turn:
            self._started += 1
            if self._started >= _SHAKES_AT_ONCE:
                self._started = 0
                await asyncio.sleep(0)


def _settle(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def _hang_up(shake: asyncio.Task[None], connection: socket.socket) -> None:
    """Close a connection whose handshake was cancelled, even before it started."""
    if shake.cancelled():
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

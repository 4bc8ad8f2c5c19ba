"""The gRPC listener: bind, serve, drain.

Health follows readiness. A connection of age ``max_connection_age`` gets a GOAWAY, so that KEDA's
next connection may reach another replica. Streams end normally before its grace period is over,
because KEDA waits longer after a stream that ends in another way
(``pkg/scalers/external_scaler.go``).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its lines are not in this process's log format

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from adapter.answers.keda.credentials import Credentials
from adapter.answers.keda.pulse import PARTS, Pulse
from adapter.answers.keda.scaler import Scaler
from adapter.answers.keda.selfmetrics import KedaStats
from adapter.answers.keda.service import NAME, ScalerService
from adapter.config.settings.keda import KedaSettings
from apiservice.http.server import ListenError
from apiservice.runtime.validity import Validity

log = structlog.get_logger(__name__)

_MARGIN: Final = 30.0
"""Seconds that a connection outlives its streams' age."""
_MESSAGE: Final = 16 * 1024
"""Largest message accepted, in bytes. It is more than a trigger's metadata may have, so that
metadata slightly above the limit gets an error text. Every call in progress may hold one that is
not complete."""
_CHUNK: Final = 16 * 1024
"""Bytes that are read from a connection at once."""
_HEADERS: Final = 8 * 1024
"""Largest headers of a call accepted, in bytes."""
_HANDSHAKE: Final = 10.0
"""Seconds that a new connection has for TLS and the settings of HTTP/2."""
_IDLE: Final = 60.0
"""Seconds without a call after which a connection is closed: others may need its place."""
_STREAMS: Final = 0.8
"""Share of the calls that streams may take, so that polls find room."""
_KEEPALIVE: Final = 60.0
"""Seconds after which a silent peer gets a keepalive ping."""
_LONGEST: Final = 200
"""Characters of a line of gRPC that are shown, at level debug."""


class GrpcLog(logging.Handler):
    """Counts the lines that gRPC's Python part logs, whose format is not this process's.

    It logs, with a traceback, what peers cause, such as a health check that is not a message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        """Lines of level error or above since the start."""

    def install(self) -> None:
        """Handle every line of gRPC's loggers from now on."""
        logger = logging.getLogger("grpc")
        logger.handlers = [self]
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line, and log it at level debug without its traceback."""
        self.errors += record.levelno >= logging.ERROR
        log.debug("gRPC reports", message=record.getMessage()[:_LONGEST])


class KedaServer:
    """Serves KEDA on one port.

    Args:
        scaler: answers the calls.
        settings: the listener's; those of TLS are in ``credentials``.
        credentials: TLS; None serves plain text.
        ready: returns whether health is SERVING.
        drain: seconds from SIGTERM, with health failing, until the listener closes.
        grace: seconds that calls in progress may take after that.
    """

    def __init__(
        self,
        scaler: Scaler,
        settings: KedaSettings,
        credentials: Credentials | None,
        ready: Callable[[], bool],
        drain: float,
        grace: float,
    ) -> None:
        self._settings = settings
        self._drain, self._grace = drain, grace
        self._credentials = credentials
        self._ready = ready
        self._pulse = Pulse()
        self.stats = KedaStats()
        if credentials is not None:
            self.stats.problem = lambda: credentials.problem
        self._grpc_log = GrpcLog()
        self.stats.library_errors = lambda: self._grpc_log.errors
        streams = max(1, int(settings.max_calls * _STREAMS))
        self._service = ScalerService(
            scaler, self._pulse, settings.max_connection_age, streams, self.stats
        )
        self._health: Any = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._draining = False
        self._serving: bool | None = None
        self.port = 0
        """The port that is bound."""

    async def start(self) -> None:
        """Bind and accept.

        Raises:
            ListenError: the address is in use, is not an address of this machine, or is not
                allowed.
        """
        self._grpc_log.install()
        server = build(self._service.handler(), self._health, self._settings)
        await self._update_health()
        self.port = self._bind(server)
        await server.start()
        self._server = server
        tls = self._credentials is not None
        log.info("listening for KEDA", address=self._settings.host or "*", port=self.port, tls=tls)

    async def run(self) -> None:
        """Keep streams and health up to date until cancelled."""
        while True:
            await asyncio.sleep(self._settings.push_interval / PARTS)
            await self._update_health()
            self._pulse.beat()

    def check_files(self, now: float) -> None:
        """Reload certificates that changed on disk. Called every few seconds."""
        if self._credentials is not None:
            self._credentials.check(now)

    @property
    def validity(self) -> Validity | None:
        """The dates of the served certificate; None without TLS."""
        return self._credentials.validity if self._credentials else None

    async def drain(self) -> None:
        """Stop in order: health first, then the streams, then the remaining calls."""
        self._draining = True
        await self._update_health()
        await asyncio.sleep(self._drain)
        await self.stop()

    async def stop(self) -> None:
        """End streams with OK, accept no more calls, and let calls in progress finish."""
        self._pulse.close()
        if self._server is not None:
            await self._server.stop(self._grace)
            self._server = None

    def _bind(self, server: grpc.aio.Server) -> int:
        address = _address(self._settings)
        try:
            if self._credentials is None:
                return server.add_insecure_port(address)
            return server.add_secure_port(address, self._credentials.server)
        except RuntimeError:
            raise ListenError(
                f"cannot listen on {address} for KEDA: it is in use, or is not an address "
                f"of this machine; choose another with keda.host and keda.port, or set "
                f"keda.enabled to false"
            ) from None

    async def _update_health(self) -> None:
        serving = self._ready() and not self._draining
        if serving is self._serving:
            return
        self._serving = serving
        status = health_pb2.HealthCheckResponse
        for service in ("", NAME):
            await self._health.set(service, status.SERVING if serving else status.NOT_SERVING)


def build(handler: grpc.GenericRpcHandler, healthy: Any, settings: KedaSettings) -> grpc.aio.Server:
    """Return a server of KEDA's protocol, health and reflection that does not listen yet.

    Args:
        handler: the handler of KEDA's protocol.
        healthy: a ``grpc_health`` servicer.
    """
    server = grpc.aio.server(
        options=_arguments(settings), maximum_concurrent_rpcs=settings.max_calls
    )
    server.add_generic_rpc_handlers((handler,))
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    names = (NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    return server


def _address(settings: KedaSettings) -> str:
    host = settings.host or "::"
    try:
        if ip_address(host).version == 6:
            return f"[{host}]:{settings.port}"
    except ValueError:
        pass
    return f"{host}:{settings.port}"


def _arguments(settings: KedaSettings) -> list[tuple[str, int]]:
    """See ``include/grpc/impl/channel_arg_names.h``; times in milliseconds."""
    age = _ms(settings.max_connection_age)
    return [
        ("grpc.so_reuseport", 0),  # a port in use is an error
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.server_handshake_timeout_ms", _ms(_HANDSHAKE)),
        ("grpc.http2.settings_timeout", _ms(_HANDSHAKE)),
        ("grpc.max_connection_idle_ms", _ms(_IDLE)),
        ("grpc.max_connection_age_ms", age),
        ("grpc.max_connection_age_grace_ms", age + _ms(_MARGIN)),
        # Per connection; more than max_calls, because a client waits when this one is reached.
        ("grpc.max_concurrent_streams", 2 * settings.max_calls),
        ("grpc.max_receive_message_length", _MESSAGE),
        ("grpc.max_metadata_size", _HEADERS),
        ("grpc.absolute_max_metadata_size", _HEADERS),
        # Windows do not grow, because messages are small.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _MESSAGE),
        # A connection's buffer would otherwise grow to 4 MiB.
        ("grpc.experimental.tcp_read_chunk_size", _CHUNK),
        ("grpc.experimental.tcp_min_read_chunk_size", _CHUNK),
        ("grpc.experimental.tcp_max_read_chunk_size", _CHUNK),
        ("grpc.keepalive_time_ms", _ms(_KEEPALIVE)),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)

"""The server's addresses and limits, and the counts of what the limits refused."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Final

from apiservice.runtime.log import LateLog

log = LateLog(__name__)

_LOG_EVERY: Final = 60.0
"""Seconds between log lines about one limit."""

EVERY_ADDRESS: Final = ""
"""The default address of every listener: all addresses, IPv6 and IPv4."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Addresses and limits of the HTTPS listener. Sizes in bytes, times in seconds."""

    host: str = EVERY_ADDRESS
    """Address to bind; empty or ``::`` means every address, IPv6 and IPv4."""
    port: int = 6443
    """Port; 0 lets the system choose."""
    keep_alive: float = 130
    """An idle connection is closed after this time; 0 allows one request on each connection. Go's
    clients pool connections for 90 s (``net/http`` DefaultTransport): a shorter time makes their
    requests fail on a connection that is already closed."""
    handshake_timeout: float = 10
    """Time for the TLS handshake, as in Go's ``http.Transport``."""
    header_timeout: float = 10
    """Time from the first byte of a request, or from the handshake, to the end of its headers."""
    write_timeout: float = 30
    """A client is disconnected if it reads nothing for this time while more waits to be sent."""
    max_target: int = 16 << 10
    """Path and query; a label selector of an HPA has at most a few hundred bytes."""
    max_headers: int = 64 << 10
    """The whole head of a request. A proxied user's groups are one header line each."""
    max_header_lines: int = 2048
    """Each line takes about 150 bytes in memory beside its text. 64 KiB of groups are fewer."""
    max_header_line: int = 24 << 10
    """One line, name and value. The largest bearer token that is reviewed has 16 KiB."""
    max_body: int = 64 << 10
    """No route of an API server reads a body. A small one is discarded, a larger one refused."""
    read_bodies: bool = False
    """Whether the application gets bodies."""
    max_connections: int = 1000
    """Open connections, TLS handshakes in progress included."""
    reserved_connections: int = 250
    """Of these, the number reserved for connections with a front proxy's certificate."""
    max_connections_per_address: int = 100
    """Connections of one address, without those of front proxies."""
    evict_busy: bool = False
    """Whether a connection may be closed for another while its request is being answered."""
    max_handshakes: int = 128
    """TLS handshakes in progress at once."""
    handshakes_per_second: float = 200
    """For all addresses that are not a front proxy's; a quarter of it for one address."""
    max_pipelined: int = 32
    """Requests that may wait on a connection behind the one being answered."""
    stranger_header_lines: int = 128
    """Header lines of a request on a connection without a front proxy's certificate. Only a front
    proxy states groups, one line for each. Hundreds of strangers with 2048 lines each would take
    half a megabyte each."""
    stranger_pipelined: int = 1
    """``max_pipelined`` for such a connection."""
    drain_seconds: float = 5
    """How long a server still accepts connections after it was asked to stop, so that endpoints and
    proxies notice that it is no longer ready."""
    shutdown_seconds: float = 20
    """After that: how long requests in progress may take to finish."""
    linger: float = 1.0
    """How long the bytes of a refused client are still read and discarded: closing at once would
    reset the connection, and the refusal could be lost with it."""
    backlog: int = 1024


@dataclass(slots=True)
class ServingStats:
    """Counts of what the limits did, for metrics."""

    listener: str = "api"
    """The listener's name in the log."""
    refused: Counter[str] = field(default_factory=Counter)
    """Connections or requests that were refused or ended, by limit."""
    opened: int = 0
    """Connections whose handshake succeeded."""
    failed: int = 0
    """Handshakes that failed or took too long."""
    _said: dict[str, tuple[float, int]] = field(default_factory=dict, repr=False)
    """Limit -> when it was last logged, and how many it had refused until then."""

    def refuse(self, limit: str, address: str, **facts: str) -> None:
        """Count a connection that a limit refused or ended; log it once a minute, with facts."""
        self.refused[limit] += 1
        total, now = self.refused[limit], time.monotonic()
        logged, before = self._said.get(limit, (-inf, 0))
        if now - logged >= _LOG_EVERY:
            self._said[limit] = (now, total)
            log.warning(
                "connections refused",
                listener=self.listener,
                limit=limit,
                count=total - before,
                last_address=address,
                **facts,
            )

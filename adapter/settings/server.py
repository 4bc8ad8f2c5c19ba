"""The HTTPS listener."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from adapter.settings.types import Interval, Port, Seconds, Section
from apiservice.serving import ServingOptions

_DEFAULTS: Final = ServingOptions()


def _subject(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be a DNS name or an address, an international name in its xn-- form")
    return text


Subject = Annotated[str, AfterValidator(_subject)]


class ServerSettings(Section):
    """The HTTPS listener of the aggregated API server."""

    host: str = _DEFAULTS.host
    """Address to listen on. Empty or ``::``: every address, IPv6 and IPv4, or IPv4 alone where
    the machine has no IPv6. ``0.0.0.0``: IPv4 only."""
    port: Port = _DEFAULTS.port
    """TCP port; 0 takes a free one."""
    cert_file: Path | None = None
    """Serving certificate (PEM), reloaded when it changes. None: made by ourselves."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    cert_dir: Path = Path("/tmp/gpu-metrics-adapter/certs")  # noqa: S108 - an emptyDir in the chart
    """Where the self-signed certificate is kept; ``ca.crt`` in it is the APIService's caBundle."""
    cert_names: Annotated[tuple[Subject, ...], Field(min_length=1)] = (
        "gpu-metrics-adapter.gpu-metrics.svc",
        "localhost",
        "127.0.0.1",
    )
    """Names and addresses in the self-signed certificate; the Service's own name first."""
    keep_alive: Annotated[Interval, Field(ge=91)] = _DEFAULTS.keep_alive
    """Idle seconds before a connection is closed; above 90, which is how long Go pools one."""
    header_timeout: Interval = _DEFAULTS.header_timeout
    """Seconds a client may take to send a request's head."""
    write_timeout: Interval = _DEFAULTS.write_timeout
    """Seconds a client may stop reading an answer before it is cut off."""
    max_header_bytes: Annotated[int, Field(ge=1024, le=1 << 20)] = _DEFAULTS.max_headers
    """Largest request head accepted, URL included."""
    max_connections: Annotated[int, Field(ge=1)] = _DEFAULTS.max_connections
    """Connections at once, TLS handshakes in progress included. Where they are used up, the
    connection of a client without a front proxy's certificate that has been idle for longest
    is closed for a new one; a new one is closed where none is idle."""
    reserved_connections: Annotated[int, Field(ge=0)] = _DEFAULTS.reserved_connections
    """Of ``max_connections``, only for the API server: connections with a front proxy's
    certificate."""
    max_connections_per_address: Annotated[int, Field(ge=1)] = _DEFAULTS.max_connections_per_address
    """Connections of one address without a front proxy's certificate. Beyond it the address
    loses its own idle ones."""
    max_handshakes: Annotated[int, Field(ge=1)] = _DEFAULTS.max_handshakes
    """TLS handshakes in progress at once. Beyond it the oldest one of the address that has most
    of them is ended."""
    handshakes_per_second: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = (
        _DEFAULTS.handshakes_per_second
    )
    """TLS handshakes that may begin in a second, and twice as many at once; a quarter of it for
    one address. An address from which a front proxy's certificate came has four times as many
    for itself."""
    probe_port: Port | None = None
    """TCP port of a second listener that answers ``/healthz``, ``/livez`` and ``/readyz`` in
    plain HTTP, for the kubelet; 0 takes a free one. None: there is no such listener. The chart
    sets it to 8080 unless you do."""
    drain: Seconds = _DEFAULTS.drain_seconds
    """Seconds from SIGTERM, with readiness failing, until the listener closes."""
    grace: Interval = _DEFAULTS.shutdown_seconds
    """Seconds that requests in flight may take after that."""

    @model_validator(mode="after")
    def _places(self) -> ServerSettings:
        if self.max_connections <= self.reserved_connections + self.max_handshakes:
            raise ValueError(
                f"max_connections ({self.max_connections}) must be more than "
                f"reserved_connections ({self.reserved_connections}) and max_handshakes "
                f"({self.max_handshakes}) together, or no other client is served"
            )
        return self

    @model_validator(mode="after")
    def _pair(self) -> ServerSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        return self

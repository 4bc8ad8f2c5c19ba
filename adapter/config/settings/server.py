"""Settings: the HTTPS listener."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from adapter.config.settings.types import ADVANCED, Interval, Port, Seconds, Section
from apiservice.http.options import ServingOptions

_DEFAULTS: Final = ServingOptions()


def _subject(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be a DNS name or an address, an international name in its xn-- form")
    return text


Subject = Annotated[str, AfterValidator(_subject)]


class ServerSettings(Section):
    """The HTTPS listener of the aggregated API server."""

    host: Annotated[str, ADVANCED] = _DEFAULTS.host
    """Address to listen on. Empty or ``::``: IPv6 and IPv4, as far as the machine has them.
    ``0.0.0.0``: IPv4 only."""
    port: Port = _DEFAULTS.port
    """TCP port. With 0, the system chooses a free port."""
    cert_file: Path | None = None
    """Serving certificate (PEM). If not set, a self-signed one."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    cert_dir: Annotated[Path | None, ADVANCED] = None
    """Directory of the self-signed certificate, whose ``ca.crt`` is the APIService's caBundle. If
    not set, ``gpu-metrics-adapter/certs`` in ``XDG_STATE_HOME`` (``~/.local/state``, in the image
    ``/tmp``)."""
    cert_names: Annotated[tuple[Subject, ...], Field(min_length=1), ADVANCED] = (
        "gpu-metrics-adapter.gpu-metrics.svc",
        "localhost",
        "127.0.0.1",
    )
    """Names and addresses in the self-signed certificate, first that of the Service."""
    max_header_bytes: Annotated[int, Field(ge=1024, le=1 << 20), ADVANCED] = _DEFAULTS.max_headers
    """Largest request head that is accepted, URL included."""
    max_connections: Annotated[int, Field(ge=1), ADVANCED] = _DEFAULTS.max_connections
    """Open connections, TLS handshakes included. When all are in use, a new client replaces the
    longest idle connection without a front proxy's certificate, or is refused."""
    reserved_connections: Annotated[int, Field(ge=0), ADVANCED] = _DEFAULTS.reserved_connections
    """Part of ``max_connections`` for the API server: connections with a front proxy's certificate.
    """
    max_connections_per_address: Annotated[int, Field(ge=1), ADVANCED] = (
        _DEFAULTS.max_connections_per_address
    )
    """Connections of one address without a front proxy's certificate. Beyond them, its idle ones
    are closed."""
    max_handshakes: Annotated[int, Field(ge=1), ADVANCED] = _DEFAULTS.max_handshakes
    """TLS handshakes in progress. Beyond them, the oldest one of the address that has the most is
    ended."""
    handshakes_per_second: Annotated[
        float, Field(gt=0, le=100_000, allow_inf_nan=False), ADVANCED
    ] = _DEFAULTS.handshakes_per_second
    """TLS handshakes that may begin per second, with bursts of twice as many. One address may use a
    quarter; one that has presented a front proxy's certificate may use four times as many."""
    probe_port: Annotated[Port | None, ADVANCED] = None
    """TCP port that answers ``/healthz``, ``/livez`` and ``/readyz`` over plain HTTP. The chart
    sets 8080."""
    drain: Annotated[Seconds, ADVANCED] = _DEFAULTS.drain_seconds
    """Seconds between SIGTERM and the end of the listener. Readiness fails meanwhile."""
    grace: Annotated[Interval, ADVANCED] = _DEFAULTS.shutdown_seconds
    """Seconds after ``drain`` that requests in flight have to finish."""

    @model_validator(mode="after")
    def _check_places(self) -> ServerSettings:
        if self.max_connections <= self.reserved_connections + self.max_handshakes:
            raise ValueError(
                f"max_connections ({self.max_connections}) must be more than "
                f"reserved_connections ({self.reserved_connections}) and max_handshakes "
                f"({self.max_handshakes}) together, or no other client would be served"
            )
        return self

    @model_validator(mode="after")
    def _check_pair(self) -> ServerSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        return self

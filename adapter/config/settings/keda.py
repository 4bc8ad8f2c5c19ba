"""Settings: the listener for KEDA's external scaler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from adapter.config.settings.types import ADVANCED, Interval, Port, Section
from apiservice.http.options import EVERY_ADDRESS


class KedaSettings(Section):
    """The gRPC listener for KEDA's ``external`` triggers: see docs/keda.md."""

    enabled: bool = True
    """Serve KEDA. If false, the process needs about 30 MB less memory."""
    host: Annotated[str, ADVANCED] = EVERY_ADDRESS
    """Address to listen on. Empty or ``::``: IPv6 and IPv4, as far as the machine has them.
    ``0.0.0.0``: IPv4 only."""
    port: Annotated[Port, ADVANCED] = 6000
    """TCP port. With 0, the system chooses a free port."""
    tls: bool = False
    """Use TLS, with ``cert_file`` or the certificate of the HTTPS listener. Triggers then need
    ``enableTLS: "true"`` and the CA."""
    cert_file: Path | None = None
    """Certificate (PEM) for this listener only."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    client_ca_file: Path | None = None
    """CA (PEM) of client certificates, for mutual TLS."""
    max_connection_age: Annotated[Interval, ADVANCED] = 300
    """Seconds (± 10 %) after which a client must reconnect, which may lead to another replica."""
    push_interval: Annotated[Interval, Field(le=60), ADVANCED] = 1
    """Seconds between two checks for ``external-push`` triggers."""
    max_calls: Annotated[int, Field(ge=1), ADVANCED] = 5000
    """Calls at the same time, open streams included, which may use four fifths. Others get
    RESOURCE_EXHAUSTED. KEDA keeps two streams for each ``external-push`` trigger, one before
    2.21."""
    max_connections: Annotated[int, Field(ge=1), ADVANCED] = 32
    """Open connections, TLS handshakes included; further ones are closed. KEDA keeps one for each
    address, CA and client certificate of triggers."""
    scaled_objects: bool = False
    """Watch ScaledObjects, so that a trigger without ``podSelector`` selects the pods of its
    ``scaleTargetRef``. Needs the right to list and watch scaledobjects.keda.sh."""

    @model_validator(mode="after")
    def _check_consistency(self) -> KedaSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        if not self.tls and (self.cert_file or self.client_ca_file):
            raise ValueError("cert_file and client_ca_file are for TLS: set tls to true")
        return self

"""KEDA's external scaler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from adapter.settings.types import Interval, Port, Section
from apiservice.serving import EVERY_ADDRESS


class KedaSettings(Section):
    """The gRPC listener that KEDA's ``external`` triggers ask: see docs/keda.md."""

    enabled: bool = True
    """Serve KEDA. False saves about 30 MB."""
    host: str = EVERY_ADDRESS
    """Address to listen on. Empty or ``::``: every address, IPv6 and IPv4, or IPv4 alone where
    the machine has no IPv6. ``0.0.0.0``: IPv4 only."""
    port: Port = 6000
    """TCP port; 0 takes a free one."""
    tls: bool = False
    """Speak TLS, with ``cert_file`` or else with the HTTPS listener's own certificate. The
    trigger then needs ``enableTLS: "true"`` and the CA in a TriggerAuthentication."""
    cert_file: Path | None = None
    """Certificate (PEM) of this listener alone, reloaded when it changes."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    client_ca_file: Path | None = None
    """CA (PEM) of the client certificates that are then required (mutual TLS), reloaded when
    it changes. None: everybody who reaches the port may ask."""
    max_connection_age: Interval = 300
    """Seconds after which a connection is asked to end, give or take a tenth, so that KEDA's
    next one may reach another replica. Streams end in order within the same time again."""
    push_interval: Annotated[Interval, Field(le=60)] = 1
    """Seconds between looks at whether what ``external-push`` triggers wait for has changed. A
    poll may be told what another was so long before, at most a second, although values change;
    never past a value's age, or a change of pods."""
    max_calls: Annotated[int, Field(ge=1)] = 5000
    """Calls, open streams included, served at once; further ones are RESOURCE_EXHAUSTED. Streams
    may take four fifths of them. An ``external-push`` trigger keeps one or two streams open."""
    max_connections: Annotated[int, Field(ge=1)] = 32
    """Connections open at once, those in their handshake included; further ones are closed. KEDA
    keeps one for each address, CA and client certificate that triggers name."""
    scaled_objects: bool = False
    """Watch ScaledObjects, so that a trigger without ``podSelector`` means the pods of its own
    ``scaleTargetRef``. Needs the right to list and watch scaledobjects.keda.sh."""

    @model_validator(mode="after")
    def _consistent(self) -> KedaSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        if not self.tls and (self.cert_file or self.client_ca_file):
            raise ValueError("cert_file and client_ca_file are for TLS: set tls to true")
        return self

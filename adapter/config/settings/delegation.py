"""Settings: other servers of the metrics APIs, asked for the metrics that the adapter lacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from adapter.config.settings.types import ADVANCED, Interval, Port, Section
from apiservice.delegate.options import TIMEOUT
from apiservice.wire.metricvalues import CUSTOM_GROUP, EXTERNAL_GROUP

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ACCOUNT: Final = re.compile(r"([^/\s]+/[^/\s]+)?")
_ADDRESS: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError("must be a name of lower-case letters, digits and hyphens")
    return text


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise ValueError("must be NAMESPACE/NAME, or empty")
    return text


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("must be HOST:PORT")
    return text


Label = Annotated[str, AfterValidator(_label)]
Named = Annotated[str, AfterValidator(_account)]


class DelegateServiceSettings(Section):
    """The Service of a delegate."""

    namespace: Label
    """Namespace of the Service."""
    name: Label
    """Name of the Service."""
    port: Annotated[Port, Field(ge=1)] = 443
    """Port of the Service."""


class DelegateSettings(Section):
    """One delegate."""

    name: Label
    """Name in logs, messages and metrics."""
    service: DelegateServiceSettings
    """The Service by which the adapter reaches it."""
    groups: tuple[Literal["custom", "external"], ...] = ("custom",)
    """Its APIs: ``custom`` (``custom.metrics.k8s.io``) and ``external`` (which needs
    ``external.enabled``)."""
    names: tuple[Annotated[str, Field(min_length=1, max_length=512)], ...] = ()
    """Patterns of the metrics that the adapter asks it for, such as ``http_*``. If empty, those
    that its discovery lists; a server that lists nothing needs this key."""
    ca_file: Path | None = None
    """CA (PEM) of its certificate. Without this key and ``ca``, the system's CAs are trusted."""
    ca: str = ""
    """CA of its certificate, as PEM text, such as the ``caBundle`` of its APIService."""
    insecure_skip_tls_verify: bool = False
    """Do not verify its certificate. Anyone who can redirect the connection can then answer and
    read the token."""
    server_name: Annotated[str, ADVANCED] = ""
    """Name that its certificate must have. If empty, ``NAME.NAMESPACE.svc``."""
    address: Annotated[str, AfterValidator(lambda text: text and _address(text)), ADVANCED] = ""
    """``HOST:PORT`` to connect to. If empty, ``NAME.NAMESPACE.svc`` and the port of the Service."""
    timeout: Annotated[Interval, Field(le=50), ADVANCED] = TIMEOUT
    """Seconds that one request may take, its time in the queue included."""

    @model_validator(mode="after")
    def _check_trust(self) -> DelegateSettings:
        if sum((self.ca_file is not None, bool(self.ca), self.insecure_skip_tls_verify)) > 1:
            raise ValueError(
                "ca_file, ca and insecure_skip_tls_verify exclude each other: keep one"
            )
        if not self.groups:
            raise ValueError("groups must not be empty: name custom, external or both")
        return self

    @property
    def host(self) -> str:
        """The DNS name of the Service."""
        return f"{self.service.name}.{self.service.namespace}.svc"

    @property
    def api_groups(self) -> frozenset[str]:
        """The API groups for which it is asked."""
        full = {"custom": CUSTOM_GROUP, "external": EXTERNAL_GROUP}
        return frozenset(full[group] for group in self.groups)


class DelegationSettings(Section):
    """Other servers of the metrics APIs: see docs/delegation.md."""

    delegates: tuple[DelegateSettings, ...] = ()
    """The servers, in the order in which the adapter asks them."""
    service_account: Annotated[Named, ADVANCED] = ""
    """``NAMESPACE/NAME`` of the ServiceAccount as which the adapter asks them, which should have
    the right to read metrics only. The chart creates it and sets this key."""
    token_file: Path | None = None
    """File with a bearer token, instead of ``service_account``."""
    own_service: Annotated[Named, ADVANCED] = ""
    """``NAMESPACE/NAME`` of the adapter's own Service, which must not be a delegate. The chart sets
    this key."""

    @model_validator(mode="after")
    def _check_consistency(self) -> DelegationSettings:
        if not self.delegates:
            return self
        if self.service_account and self.token_file is not None:
            raise ValueError("service_account and token_file exclude each other: keep one")
        names: set[str] = set()
        for index, delegate in enumerate(self.delegates):
            if delegate.name in names:
                raise ValueError(f"delegates.{index}.name: {delegate.name} is used twice")
            names.add(delegate.name)
            if f"{delegate.service.namespace}/{delegate.service.name}" == self.own_service:
                raise ValueError(
                    f"delegates.{index}.service: {self.own_service} is the adapter's own Service: "
                    "name the Service of the other server"
                )
        return self

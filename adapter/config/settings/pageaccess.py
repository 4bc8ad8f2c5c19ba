"""Settings: TLS and credentials of pages, under the names of Prometheus' scrape configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from adapter.config.settings.types import Section
from adapter.pipeline.sources.scrape.pageaccess import PageAccess


class TlsConfig(Section):
    """TLS of a page, as ``tls_config`` in Prometheus."""

    ca_file: Path | None = None
    """CA of the certificate. If not set, ``source.scrape.ca_file`` applies."""
    server_name: str = ""
    """Name that the certificate must have. If empty, the address of the pod or the host of the
    URL."""
    insecure_skip_verify: bool = False
    """Accept any certificate, such as one that kube-rbac-proxy signs itself. Anyone who can
    redirect the connection can then answer, and read the credentials."""


class PageAuthorization(Section):
    """A bearer token for a page, as ``authorization`` in Prometheus."""

    credentials_file: Path
    """File with the token. The adapter reads it before each scrape."""


class BasicAuth(Section):
    """Basic authentication for a page, as ``basic_auth`` in Prometheus."""

    username: Annotated[str, Field(min_length=1)]
    """The user."""
    password_file: Path
    """File with the password. The adapter reads it before each scrape."""


class PageAccessSettings(Section):
    """TLS and credentials of an exporter's page."""

    tls_config: TlsConfig | None = None
    """TLS of the page, with the keys ``ca_file``, ``server_name`` and ``insecure_skip_verify`` of
    ``source.scrape.inference.tls_config``."""
    authorization: PageAuthorization | None = None
    """Bearer token, in the file of the key ``credentials_file``, read before each scrape. It
    replaces ``source.scrape.bearer_token_file``."""
    basic_auth: BasicAuth | None = None
    """Basic authentication, with the keys ``username`` and ``password_file``, in the same way."""

    @property
    def credentials(self) -> str:
        """The key that sets credentials; empty without one.

        Raises:
            ValueError: both keys are set.
        """
        if self.authorization is not None and self.basic_auth is not None:
            raise ValueError("authorization and basic_auth exclude each other: keep one")
        if self.authorization is not None:
            return "authorization"
        return "basic_auth" if self.basic_auth is not None else ""


def page_access(tls: TlsConfig | None, credentials: PageAccessSettings | None = None) -> PageAccess:
    """Return how a page is reached; ``credentials`` are for exporters only."""
    tls = tls or TlsConfig()
    bearer = credentials.authorization if credentials else None
    basic = credentials.basic_auth if credentials else None
    return PageAccess(
        ca_file=tls.ca_file,
        server_name=tls.server_name,
        insecure_skip_verify=tls.insecure_skip_verify,
        credentials_file=bearer.credentials_file if bearer else None,
        username=basic.username if basic else "",
        password_file=basic.password_file if basic else None,
    )

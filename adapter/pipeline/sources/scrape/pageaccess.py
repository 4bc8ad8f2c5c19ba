"""How a page is reached besides its address: which certificate is trusted, and which credentials
are sent.

A credential goes only to the exporters that the settings name it for. Anyone who controls a pod can
read what is sent to it, so nothing that a pod says about itself selects one.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from adapter.pipeline.sources.login.credentials import SecretFile, TlsClient, basic_authorization


class PageAccess(NamedTuple):
    """How one page is reached. The names are those of Prometheus' scrape configuration."""

    ca_file: Path | None = None
    """CA of the certificate; None means that of all exporters."""
    server_name: str = ""
    """Name that the certificate must have; empty means the host of the URL."""
    insecure_skip_verify: bool = False
    credentials_file: Path | None = None
    """File with a bearer token."""
    username: str = ""
    password_file: Path | None = None
    """For basic authentication."""
    withheld: bool = False
    """No credential is sent, not even that of all exporters."""

    @property
    def authenticates(self) -> bool:
        """Whether the page has credentials of its own."""
        return self.credentials_file is not None or bool(self.username)

    def without_credentials(self) -> PageAccess:
        """Return the access to a page whose address a pod chose."""
        return self._replace(credentials_file=None, username="", password_file=None, withheld=True)


DEFAULT: Final = PageAccess()


class PageKeys:
    """The TLS contexts and credentials for pages, from files that are read again when they change.

    Args:
        ca_file: CA of pages without one of their own; None trusts the system's CAs.
        token_file: bearer token for exporters without credentials of their own.
        accesses: how pages are reached according to the settings.

    Raises:
        CredentialError: a file cannot be used.
    """

    def __init__(
        self, ca_file: Path | None, token_file: Path | None, accesses: Iterable[PageAccess]
    ) -> None:
        self._ca_file = ca_file
        self._contexts: dict[tuple[Path | None, bool], TlsClient] = {}
        self._secrets: dict[Path, SecretFile] = {}
        self._token = SecretFile(token_file, "bearer_token_file") if token_file else None
        for access in (DEFAULT, *accesses):
            self.context(access)
            self.authorization(access)

    def context(self, access: PageAccess) -> ssl.SSLContext:
        """Return the context for a new connection; raises CredentialError."""
        key = access.ca_file or self._ca_file, access.insecure_skip_verify
        if key not in self._contexts:  # at most two for each CA of the settings
            self._contexts[key] = TlsClient(key[0], verify=not access.insecure_skip_verify)
        return self._contexts[key].current()

    def authorization(self, access: PageAccess) -> str:
        """Return the value of the header; empty without credentials. Raises CredentialError."""
        if access.withheld:
            return ""
        if access.username:
            password = self._secret(access.password_file, "basic_auth.password_file")
            return basic_authorization(access.username, password)
        if access.credentials_file is not None:
            return (
                f"Bearer {self._secret(access.credentials_file, 'authorization.credentials_file')}"
            )
        return f"Bearer {self._token.read()}" if self._token is not None else ""

    def _secret(self, path: Path | None, setting: str) -> str:
        if path is None:
            return ""
        if path not in self._secrets:
            self._secrets[path] = SecretFile(path, setting)
        return self._secrets[path].read()

"""Read the credentials of a source from files: secrets, and TLS certificates and CAs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from adapter.sources.errors import CredentialError
from apiservice.runtime.filestamp import Stamp, stamp


class SecretFile:
    """A secret in a file, read again when the file changes: tokens rotate within the hour.

    Args:
        path: the file.
        setting: the settings key that names the file, for messages.

    Raises:
        CredentialError: the file cannot be read or holds no secret. Settings that name such a
            file are rejected, so that a reload cannot take the values away.
    """

    def __init__(self, path: Path, setting: str) -> None:
        self._path = path
        self._setting = setting
        self._stamp: Stamp | None = None
        self._text = ""
        self.read()

    def read(self) -> str:
        """Return the secret without surrounding blanks; raises CredentialError."""
        found = stamp([self._path])
        if found != self._stamp:
            try:
                self._text = self._path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                said = getattr(error, "strerror", None) or "it is not text"
                raise CredentialError(
                    f"{self._setting}: {self._path} cannot be read ({said}); mount the secret there"
                ) from error
            if not self._text or not self._text.isprintable():
                raise CredentialError(
                    f"{self._setting}: {self._path} does not hold a secret of one line; write it "
                    "again"
                )
            self._stamp = found
        return self._text


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a TLS client."""

    ca_file: Path | None = None
    """None trusts the system's CAs."""
    cert_file: Path | None = None
    key_file: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a TLS context from the current files.

        Raises:
            CredentialError: a file is missing or holds no certificate or key.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CredentialError(
                f"CA file {self.ca_file}: {error}; give one or more PEM CAs"
            ) from error
        if self.cert_file is not None:
            try:
                context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, ssl.SSLError) as error:
                raise CredentialError(
                    f"client certificate {self.cert_file} with key {self.key_file}: {error}; "
                    "give a PEM certificate and its own key"
                ) from error
        return context

    def stamp(self) -> Stamp:
        """Return a stamp that changes when a file changes."""
        return stamp(path for path in (self.ca_file, self.cert_file, self.key_file) if path)


class TlsClient:
    """The current TLS context, created again when a file changes."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp = files.stamp()
        self._context = files.context()

    def current(self) -> ssl.SSLContext:
        """Return the context for new connections; raises CredentialError while a file is
        invalid."""
        found = self._files.stamp()
        if found != self._stamp:
            self._context = self._files.context()
            self._stamp = found
        return self._context

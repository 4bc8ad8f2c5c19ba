"""Read the credentials of a source from files: secrets, and TLS certificates and CAs."""

from __future__ import annotations

import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from math import inf
from pathlib import Path

from adapter.pipeline.sources.errors import CredentialError
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.servertrust import client_context
from apiservice.runtime.validity import Validity, validity_of


def basic_authorization(user: str, password: str) -> str:
    """Return the header of basic authentication (RFC 7617), in UTF-8."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


class SecretFile:
    """A secret in a file, read again when the file changes: tokens rotate within the hour.

    Args:
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
        new_stamp = stamp([self._path])
        if new_stamp != self._stamp:
            try:
                self._text = self._path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise CredentialError(
                    f"{self._setting}: {self._path} cannot be read ({why}); mount the secret there"
                ) from error
            if not self._text or not self._text.isprintable():
                raise CredentialError(
                    f"{self._setting}: {self._path} does not hold a secret of one line; write it "
                    "again"
                )
            self._stamp = new_stamp
        return self._text


class TlsClient:
    """The TLS context of a client, created again when a file changes.

    Args:
        ca_file: PEM; None trusts the system's CAs.
        cert_file: the client's certificate, with ``key_file``; None presents none.
        verify: verify the server's certificate.

    A server that gets an expired certificate of a client ends the connection, with an alert of TLS
    at best. So the dates are checked here at each use.

    Raises:
        CredentialError: a file is missing or holds no certificate or key.
    """

    def __init__(
        self,
        ca_file: Path | None = None,
        cert_file: Path | None = None,
        key_file: Path | None = None,
        *,
        verify: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._verify = verify
        self._clock = clock
        self._dates = Validity(-inf, inf)
        """The dates of the client's certificate."""
        self._ca_file, self._cert_file, self._key_file = ca_file, cert_file, key_file
        self._files = [path for path in (ca_file, cert_file, key_file) if path]
        self._stamp = stamp(self._files)
        self._context = self._read()

    def current(self) -> ssl.SSLContext:
        """Return the context for new connections; raises CredentialError while a file is
        invalid, or the client's certificate is outside its dates."""
        new_stamp = stamp(self._files)
        if new_stamp != self._stamp:
            self._context = self._read()
            self._stamp = new_stamp
        if not self._dates.starts <= (now := self._clock()) < self._dates.ends:
            from apiservice.tls.certificates import outside_of  # noqa: PLC0415 - 10 MB

            raise CredentialError(
                f"client certificate {self._cert_file} {outside_of(self._dates, now)}"
            )
        return self._context

    def _read(self) -> ssl.SSLContext:
        try:
            context = client_context(self._ca_file)
        except OSError as error:  # SSLError is an OSError
            raise CredentialError(
                f"CA file {self._ca_file}: {error.strerror or error}; give one or more PEM CAs"
            ) from error
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self._cert_file is not None:
            try:
                context.load_cert_chain(self._cert_file, self._key_file)
            except OSError as error:
                raise CredentialError(
                    f"client certificate {self._cert_file} with key {self._key_file}: "
                    f"{error.strerror or error}; give a PEM certificate and its own key"
                ) from error
            self._dates = _dates(self._cert_file)
        return context


def _dates(file: Path) -> Validity:
    """Return the dates of the first certificate of a file that OpenSSL has loaded."""
    from cryptography import x509  # noqa: PLC0415 - 10 MB, and few stores want a certificate

    try:
        return validity_of(x509.load_pem_x509_certificates(file.read_bytes())[0])
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CredentialError(
            f"client certificate {file}: {why}; give a PEM certificate"
        ) from error

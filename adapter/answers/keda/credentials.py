"""TLS of the gRPC listener: its certificate and its clients' CA, reloaded when the files change.

gRPC requests the configuration at every new connection; open connections keep theirs. Files that
cannot be served leave the last good ones in place, and ``problem`` reports it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import grpc
import structlog
from cryptography import x509

from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.validity import Validity
from apiservice.tls.certificates import CertificateFiles, CertificatePairError, read_pair

log = structlog.get_logger(__name__)


class _Material(NamedTuple):
    stamp: Stamp
    validity: Validity
    certificate: bytes
    key: bytes
    client_ca: bytes | None


class Credentials:
    """The certificate and CA that the listener serves TLS with.

    Raises:
        CertificatePairError: a file cannot be used at the start.
    """

    def __init__(self, files: CertificateFiles, client_ca: Path | None, now: float) -> None:
        self._files = files
        self._client_ca = client_ca
        self._current = self._read(now)
        self._given = self._current
        self.problem = ""
        """Why the current files are not served. Empty if they are served."""
        self.server = grpc.dynamic_ssl_server_credentials(
            _configuration(self._current),
            self._fetch,  # type: ignore[arg-type]  # None is "no change": grpc/__init__.py
            require_client_authentication=client_ca is not None,
        )
        """gRPC's credentials for the listener."""

    @property
    def validity(self) -> Validity:
        """The dates of the served certificate."""
        return self._current.validity

    def check(self, now: float) -> None:
        """Serve the current files if they changed. Called every few seconds."""
        if not self.problem and self._current.stamp == self._stamp():
            return
        try:
            self._current = self._read(now)
        except CertificatePairError as error:
            if str(error) != self.problem:
                log.warning(
                    "KEDA certificate rejected; the last good one stays in use", error=str(error)
                )
            self.problem = str(error)
            return
        self.problem = ""
        log.info("KEDA certificate loaded", file=str(self._files.certificate))

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Runs in gRPC's own threads. None means no change."""
        material = self._current
        if material is self._given:
            return None
        self._given = material
        return _configuration(material)

    def _read(self, now: float) -> _Material:
        # Before reading: a change while reading is noticed at the next check.
        stamped = self._stamp()
        validity = read_pair(self._files, now).validity
        try:
            certificate, key = self._files.certificate.read_bytes(), self._files.key.read_bytes()
        except OSError as error:
            raise CertificatePairError(f"{error.filename}: {error.strerror}") from error
        return _Material(stamped, validity, certificate, key, _client_ca(self._client_ca))

    def _stamp(self) -> Stamp:
        ca = (self._client_ca,) if self._client_ca else ()
        return stamp((self._files.certificate, self._files.key, *ca))


def _configuration(material: _Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], material.client_ca
    )


def _client_ca(path: Path | None) -> bytes | None:
    return None if path is None else read_client_ca(path)


def read_client_ca(path: Path) -> bytes:
    """Return the content of a file of CAs in PEM.

    Raises:
        CertificatePairError: it cannot be read, or holds no certificate.
    """
    try:
        content = path.read_bytes()
        x509.load_pem_x509_certificates(content)
    except OSError as error:
        raise CertificatePairError(
            f"KEDA client CA {path}: {error.strerror}; name a file that this process can read"
        ) from error
    except Exception as error:  # the library raises many kinds of errors about a file
        raise CertificatePairError(
            f"KEDA client CA {path} contains no PEM certificate: {error}; give a file that "
            f"begins with -----BEGIN CERTIFICATE-----"
        ) from error
    return content

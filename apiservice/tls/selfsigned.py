"""The self-signed serving certificate and its CA in a folder; renewed before it expires.

An APIService carries the CA's certificate as ``caBundle``. So the CA and its key are kept, and
outlive the serving certificates: a renewed certificate needs no new bundle.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import structlog
from cryptography import x509

from apiservice.tls.authority import Authority, AuthorityError, new_authority, read_authority
from apiservice.tls.certificates import (
    CertificateFiles,
    CertificatePairError,
    ServingCertificate,
    read_pair,
)

log = structlog.get_logger(__name__)

CA_DAYS = 3650
CERTIFICATE_DAYS = 365


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """A folder that keeps a CA (``ca.crt``, ``ca.key``) and a pair (``tls.crt``, ``tls.key``)."""

    folder: Path
    names: tuple[str, ...]
    """DNS names and addresses, such as ``adapter.gpu-metrics.svc``; the first is the CN."""

    @property
    def files(self) -> CertificateFiles:
        """The serving pair."""
        return CertificateFiles(self.folder / "tls.crt", self.folder / "tls.key")

    @property
    def ca(self) -> Path:
        """The CA's certificate, PEM: what clients trust."""
        return self.folder / "ca.crt"

    def ensure(self, now: float) -> ServingCertificate:
        """Issue what is missing, does not fit the names, or has under a third of its life left.

        Raises:
            CertificatePairError: the folder cannot be written.
        """
        try:
            return self._ensure(now)
        except OSError as error:
            raise CertificatePairError(
                f"a self-signed certificate cannot be kept in {self.folder}: "
                f"{error.strerror or error}; name a folder that this process may write, or "
                f"give a certificate and key"
            ) from error

    def _ensure(self, now: float) -> ServingCertificate:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority, made = self._authority(now)
        if not made:
            usable = self._usable(authority, now)
            if usable is not None:
                return usable
        issued = authority.issue(self.names, now, CERTIFICATE_DAYS)
        # The key first: a reader between the two sees a pair that does not fit, and waits.
        _write(self.files.key, issued.key)
        _write(self.files.certificate, issued.certificate, mode=0o644)
        log.info("serving certificate issued", folder=str(self.folder), names=list(self.names))
        return read_pair(self.files, now)

    def _usable(self, authority: Authority, now: float) -> ServingCertificate | None:
        try:
            pair = read_pair(self.files, now)
            leaf = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
            leaf.verify_directly_issued_by(authority.certificate)
        except Exception:  # of many kinds; in every case another certificate is issued
            return None
        return pair if pair.covers(self.names) and not pair.needs_renewal(now) else None

    def _authority(self, now: float) -> tuple[Authority, bool]:
        """Return the CA, and whether it was created now."""
        key_path = self.folder / "ca.key"
        try:
            read_pair(CertificateFiles(self.ca, key_path), now)
            authority = read_authority(self.ca.read_bytes(), key_path.read_bytes())
        except (CertificatePairError, AuthorityError):
            pass
        else:
            if authority.ends - now > CERTIFICATE_DAYS * 86400:
                return authority, False
        authority = new_authority(now, CA_DAYS)
        _write(key_path, authority.key_pem)
        _write(self.ca, authority.certificate_pem, mode=0o644)
        return authority, True


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically: no reader sees a part of it, and no other user can read it."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

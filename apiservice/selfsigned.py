"""A serving certificate for whoever brings none: our own CA and a certificate under it.

The CA's certificate is what an APIService carries as ``caBundle``, so the CA is kept (its
key beside it) and outlives the certificates: a renewed certificate needs no new bundle.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.certificates import (
    CertificateFiles,
    CertificatePairError,
    ServingCertificate,
    canonical_name,
    read_pair,
)

log = structlog.get_logger(__name__)

CA_DAYS = 3650
CERTIFICATE_DAYS = 365
_BACKDATE = timedelta(hours=1)
"""Clocks of a cluster's nodes differ a little."""


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
        """Make what is missing, does not fit the names, or has under a third of its life left.

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
            found = self._usable(authority, now)
            if found is not None:
                return found
        self._issue(authority, now)
        log.info("serving certificate made", folder=str(self.folder), names=list(self.names))
        return read_pair(self.files, now)

    def _usable(self, authority: _Authority, now: float) -> ServingCertificate | None:
        try:
            found = read_pair(self.files, now)
            leaf = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
            leaf.verify_directly_issued_by(authority.certificate)
        except (CertificatePairError, ValueError, TypeError, InvalidSignature):
            return None
        return found if found.covers(self.names) and not found.aged(now) else None

    def _authority(self, now: float) -> tuple[_Authority, bool]:
        """The CA, and whether it was made just now."""
        key_path = self.folder / "ca.key"
        try:
            read_pair(CertificateFiles(self.ca, key_path), now)
            certificate = x509.load_pem_x509_certificate(self.ca.read_bytes())
            key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
        except (CertificatePairError, ValueError):
            certificate, key = None, None
        if isinstance(key, ec.EllipticCurvePrivateKey) and certificate is not None:
            remaining = certificate.not_valid_after_utc.timestamp() - now
            if remaining > CERTIFICATE_DAYS * 86400:
                return _Authority(certificate, key), False
        authority = _new_authority(now)
        _write(key_path, _key_pem(authority.key))
        _write(self.ca, _pem(authority.certificate), mode=0o644)
        return authority, True

    def _issue(self, authority: _Authority, now: float) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(now, CERTIFICATE_DAYS, key.public_key())
            .subject_name(_name(canonical_name(self.names[0])[:64]))
            .issuer_name(authority.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in self.names]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
                critical=False,
            )
            .sign(authority.key, hashes.SHA256())
        )
        # The key first: a reader between the two sees a pair that does not fit, and waits.
        _write(self.files.key, _key_pem(key))
        _write(self.files.certificate, _pem(certificate), mode=0o644)


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _new_authority(now: float) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"self-signed-ca@{int(now)}")
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(now, CA_DAYS, key.public_key())
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _builder(now: float, days: int, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    start = datetime.fromtimestamp(now, UTC)
    return (
        x509.CertificateBuilder()
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _BACKDATE)
        .not_valid_after(start + timedelta(days=days))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(canonical_name(name))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file whole: it is never seen half-written, nor readable by others first."""
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

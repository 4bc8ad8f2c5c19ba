"""The server's certificate and key: read from files, and checked before they are used.

Errors name the file and the fix: a wrong pair is the usual reason why a server behind the
aggregation layer does not start.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from apiservice.runtime.validity import Validity, validity_of
from apiservice.wire import instant

PUBLIC = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
"""The format in which public keys are compared."""
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
"""What Go's crypto/tls, and so the API server, accepts."""
_RSA_BITS = 1024
"""The shortest RSA key that Go's crypto/tls accepts."""


class CertificatePairError(Exception):
    """A certificate and its key cannot be served; the message names the file and the fix."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files of a serving certificate."""

    certificate: Path
    """PEM: the leaf first, then any intermediates."""
    key: Path
    """PEM, not encrypted."""


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A certificate and key that were read and belong together."""

    names: frozenset[str]
    """DNS names and addresses of the subject alternative name."""
    validity: Validity

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether the certificate contains every one of these names."""
        return self.names.issuperset(canonical_name(name) for name in names)

    def needs_renewal(self, now: float) -> bool:
        """Return whether less than a third of the certificate's life is left."""
        return self.validity.remaining_share(now) < 1 / 3


def read_pair(files: CertificateFiles, now: float) -> ServingCertificate:
    """Read and check a pair at ``now``, epoch seconds.

    Raises:
        CertificatePairError: a file is missing or unreadable, the two do not belong
            together, or the certificate is outside its dates.
    """
    certificate, key = _content(files.certificate), _content(files.key)
    return judge_pair(certificate, key, now, str(files.certificate), str(files.key))


def judge_pair(
    certificate: bytes, key: bytes, now: float, certificate_name: str, key_name: str
) -> ServingCertificate:
    """Check a pair in PEM at ``now``, epoch seconds; errors call the two by the given names.

    Raises:
        CertificatePairError: see :func:`read_pair`.
    """
    leaf, public, names = _leaf(certificate, certificate_name)
    if public != _public_key(key, key_name):
        raise CertificatePairError(
            f"{certificate_name} and {key_name} do not belong together: give the key that "
            f"the certificate was issued for, and the server's certificate first in its file"
        )
    dates = validity_of(leaf)
    if (outside := outside_of(dates, now)) is not None:
        hint = ", or remove it to have another made where it is self-signed"
        raise CertificatePairError(
            f"{certificate_name} {outside}{hint if now >= dates.ends else ''}"
        )
    return ServingCertificate(names, dates)


def outside_of(dates: Validity, now: float) -> str | None:
    """Return why a certificate with these dates is not valid now, with the fix; None if it is."""
    starts, ends = dates
    if now >= ends:
        return f"expired on {instant.minute(ends)}: renew it"
    if now < starts:
        return f"is not valid before {instant.minute(starts)}: check this machine's clock"
    return None


def load_into(context: ssl.SSLContext, files: CertificateFiles) -> None:
    """Load a pair into a TLS context.

    Raises:
        CertificatePairError: OpenSSL does not accept the pair.
    """
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise CertificatePairError(
            f"{files.certificate} and {files.key} cannot be served: {error}"
        ) from error


def canonical_name(name: str) -> str:
    """Return a DNS name in lower case, or an address in its canonical form."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name.lower().rstrip(".")


def _leaf(content: bytes, name: str) -> tuple[x509.Certificate, bytes, frozenset[str]]:
    """Return the first certificate, its public key in DER, and its names."""
    try:
        leaf = x509.load_pem_x509_certificates(content)[0]
    except Exception as error:
        raise CertificatePairError(
            f"{name} contains no PEM certificate: {error}; give a file that begins with "
            f"-----BEGIN CERTIFICATE-----"
        ) from error
    # The library raises many kinds of errors about what the file contains, and the file is
    # replaced while the server runs: every error means that the pair is not used.
    try:
        return leaf, _usable(leaf.public_key()), _names(leaf)
    except Exception as error:
        raise CertificatePairError(
            f"{name} contains a certificate that cannot be served: {error}; have it issued again "
            f"with {_KEYS} and valid names"
        ) from error


def _public_key(content: bytes, name: str) -> bytes:
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        raise CertificatePairError(
            f"{name} is encrypted: decrypt it with `openssl pkey`; a server cannot ask for its "
            f"password"
        ) from error
    except ValueError as error:
        raise CertificatePairError(
            f"{name} contains no PEM private key: {error}; give a file that begins with "
            f"-----BEGIN PRIVATE KEY-----"
        ) from error
    except Exception as error:
        raise CertificatePairError(
            f"{name} contains a key that cannot be used: {error}; use {_KEYS}"
        ) from error
    return key.public_key().public_bytes(*PUBLIC)


_KEYS: Final = "an RSA key of 2048 bits or more, a P-256, P-384 or P-521 key, or an Ed25519 key"


def _usable(public: Any) -> bytes:
    """Return a public key in DER.

    Raises:
        ValueError: the API server's TLS does not accept keys of this kind.
    """
    match public:
        case ec.EllipticCurvePublicKey():
            accepted = isinstance(public.curve, _CURVES)
            kind = f"on curve {public.curve.name}"
        case rsa.RSAPublicKey():
            accepted, kind = public.key_size >= _RSA_BITS, f"of RSA with {public.key_size} bits"
        case _:
            accepted = isinstance(public, ed25519.Ed25519PublicKey)
            kind = f"of type {type(public).__name__}"
    if not accepted:
        raise ValueError(f"the API server does not accept a key {kind}")
    return bytes(public.public_bytes(*PUBLIC))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificatePairError(
            f"{path}: {error.strerror}; name a file that this process can read, or omit the "
            f"certificate to have one issued"
        ) from error


def _names(leaf: x509.Certificate) -> frozenset[str]:
    try:
        alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    names = alternatives.get_values_for_type(x509.DNSName)
    addresses = alternatives.get_values_for_type(x509.IPAddress)
    return frozenset((*map(str.lower, names), *map(str, addresses)))


def _no_password() -> str:
    """Raise an error, because OpenSSL would otherwise ask on the terminal."""
    raise ValueError("the key is encrypted")

"""The certificate authority that issues self-signed serving certificates.

Keys are P-256 in unencrypted PKCS#8. Certificates are valid from one hour before they are issued,
because the clocks of a cluster's nodes differ a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.tls.certificates import PUBLIC, canonical_name

_BACKDATE = timedelta(hours=1)
_COMMON_NAME = 64
"""The maximum length of a common name (RFC 5280, ub-common-name)."""


class AuthorityError(Exception):
    """A CA's certificate and key cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA's certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def ends(self) -> float:
        """Epoch seconds at which the CA expires, and with it every certificate that it issued."""
        return self.certificate.not_valid_after_utc.timestamp()

    @property
    def certificate_pem(self) -> bytes:
        """The CA's certificate, PEM: what clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The CA's private key, PEM."""
        return _key_pem(self.key)

    def issue(self, names: Sequence[str], now: float, days: float) -> Issued:
        """Issue a serving certificate with a new key.

        Args:
            names: DNS names and addresses; the first is also the common name.
            now: epoch seconds.
            days: how long it is valid; it never outlives the CA.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        ends = min(now + days * 86400, self.ends)
        certificate = (
            _builder(now, ends, key.public_key())
            .subject_name(_name(canonical_name(names[0])[:_COMMON_NAME]))
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        return Issued(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def new_authority(now: float, days: float) -> Authority:
    """Return a new CA that is valid for ``days`` from ``now``, epoch seconds."""
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
        _builder(now, now + days * 86400, key.public_key())
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def read_authority(certificate: bytes, key: bytes) -> Authority:
    """Return the CA that two PEM texts contain: the first certificate, and its key.

    Raises:
        AuthorityError: one of them cannot be read, or they do not belong together.
    """
    # The library raises many kinds of errors about what a file contains.
    try:
        ca_certificate = x509.load_pem_x509_certificates(certificate)[0]
        public = ca_certificate.public_key().public_bytes(*PUBLIC)
    except Exception as error:
        raise AuthorityError(f"the CA's certificate cannot be read: {error}") from error
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except Exception as error:
        raise AuthorityError(f"the CA's key cannot be read: {error}") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise AuthorityError("the CA's key is not an elliptic-curve key")
    if public != private.public_key().public_bytes(*PUBLIC):
        raise AuthorityError("the CA's certificate and key do not belong together")
    return Authority(ca_certificate, private)


def _builder(now: float, ends: float, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(now, UTC) - _BACKDATE)
        .not_valid_after(datetime.fromtimestamp(ends, UTC))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(canonical_name(name))


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

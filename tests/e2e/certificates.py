"""Certificates for a temporary cluster: CAs, leaf certificates, and their files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_ENCODING = serialization.Encoding.PEM
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as files in PEM."""

    cert: Path
    key: Path


def write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Create a P-256 key, write it and return it."""
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key.private_bytes(
            _ENCODING, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    path.chmod(0o600)
    return key


def write_public(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a key's public half."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(key.public_key().public_bytes(_ENCODING, spki))


class Authority:
    """A certificate authority with its certificate at ``cert``, for ``life`` seconds."""

    def __init__(self, folder: Path, name: str, life: float = _DAY) -> None:
        self.folder = folder
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.cert = folder / f"{name}.crt"
        self._key = write_key(folder / f"{name}.key")
        certificate = (
            _builder(self.name, self.name, self._key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.cert.write_bytes(certificate.public_bytes(_ENCODING))

    @property
    def pem(self) -> bytes:
        """The authority's certificate."""
        return self.cert.read_bytes()

    def issue(
        self,
        name: str,
        *,
        groups: tuple[str, ...] = (),
        dns: tuple[str, ...] = (),
        server: bool = False,
        file: str | None = None,
        address: str = "127.0.0.1",
        life: float = _DAY,
    ) -> KeyPair:
        """Issue a leaf: CN and O for clients, SANs (with an address) for servers.

        Args:
            life: seconds until it ends.
        """
        stem = (file or name).replace(":", "-")
        pair = KeyPair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        key = write_key(pair.key)
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, name),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            ]
        )
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(subject, self.name, key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if server:
            numeric = x509.IPAddress(ipaddress.ip_address(address))
            names = [x509.DNSName(host) for host in ("localhost", *dns)]
            builder = builder.add_extension(
                x509.SubjectAlternativeName([*names, numeric]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        pair.cert.write_bytes(certificate.public_bytes(_ENCODING))
        return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(seconds=life))
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign,
        crl_sign=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )

"""The front proxy's identity: a CA, and a client certificate as kube-apiserver presents it.

kubeadm and similar tools create a cluster's own. The demo creates its own, valid for a day.
``serve`` issues the serving certificate.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT_NAME = "front-proxy-client"
"""The common name that clusters allow with ``--requestheader-allowed-names``."""
_LIFE = datetime.timedelta(days=1)
_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The paths of its PEM files."""

    ca: Path
    certificate: Path
    key: Path


def make_front_proxy(folder: Path, now: float) -> FrontProxy:
    """Write a new CA certificate, client certificate and client key into ``folder``.

    Args:
        folder: exists and is private.
        now: epoch seconds; the certificates are valid for a day from then.
    """
    files = FrontProxy(
        ca=folder / "front-proxy-ca.crt",
        certificate=folder / "front-proxy-client.crt",
        key=folder / "front-proxy-client.key",
    )
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("front-proxy-ca")
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), start)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    client = (
        _builder(_name(CLIENT_NAME), ca_name, key.public_key(), start)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
        .sign(ca_key, hashes.SHA256())
    )
    files.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(client.public_bytes(serialization.Encoding.PEM))
    _write_key(files.key, key)
    return files


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _SKEW)
        .not_valid_after(start + _LIFE)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)

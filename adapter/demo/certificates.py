"""The front proxy's identity: a CA, and a client certificate as kube-apiserver presents it.

kubeadm and similar tools create a cluster's own. The demo creates its own.
``serve`` issues the serving certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.tls.authority import new_authority

_CA_DAYS = 90
"""Nothing keeps the CA's key. ``doctor`` warns of a CA that expires within 30 days."""
CLIENT_NAME = "front-proxy-client"
"""The common name that clusters allow with ``--requestheader-allowed-names``."""


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
        now: epoch seconds; the client certificate is valid for a day from then.
    """
    ca, key = new_authority(now, days=_CA_DAYS), ec.generate_private_key(ec.SECP256R1())
    client = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CLIENT_NAME)]))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ca.certificate.not_valid_before_utc)
        .not_valid_after(datetime.fromtimestamp(now, UTC) + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key()), critical=False
        )
        .sign(ca.key, hashes.SHA256())
    )
    names = ("front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key")
    files = FrontProxy(*(folder / name for name in names))
    files.ca.write_bytes(ca.certificate_pem)
    files.certificate.write_bytes(client.public_bytes(serialization.Encoding.PEM))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files

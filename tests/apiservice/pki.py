"""Certificates for tests: a CA that issues valid and invalid certificates."""

from __future__ import annotations

import ssl
from base64 import b64decode, encodebytes
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
SERVER = (ExtendedKeyUsageOID.SERVER_AUTH,)
HOUR = 3600.0
_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Issued:
    """A certificate, its key and the intermediates that belong to it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    through: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> bytes:
        chain = (self.certificate, *self.through)
        return b"".join(link.public_bytes(serialization.Encoding.PEM) for link in chain)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def der(self) -> tuple[bytes, ...]:
        chain = (self.certificate, *self.through)
        return tuple(link.public_bytes(serialization.Encoding.DER) for link in chain)

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """``name.crt`` and ``name.key`` in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.pem)
        key.write_bytes(self.key_pem)
        return certificate, key


def on_another_curve(pem: bytes) -> bytes:
    """A P-256 certificate or key that says it is on a curve that no library supports."""
    prefix = bytes.fromhex("06082a8648ce3d0301")
    first, *lines, last = pem.decode().splitlines()
    content = b64decode("".join(lines)).replace(prefix + b"\x07", prefix + b"\x10")
    return f"{first}\n{encodebytes(content).decode()}{last}\n".encode()


class Authority:
    """A CA. ``now`` is epoch seconds; lives are given relative to it, in seconds.

    Its certificates keep the forms of RFC 5280: a strict client accepts them. Those of an ``old``
    one are as EKS and MicroK8s made them for years: no key usage, no key identifiers, and servers
    without a subject.
    """

    def __init__(
        self, name: str, now: float, signer: Authority | None = None, *, old: bool = False
    ) -> None:
        self.now = now
        self._signer = signer
        self._old = old
        self.key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(name, self.key, -HOUR, 24 * HOUR)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), not old)
        issuer = signer or self
        if not old:
            builder = builder.add_extension(_SIGNS, True)
            identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
            builder = builder.add_extension(identifier, False)
            builder = builder.add_extension(issuer.identifier, False)
        subject = _name(name, ())
        self.certificate = builder.issuer_name(signer.subject if signer else subject).sign(
            issuer.key, hashes.SHA256()
        )

    @property
    def subject(self) -> x509.Name:
        return self.certificate.subject

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def identifier(self) -> x509.AuthorityKeyIdentifier:
        """Of its key, in the certificates that it signs."""
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())

    def issue(
        self,
        name: str = "",
        *,
        groups: Sequence[str] = (),
        usage: Sequence[x509.ObjectIdentifier] | None = CLIENT,
        hosts: Sequence[str] = (),
        starts: float = -HOUR,
        ends: float = HOUR,
        ca: bool = False,
        raw_names: bytes = b"",
        curve: ec.EllipticCurve | None = None,
    ) -> Issued:
        """A certificate under this CA; its intermediates come along.

        ``raw_names`` is the content of a subject alternative name, malformed or not.
        """
        key = ec.generate_private_key(curve or ec.SECP256R1())
        builder = self._builder(name, key, starts, ends, groups).issuer_name(self.subject)
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), True)
        if usage is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usage), False)
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, not (name or groups or self._old))
        if raw_names:
            oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, raw_names), False)
        if not self._old:
            builder = builder.add_extension(self.identifier, False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Issued(certificate, key, (self.certificate,) if self._signer else ())

    def server(self, *hosts: str, ends: float = HOUR) -> Issued:
        """A serving certificate."""
        name = "" if self._old else hosts[0]
        return self.issue(name, usage=SERVER, hosts=hosts, ends=ends)

    def _builder(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        starts: float,
        ends: float,
        groups: Sequence[str] = (),
    ) -> x509.CertificateBuilder:
        moment = datetime.fromtimestamp(self.now, UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name, groups))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment + timedelta(seconds=starts))
            .not_valid_after(moment + timedelta(seconds=ends))
        )


def server_context(issued: Issued, folder: Path) -> ssl.SSLContext:
    """A server that shows a certificate, and asks for none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*issued.write(folder, f"server-{id(issued)}"))
    return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """Shake hands in memory; raises SSLError of the side that refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)


def strict(context: ssl.SSLContext) -> ssl.SSLContext:
    """A context that refuses what departs from RFC 5280 in form, as defaults do from 3.13 on."""
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def client_context(
    ca: bytes, identity: Issued | None = None, folder: Path | None = None
) -> ssl.SSLContext:
    """A client that trusts one CA and shows a certificate, if given one."""
    context = ssl.create_default_context(cadata=ca.decode())
    if identity is not None and folder is not None:
        context.load_cert_chain(*identity.write(folder, f"client-{id(identity)}"))
    return context


def _name(common: str, groups: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    if common:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common))
    return x509.Name(parts)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)

"""Verification of client certificates against a bundle of CAs.

The rules are those of Go's ``x509.Certificate.Verify`` with ``KeyUsages: clientAuth``
(``k8s.io/apiserver/pkg/authentication/request/x509``). Client certificates need no subject
alternative name, and front-proxy certificates have none: the web profile that most verifiers apply
would refuse them. Two rules are stricter than Go's. A leaf without an extended key usage is
refused, because it could then speak for any user. A certificate whose only usage is
anyExtendedKeyUsage is refused, because OpenSSL already ends its handshake, and Python cannot
configure another rule. The underlying verifier does not support Ed25519 CAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.runtime.validity import longest_validity

_MAX_PRESENTED = 8
"""Certificates that a client may present; real chains have at most three."""


class TrustError(Exception):
    """A CA bundle cannot be used; the message says what is wrong with it."""


class CertificateError(Exception):
    """A client certificate is not trusted; the message names the rule."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A client certificate that a bundle's CA issued."""

    common_name: str
    """The subject's CN; the last one if there are several, as in Go."""
    organizations: tuple[str, ...]
    """The subject's O attributes, which are a client certificate's groups."""
    fingerprint: str
    """SHA-256 of the DER, in lower-case hex."""
    valid_until: float
    """Epoch seconds: the first expiry in the chain, the CA included."""


class ClientTrust:
    """A compiled CA bundle.

    Raises:
        TrustError: the PEM contains no certificate or does not parse.
    """

    def __init__(self, pem: bytes) -> None:
        # The library raises many kinds of errors about what a file or a client sends.
        try:
            roots = x509.load_pem_x509_certificates(pem)
            self._store = verification.Store(roots)
        except Exception as error:
            raise TrustError(f"not a PEM bundle of certificates: {error}") from error
        self.pem = b"".join(root.public_bytes(serialization.Encoding.PEM) for root in roots)
        """The certificates that were parsed, and nothing else from the input."""
        self.validity = longest_validity(roots)
        """The dates of the CA that ends last."""

    def verify(self, chain: Sequence[bytes], now: float) -> Verified:
        """Verify a chain of DER certificates, the leaf first, at ``now`` (epoch seconds).

        Raises:
            CertificateError: the chain does not end at the bundle, is outside its dates, or
                may not be used by a client.
        """
        if len(chain) > _MAX_PRESENTED:
            raise CertificateError(f"{len(chain)} certificates presented")
        verifier = (
            verification.PolicyBuilder()
            .store(self._store)
            .time(datetime.fromtimestamp(now, UTC))
            .extension_policies(ca_policy=_CA_POLICY, ee_policy=_LEAF_POLICY)
            .build_client_verifier()
        )
        try:
            leaf, *intermediates = (x509.load_der_x509_certificate(der) for der in chain)
            links = verifier.verify(leaf, intermediates).chain
            names = _subject(leaf, NameOID.COMMON_NAME)
            organizations = _subject(leaf, NameOID.ORGANIZATION_NAME)
        except verification.VerificationError as error:
            raise CertificateError(str(error)) from error
        except Exception as error:
            raise CertificateError(f"unreadable certificate: {error}") from error
        return Verified(
            common_name=names[-1] if names else "",
            organizations=organizations,
            fingerprint=sha256(chain[0]).hexdigest(),
            valid_until=min(link.not_valid_after_utc for link in links).timestamp(),
        )


def _subject(leaf: x509.Certificate, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(name.value) for name in leaf.subject.get_attributes_for_oid(oid))


def _must_be_ca(
    _: verification.Policy, __: x509.Certificate, constraints: x509.BasicConstraints
) -> None:
    if not constraints.ca:
        raise ValueError("basicConstraints says that this is not a CA")


def _may_sign(_: verification.Policy, __: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("keyUsage does not allow it to sign certificates")


def _may_vouch_for_clients(
    _: verification.Policy, __: x509.Certificate, usage: x509.ExtendedKeyUsage | None
) -> None:
    if usage is not None and ExtendedKeyUsageOID.CLIENT_AUTH not in usage:
        raise ValueError("extendedKeyUsage has no clientAuth")


_ANY_CRITICALITY = verification.Criticality.AGNOSTIC
_CA_POLICY = (
    verification.ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, _ANY_CRITICALITY, _must_be_ca)
    .may_be_present(x509.KeyUsage, _ANY_CRITICALITY, _may_sign)
    .may_be_present(x509.ExtendedKeyUsage, _ANY_CRITICALITY, _may_vouch_for_clients)
)
_LEAF_POLICY = verification.ExtensionPolicy.permit_all().require_present(
    x509.ExtendedKeyUsage, _ANY_CRITICALITY, _may_vouch_for_clients
)

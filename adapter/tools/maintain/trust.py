"""Bundles of CA certificates in PEM: read, write, merge, and find an issuer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization

Bundle = tuple[x509.Certificate, ...]
"""CAs that are trusted, the newest first."""

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def read_bundle(pem: bytes) -> Bundle:
    """Return every certificate that can be read, in order and once; the others are skipped."""
    certificates: list[x509.Certificate] = []
    for block in _BLOCK.findall(pem):
        try:
            certificates.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return merge(certificates)


def write_bundle(bundle: Iterable[x509.Certificate]) -> bytes:
    """Return a bundle as PEM."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in bundle)


def merge(certificates: Iterable[x509.Certificate]) -> Bundle:
    """Return each certificate once, at its first position."""
    return tuple(dict.fromkeys(certificates))


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the first half of its SHA-256 in hexadecimal, which is enough for a few CAs."""
    return certificate.fingerprint(hashes.SHA256()).hex()[:32]


def issuer_of(
    leaf: x509.Certificate, bundle: Iterable[x509.Certificate]
) -> x509.Certificate | None:
    """Return the CA that signed a certificate; None if none of these did."""
    return next((issuer for issuer in bundle if _is_signed_by(leaf, issuer)), None)


def is_valid(certificate: x509.Certificate, now: float) -> bool:
    """Return whether ``now``, epoch seconds, is within its dates."""
    starts = certificate.not_valid_before_utc.timestamp()
    return starts <= now < certificate.not_valid_after_utc.timestamp()


def _is_signed_by(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True

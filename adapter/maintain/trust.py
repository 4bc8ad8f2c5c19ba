"""Bundles of CA certificates, as PEM."""

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
    """Every certificate that can be read, in order and once; what cannot is passed over."""
    found: list[x509.Certificate] = []
    for block in _BLOCK.findall(pem):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return merge(found)


def write_bundle(bundle: Iterable[x509.Certificate]) -> bytes:
    """A bundle as PEM."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in bundle)


def merge(certificates: Iterable[x509.Certificate]) -> Bundle:
    """Each certificate once, where it came first."""
    return tuple(dict.fromkeys(certificates))


def fingerprint(certificate: x509.Certificate) -> str:
    """The first half of its SHA-256, hexadecimal: enough to tell our own few apart."""
    return certificate.fingerprint(hashes.SHA256()).hex()[:32]


def issuer_of(
    leaf: x509.Certificate, bundle: Iterable[x509.Certificate]
) -> x509.Certificate | None:
    """The CA of these that signed a certificate; None where none did."""
    return next((each for each in bundle if _signed(leaf, each)), None)


def valid(certificate: x509.Certificate, now: float) -> bool:
    """Whether ``now``, epoch seconds, is within its dates."""
    starts = certificate.not_valid_before_utc.timestamp()
    return starts <= now < certificate.not_valid_after_utc.timestamp()


def _signed(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True

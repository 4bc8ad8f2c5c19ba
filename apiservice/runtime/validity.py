"""From when until when a certificate is valid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


class Validity(NamedTuple):
    """The dates of a certificate, in epoch seconds."""

    starts: float
    ends: float

    def remaining_share(self, now: float) -> float:
        """Return the share of its life that is left: 0 or less after its end."""
        return (self.ends - now) / max(1.0, self.ends - self.starts)


def validity_of(certificate: Certificate) -> Validity:
    """Return the dates of one certificate."""
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return Validity(starts.timestamp(), ends.timestamp())


def longest_validity(certificates: Iterable[Certificate]) -> Validity:
    """Return the dates of the CA that ends last, until when a bundle of one or more vouches."""
    return max(map(validity_of, certificates), key=lambda validity: validity.ends)

"""What there is in the cluster, and what there is to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DAY = 86400.0


class Since(NamedTuple):
    """Since when something has been so."""

    fingerprint: str
    """Of the certificate that it is about."""
    at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class AuthoritySecret:
    """The Secret with the CA's key. Nobody but the rotator reads it."""

    version: str
    """``resourceVersion``: a write says which one it is about."""
    certificates: bytes = b""
    """PEM: the CA that signs, then those that are trusted still."""
    key: bytes = b""
    """PEM: the first one's."""
    published: Since | None = None
    """Since when every APIService has had the CA that signs."""
    renew: bool = False
    """Somebody asked for a new CA."""


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """The Secret that pods mount."""

    version: str
    certificate: bytes = b""
    """PEM."""
    key: bytes = b""
    """PEM."""
    bundle: bytes = b""
    """PEM: whom a client of the pods should trust."""
    issued: Since | None = None
    """Since when this certificate has been there."""
    renew: bool = False
    """Somebody asked for a new certificate."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An APIService that points to our Service."""

    name: str
    version: str
    bundle: bytes = b""
    """PEM: ``caBundle``, whom the API server trusts."""


@dataclass(frozen=True, slots=True)
class ObservedState:
    """One look at the cluster.

    Registrations are read first and the CA's Secret last: a ``caBundle`` that was not changed
    since it was read is then never replaced by an older trust than that of its time.
    """

    authority: AuthoritySecret
    certificate: CertificateSecret
    registrations: tuple[Registration, ...] = ()


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """What is wanted."""

    names: tuple[str, ...]
    """DNS names of the certificate; the first is the one that the API server asks for."""
    days: float
    """How long a certificate is valid. It is renewed with a third of that left."""
    ca_days: float
    """How long a CA is valid, at least twice ``days``. It is replaced when a new certificate
    would outlive it."""
    settle: float
    """Seconds after which a change has reached everybody: pods a Secret's content, which kubelet
    brings within about two minutes, and API servers a ``caBundle``."""

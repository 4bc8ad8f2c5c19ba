"""Records of the certificate rotation: what the cluster has, and the policy for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DAY = 86400.0


class Since(NamedTuple):
    """The time since which something has been true of a certificate."""

    fingerprint: str
    """Fingerprint of that certificate."""
    at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class AuthoritySecret:
    """The Secret with the CA's key. Only the rotation reads it."""

    version: str
    """``resourceVersion`` that was read; a write names it."""
    certificates: bytes = b""
    """PEM: the CA that signs, then those that are still trusted."""
    key: bytes = b""
    """PEM: the key of the first one."""
    published: Since | None = None
    """Since when every APIService has had the CA that signs."""
    renew: bool = False
    """A user requested a new CA."""


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """The Secret that pods mount."""

    version: str
    certificate: bytes = b""
    """PEM."""
    key: bytes = b""
    """PEM."""
    bundle: bytes = b""
    """PEM: the CAs that a client of the pods should trust."""
    issued: Since | None = None
    """Since when this certificate has been in the Secret."""
    renew: bool = False
    """A user requested a new certificate."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An APIService that points to this installation's Service."""

    name: str
    version: str
    bundle: bytes = b""
    """PEM: ``caBundle``, the CAs that the API server trusts."""


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The cluster's objects as they were read.

    Registrations are read first and the CA's Secret last. So an older bundle never replaces a
    ``caBundle`` that has not changed since it was read.
    """

    authority: AuthoritySecret
    certificate: CertificateSecret
    registrations: tuple[Registration, ...] = ()


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """What the cluster should have."""

    names: tuple[str, ...]
    """DNS names of the certificate; the API server uses the first."""
    days: float
    """Days that a certificate is valid. It is renewed with a third of that left."""
    ca_days: float
    """Days that a CA is valid, at least twice ``days``. It is replaced when a new certificate
    would outlive it."""
    settle: float
    """Seconds after which a change has reached all: kubelet updates a pod's Secret within about
    two minutes, and API servers read a ``caBundle``."""

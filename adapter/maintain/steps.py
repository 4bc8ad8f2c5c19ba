"""The steps of a rotation. Each is one write to one object, and a run may end after any of them."""

from __future__ import annotations

from typing import NamedTuple

from adapter.maintain.state import Since
from adapter.maintain.trust import Bundle
from apiservice.tls.authority import Authority


class MakeAuthority(NamedTuple):
    """Create a CA, and still trust the previous ones. It signs nothing yet."""

    before: Bundle
    why: str


class Trust(NamedTuple):
    """Trust these CAs. The first one signs."""

    bundle: Bundle
    why: str


class Publish(NamedTuple):
    """Write the ``caBundle`` of an APIService."""

    registration: str
    bundle: bytes
    """PEM."""


class StampPublished(NamedTuple):
    """Record since when every APIService has had the CA that signs; None: not all of them do."""

    stamp: Since | None


class Copy(NamedTuple):
    """Write the CAs to trust beside the certificate."""

    bundle: bytes
    """PEM."""


class Issue(NamedTuple):
    """Issue a certificate, which pods then load."""

    authority: Authority
    bundle: bytes
    """PEM."""
    why: str


class StampIssued(NamedTuple):
    """Record since when the certificate has been in the Secret."""

    stamp: Since


class Wait(NamedTuple):
    """Nothing more can be done before a certain time."""

    until: float
    """Epoch seconds."""
    why: str


Write = MakeAuthority | Trust | Publish | StampPublished | Copy | Issue | StampIssued
Step = Write | Wait

"""The steps of a rotation. Each is one write to one object, and may be the last one done."""

from __future__ import annotations

from typing import NamedTuple

from adapter.maintain.state import Since
from adapter.maintain.trust import Bundle
from apiservice.tls.authority import Authority


class MakeAuthority(NamedTuple):
    """Make a CA, and go on trusting the ones before it. Nothing is signed by it yet."""

    before: Bundle
    why: str


class Trust(NamedTuple):
    """Trust these, the first of which signs."""

    bundle: Bundle
    why: str


class Publish(NamedTuple):
    """Give an APIService its ``caBundle``."""

    registration: str
    bundle: bytes
    """PEM."""


class StampPublished(NamedTuple):
    """Note since when every APIService has had the CA that signs; None: not all of them do."""

    stamp: Since | None


class Copy(NamedTuple):
    """Show whom to trust beside the certificate."""

    bundle: bytes
    """PEM."""


class Issue(NamedTuple):
    """Issue a certificate, which pods then take up."""

    authority: Authority
    bundle: bytes
    """PEM."""
    why: str


class StampIssued(NamedTuple):
    """Note since when the certificate has been there."""

    stamp: Since


class Wait(NamedTuple):
    """Nothing more can be done before a moment."""

    until: float
    """Epoch seconds."""
    why: str


Write = MakeAuthority | Trust | Publish | StampPublished | Copy | Issue | StampIssued
Step = Write | Wait

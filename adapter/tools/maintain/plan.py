"""The decision about the next step of a certificate rotation; pure.

After every step, so that the process may end after any of them: a CA in the ``caBundle`` of every
API server has signed any certificate that a pod can be serving. A new CA is published first. After
``settle`` it signs the first certificate. ``settle`` after that certificate was written, the
previous CAs are removed. If nothing can break, nothing waits: a certificate that no API server
would accept is replaced at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cryptography import x509

from adapter.tools.maintain.state import DAY, ObservedState, RotationPolicy, Since
from adapter.tools.maintain.trust import (
    Bundle,
    fingerprint,
    is_valid,
    issuer_of,
    merge,
    read_bundle,
    write_bundle,
)
from apiservice.tls.authority import Authority, AuthorityError, read_authority
from apiservice.tls.certificates import CertificatePairError, ServingCertificate, judge_pair
from apiservice.wire import instant


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


def next_step(state: ObservedState, policy: RotationPolicy, now: float) -> Step | None:
    """Return the next write, a :class:`~adapter.tools.maintain.plan.Wait`, or None if all is done.

    Args:
        state: what the cluster has.
        policy: what it should have.
        now: epoch seconds of the API server's clock, by which it checks certificates.
    """
    step = _authority(state, policy, now)
    if isinstance(step, MakeAuthority):
        return step
    trusted = read_bundle(state.authority.certificates)
    lost = _lost_authority(state, trusted, now)
    if lost is not None:
        return Trust((*trusted, lost), "the certificate in use was signed by it")
    return _publish(state, trusted, now) or _serve(state, policy, step, trusted, now)


def _authority(
    state: ObservedState, policy: RotationPolicy, now: float
) -> Authority | MakeAuthority:
    """Return the CA that signs, or the step that creates one."""
    secret = state.authority
    if not secret.certificates and not secret.key:
        return MakeAuthority(_unexpired_bundle(_known_authorities(state), now), "no CA exists")
    try:
        authority = read_authority(secret.certificates, secret.key)
    except AuthorityError as error:
        return MakeAuthority(_unexpired_bundle(_known_authorities(state), now), str(error))
    trusted = read_bundle(secret.certificates)
    why = ""
    # One at a time: a request at every run would otherwise create CAs and never a certificate.
    if secret.renew and len(trusted) == 1:
        why = "it was requested"
    elif not is_valid(authority.certificate, now):
        starts = authority.certificate.not_valid_before_utc.timestamp()
        why = f"it is valid from {instant.minute(starts)} to {instant.minute(authority.ends)}"
    elif authority.ends - now < policy.days * DAY:
        why = f"it ends on {instant.minute(authority.ends)}, before a new certificate would end"
    return MakeAuthority(_unexpired_bundle(trusted, now), why) if why else authority


def _unexpired_bundle(bundle: Bundle, now: float) -> Bundle:
    return tuple(
        certificate for certificate in bundle if certificate.not_valid_after_utc.timestamp() > now
    )


def _known_authorities(state: ObservedState) -> Bundle:
    """Return every CA that any client trusts."""
    places = (state.authority.certificates, state.certificate.bundle)
    bundles = (*places, *(row.bundle for row in state.registrations))
    return merge(certificate for pem in bundles for certificate in read_bundle(pem))


def _lost_authority(state: ObservedState, trusted: Bundle, now: float) -> x509.Certificate | None:
    """Return the CA of the certificate in use, if it is known but not trusted."""
    leaf = _leaf(state)
    if leaf is None or not is_valid(leaf, now) or issuer_of(leaf, trusted) is not None:
        return None
    return issuer_of(leaf, _known_authorities(state))


def _publish(state: ObservedState, trusted: Bundle, now: float) -> Write | None:
    """Make every APIService trust these CAs, and record since when all do."""
    newest, stamp = trusted[0], state.authority.published
    # The record is reset first: what is published again has to settle again.
    if stamp and any(newest not in read_bundle(row.bundle) for row in state.registrations):
        return StampPublished(None)
    wanted = write_bundle(trusted)
    for row in state.registrations:
        if row.bundle != wanted:
            return Publish(row.name, wanted)
    if not _stands(stamp, newest, now):
        return StampPublished(_stamp(newest, now))
    return None


def _serve(
    state: ObservedState, policy: RotationPolicy, authority: Authority, trusted: Bundle, now: float
) -> Step | None:
    """Make pods serve a certificate of the newest CA, and remove the previous CAs."""
    bundle = write_bundle(trusted)
    try:
        leaf, judged = _judge(state, policy, trusted, now)
    except CertificatePairError as error:
        return Issue(authority, bundle, str(error))
    if state.certificate.bundle != bundle:
        return Copy(bundle)
    if issuer_of(leaf, trusted[:1]) is None:
        published = state.authority.published
        if published is None or now < published.at + policy.settle:
            until = (published.at if published else now) + policy.settle
            return Wait(until, "the new CA must reach every API server")
        return Issue(authority, bundle, "the CA is new")
    why = _renewal(state, policy, judged, now)
    if why:
        return Issue(authority, bundle, why)
    return _retire(state, policy, leaf, trusted, now)


def _judge(
    state: ObservedState, policy: RotationPolicy, trusted: Bundle, now: float
) -> tuple[x509.Certificate, ServingCertificate]:
    """Check that API servers accept the certificate, and return it.

    Raises:
        CertificatePairError: they do not.
    """
    secret, host = state.certificate, policy.names[0]
    if not secret.certificate and not secret.key:
        raise CertificatePairError("no certificate exists")
    judged = judge_pair(secret.certificate, secret.key, now, "tls.crt", "tls.key")
    leaf = x509.load_pem_x509_certificates(secret.certificate)[0]
    issuer = issuer_of(leaf, trusted)
    if issuer is None or not is_valid(issuer, now):
        raise CertificatePairError("it was signed by a CA that is not known")
    if not judged.covers([host]):
        raise CertificatePairError(f"it is not for {host}")
    return leaf, judged


def _renewal(
    state: ObservedState, policy: RotationPolicy, judged: ServingCertificate, now: float
) -> str:
    """Return why a valid certificate is renewed; empty if it is not."""
    if state.certificate.renew:
        return "it was requested"
    if not judged.covers(policy.names):
        return f"it is not for all of {', '.join(policy.names)}"
    return f"it ends on {instant.minute(judged.validity.ends)}" if judged.needs_renewal(now) else ""


def _retire(
    state: ObservedState,
    policy: RotationPolicy,
    leaf: x509.Certificate,
    trusted: Bundle,
    now: float,
) -> Step | None:
    if len(trusted) == 1:
        return None
    issued = state.certificate.issued
    if issued is None or not _stands(issued, leaf, now):
        return StampIssued(_stamp(leaf, now))
    if now < issued.at + policy.settle:
        return Wait(issued.at + policy.settle, "the new certificate must reach every pod")
    return Trust(trusted[:1], "no pod serves a certificate of the others any longer")


def _leaf(state: ObservedState) -> x509.Certificate | None:
    return next(iter(read_bundle(state.certificate.certificate)), None)


def _stands(stamp: Since | None, certificate: x509.Certificate, now: float) -> bool:
    """Return whether a stamp is about this certificate. A stamp from the future means that a clock
    was set back: it is written again, so that no wait is cut short and none lasts forever."""
    return stamp is not None and stamp.fingerprint == fingerprint(certificate) and stamp.at <= now


def _stamp(certificate: x509.Certificate, now: float) -> Since:
    return Since(fingerprint(certificate), float(math.floor(now)))

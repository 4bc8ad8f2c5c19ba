"""Authentication of a request: front proxy, client certificate, bearer token, or anonymous.

The order, and what counts as a failure, are those of Go's delegating authenticator
(``k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go``). Each method is tried
in turn, and the first that identifies a user wins. If none does, credentials that a method refused
give 401, and a request without credentials is anonymous.

Certificates are verified here and not by the handshake alone, against the current CAs, and each CA
counts for its own purpose only. The verdict is kept with the connection until a certificate in the
chain expires or the CAs change. Users that a proxy states are cached by the header lines that state
them, so the usual request costs two lookups. Other header lines are not part of that key:
kube-apiserver sends a new Audit-ID with every request, and forwards its client's other headers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from apiservice.auth.clientauth import ClientAuth
from apiservice.auth.requestheader import Header, HeaderNames
from apiservice.auth.tokens import ReviewedTokens, ReviewError
from apiservice.auth.trust import CertificateError, ClientTrust, Verified
from apiservice.errors import Unauthorized
from apiservice.http.peer import SCOPE_KEY, Peer
from apiservice.identity import (
    ANONYMOUS,
    AUTHENTICATED_GROUP,
    UNAUTHENTICATED_GROUP,
    Scope,
    User,
)
from apiservice.runtime.bytecache import ByteCache, Remembering, weight

log = structlog.get_logger(__name__)

ANONYMOUS_USER = User(ANONYMOUS, groups=(UNAUTHENTICATED_GROUP,))

_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_REFUSAL_TTL = 10.0
"""Seconds after which a refused certificate is checked again: it may not be valid *yet*."""
_REMEMBERED_BYTES = 4 << 20
"""Bytes of users cached by the header lines that state them, about 1 kB each."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What a connection's certificate proves, until ``until`` in one generation of trust."""

    generation: int
    until: float
    headers: HeaderNames | None
    """The headers that it may state an identity in; None if it is not a front proxy's."""
    client: User | None
    """The user that the certificate itself names."""
    refusal: str
    """Why a method refused it; empty if none did."""


class Authentication(Remembering):
    """The :class:`~apiservice.identity.Authenticator` of the server."""

    def __init__(
        self,
        trust: ClientAuth,
        tokens: ReviewedTokens | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._trust = trust
        self._tokens = tokens
        self._clock = clock
        self._proxied: ByteCache[tuple[Header, ...], User | None] = ByteCache(_REMEMBERED_BYTES)
        super().__init__(self._proxied)
        self._last_refusal = ""
        self.refused: Counter[str] = Counter()
        """Requests answered 401, by method: ``certificate``, ``token``, ``token-review``."""
        trust.subscribe(self._proxied.clear)

    async def authenticate(self, scope: Scope) -> User:
        """Return the user behind a request; the module describes the order of methods.

        Raises:
            Unauthorized: a certificate or token was sent, and no method accepts it.
            TooManyRequests: the client's address has sent too many unknown tokens.
        """
        headers: Sequence[Header] = scope["headers"]
        refusal = ""
        peer: Peer | None = scope.get(SCOPE_KEY)
        if peer is not None:
            judgement = self._judge(peer)
            if judgement.headers is not None:
                user = self._proxied_user(judgement.headers, headers)
                if user is not None:
                    return user
            if judgement.client is not None:
                return judgement.client
            refusal = judgement.refusal
        token = bearer_token(headers)
        if token:
            return await self._token_user(token, _address(scope))
        if refusal:
            self.refused["certificate"] += 1
            self._report(refusal)
            raise Unauthorized
        return ANONYMOUS_USER

    def is_proxy(self, peer: Peer) -> bool:
        """Return whether a client's certificate is a front proxy's."""
        return self._judge(peer).headers is not None

    def _proxied_user(self, names: HeaderNames, headers: Sequence[Header]) -> User | None:
        key = names.relevant(headers)
        try:
            user = self._proxied[key]
        except KeyError:
            self.misses += 1
        else:
            self.hits += 1
            return user
        user = names.user(key)
        if user is not None:
            user = with_authenticated_group(user)
        self._proxied.put(key, user, weight(key) + (user.bytes if user is not None else 0))
        return user

    def _judge(self, peer: Peer) -> _Judgement:
        now = self._clock()
        memo: _Judgement | None = peer.memo
        if memo is not None and memo.generation == self._trust.generation and now < memo.until:
            return memo
        judgement = judge(peer, self._trust, now)
        peer.memo = judgement
        return judgement

    async def _token_user(self, token: str, sender: str) -> User:
        if self._tokens is None:
            self.refused["token"] += 1
            raise Unauthorized
        try:
            user = await self._tokens.user(token, sender)
        except ReviewError as error:
            self.refused["token-review"] += 1
            raise Unauthorized from error
        if user is None:
            self.refused["token"] += 1
            raise Unauthorized
        return with_authenticated_group(user)

    def _report(self, refusal: str) -> None:
        """Log the reason once per cause: the client only gets 401."""
        if refusal == self._last_refusal:
            return
        self._last_refusal = refusal
        log.warning("client certificate refused", reason=refusal)


def judge(peer: Peer, trust: ClientAuth, now: float) -> _Judgement:
    """Return what a certificate proves at ``now``, epoch seconds."""
    proxy, clients = trust.proxy, trust.clients
    deadlines: list[float] = []
    refusals: list[str] = []
    headers: HeaderNames | None = None
    client: User | None = None
    if proxy is not None:
        settings, ca = proxy
        verified = _verify(ca, peer, now, "request-header", refusals)
        if verified is not None:
            deadlines.append(verified.valid_until)
            if not settings.allowed_names or verified.common_name in settings.allowed_names:
                headers = settings.headers
            else:
                refusals.append(
                    f"request-header: common name {verified.common_name!r} is not in "
                    f"requestheader-allowed-names {list(settings.allowed_names)}"
                )
    if clients is not None:
        verified = _verify(clients, peer, now, "client-ca", refusals)
        if verified is not None:
            deadlines.append(verified.valid_until)
            client = _certificate_user(verified)
    if refusals:
        deadlines.append(now + _REFUSAL_TTL)
    return _Judgement(
        generation=trust.generation,
        until=min(deadlines, default=now + _REFUSAL_TTL),
        headers=headers,
        client=client,
        refusal="; ".join(refusals),
    )


def with_authenticated_group(user: User) -> User:
    """Append ``system:authenticated`` by the rules of ``AuthenticatedGroupAdder``: not to the
    anonymous user, which a front proxy may state, and not twice."""
    if user.name == ANONYMOUS:
        return user
    if AUTHENTICATED_GROUP in user.groups or UNAUTHENTICATED_GROUP in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED_GROUP), user.extra)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def bearer_token(headers: Sequence[Header]) -> str:
    """Return the token of the first Authorization header if its scheme is Bearer, else empty."""
    line = next((value for name, value in headers if name == b"authorization"), None)
    if line is None:
        return ""
    scheme, _, credentials = line.decode("latin-1").strip().partition(" ")
    return credentials.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def _verify(
    ca: ClientTrust, peer: Peer, now: float, purpose: str, refusals: list[str]
) -> Verified | None:
    try:
        return ca.verify(peer.chain, now)
    except CertificateError as error:
        refusals.append(f"{purpose}: {error}")
        return None


def _certificate_user(verified: Verified) -> User | None:
    """``CommonNameUserConversion``: a certificate without a CN does not identify a user."""
    if not verified.common_name:
        return None
    credential = f"X509SHA256={verified.fingerprint}"
    return with_authenticated_group(
        User(
            verified.common_name,
            groups=verified.organizations,
            extra={_CREDENTIAL_ID: (credential,)},
        )
    )

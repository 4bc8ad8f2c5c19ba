"""Authentication in the order of Go's delegating authenticator, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from apiservice.auth.authentication import ANONYMOUS_USER, Authentication
from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.tokens import ReviewedTokens, ReviewError
from apiservice.errors import ApiError, Unauthorized
from apiservice.http.peer import SCOPE_KEY, Peer
from apiservice.identity import Scope, User
from tests.apiservice.pki import SERVER, Authority, Issued

NOW = 1_800_000_000.0
PROXY_CA = Authority("front-proxy-ca", NOW)
CLIENT_CA = Authority("kubernetes-ca", NOW)
STRANGER = Authority("stranger", NOW)
PROXY = PROXY_CA.issue("front-proxy-client")
IMPERSONATED = [(b"x-remote-user", b"bob"), (b"x-remote-group", b"dev")]
BOB = User("bob", groups=("dev", "system:authenticated"))
ALICE = User("alice", uid="7", groups=("ops", "system:authenticated"))


@dataclass
class FakeReviewer:
    """Knows one token."""

    asked: list[str] = field(default_factory=list)
    down: bool = False

    async def review_token(self, token: str) -> User | None:
        self.asked.append(token)
        if self.down:
            raise ReviewError("no answer")
        return User("alice", uid="7", groups=("ops",)) if token == "good" else None


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """An authenticator that trusts both CAs, its parts, and what it says of a request."""

    trust: ClientAuth
    authentication: Authentication
    reviewer: FakeReviewer
    clock: Clock

    def ask(self, headers: Sequence[tuple[bytes, bytes]] = (), peer: Peer | None = None) -> User:
        scope: Scope = {"headers": list(headers), SCOPE_KEY: peer}
        return asyncio.run(self.authentication.authenticate(scope))


@pytest.fixture
def bench() -> Bench:
    trust, reviewer, clock = ClientAuth(), FakeReviewer(), Clock()
    trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    trust.set_clients(CLIENT_CA.pem)
    return Bench(trust, Authentication(trust, ReviewedTokens(reviewer), clock), reviewer, clock)


def shows(issued: Issued) -> Peer:
    return Peer(issued.der)


def bearer(token: str) -> tuple[bytes, bytes]:
    return (b"authorization", b"Bearer " + token.encode())


def test_a_front_proxy_states_the_user(bench: Bench) -> None:
    assert bench.ask(IMPERSONATED, shows(PROXY)) == BOB


def test_headers_without_a_certificate_are_ignored(bench: Bench) -> None:
    assert bench.ask(IMPERSONATED) == ANONYMOUS_USER


def test_a_request_without_credentials_is_anonymous(bench: Bench) -> None:
    assert bench.ask() == User("system:anonymous", groups=("system:unauthenticated",))


def test_a_client_certificate_decides_the_user_and_headers_are_ignored(bench: Bench) -> None:
    user = bench.ask(IMPERSONATED, shows(CLIENT_CA.issue("carol", groups=("g1", "g,2"))))

    assert (user.name, user.groups) == ("carol", ("g1", "g,2", "system:authenticated"))
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


@pytest.mark.parametrize(
    ("line", "user"),
    [
        (b"Bearer good", ALICE),
        (b"bearer good", ALICE),
        (b"  BEARER good trailing", ALICE),
        (b"Bearer  good", ANONYMOUS_USER),
        (b"Bearer", ANONYMOUS_USER),
        (b"Basic Zm9vOmJhcg==", ANONYMOUS_USER),
    ],
)
def test_bearer_lines_are_read_as_upstream_reads_them(
    bench: Bench, line: bytes, user: User
) -> None:
    assert bench.ask([(b"authorization", line)]) == user


REFUSED = {
    "a bad token": ([bearer("bad")], None),
    "a proxy of a name that is not allowed": (IMPERSONATED, shows(PROXY_CA.issue("mallory"))),
    "an expired proxy": (IMPERSONATED, shows(PROXY_CA.issue("front-proxy-client", ends=-1))),
    "a proxy for servers": (
        IMPERSONATED,
        shows(PROXY_CA.issue("front-proxy-client", usage=SERVER)),
    ),
    "a proxy without an extended key usage": (
        IMPERSONATED,
        shows(PROXY_CA.issue("front-proxy-client", usage=None)),
    ),
    "a proxy of an unknown CA": (IMPERSONATED, shows(STRANGER.issue("front-proxy-client"))),
    "a proxy that states nobody": ([], shows(PROXY)),
    "a client of an unknown CA": ([], shows(STRANGER.issue("carol"))),
    "an expired client": ([], shows(CLIENT_CA.issue("carol", ends=-1))),
    "a client that is not valid yet": ([], shows(CLIENT_CA.issue("carol", starts=60))),
    "a nameless client": ([], shows(CLIENT_CA.issue(""))),
}


@pytest.mark.parametrize(("headers", "peer"), REFUSED.values(), ids=REFUSED.keys())
def test_credentials_that_no_method_accepts_are_401(
    bench: Bench, headers: list[tuple[bytes, bytes]], peer: Peer | None
) -> None:
    with pytest.raises(Unauthorized):
        bench.ask(headers, peer)
    assert sum(bench.authentication.refused.values()) == 1


def test_a_good_token_makes_up_for_a_refused_certificate(bench: Bench) -> None:
    assert bench.ask([bearer("good")], shows(STRANGER.issue("x"))) == ALICE


def test_a_token_is_not_asked_about_where_a_certificate_settles_it(bench: Bench) -> None:
    bench.ask([bearer("bad"), *IMPERSONATED], shows(PROXY))

    assert bench.reviewer.asked == []


def test_a_review_that_fails_is_401_and_not_remembered(bench: Bench) -> None:
    bench.reviewer.down = True
    with pytest.raises(Unauthorized):
        bench.ask([bearer("good")])

    bench.reviewer.down = False
    assert bench.ask([bearer("good")]) == ALICE


def test_no_reviewer_means_no_token_is_good(bench: Bench) -> None:
    alone = Authentication(bench.trust, None, bench.clock)

    with pytest.raises(Unauthorized):
        asyncio.run(alone.authenticate({"headers": [bearer("good")]}))


@pytest.mark.parametrize(
    ("stated", "groups"),
    [
        ([(b"x-remote-user", b"system:kube-aggregator")], ("system:authenticated",)),
        (
            [(b"x-remote-user", b"u"), (b"x-remote-group", b"system:authenticated")],
            ("system:authenticated",),
        ),
        (
            [
                (b"x-remote-user", b"system:anonymous"),
                (b"x-remote-group", b"system:unauthenticated"),
            ],
            ("system:unauthenticated",),
        ),
        (
            [(b"x-remote-user", b"u"), (b"x-remote-group", b"system:unauthenticated")],
            ("system:unauthenticated",),
        ),
    ],
)
def test_system_authenticated_is_added_by_upstreams_rules(
    bench: Bench, stated: list[tuple[bytes, bytes]], groups: tuple[str, ...]
) -> None:
    assert bench.ask(stated, shows(PROXY)).groups == groups


def test_no_allowed_names_allow_every_name(bench: Bench) -> None:
    bench.trust.set_proxy(ProxySettings(PROXY_CA.pem))

    assert bench.ask(IMPERSONATED, shows(PROXY_CA.issue("anything"))) == BOB


def test_each_ca_is_good_for_its_own_purpose_only(bench: Bench) -> None:
    """A client-CA certificate with the proxy's name may not state users; a proxy's
    certificate is not a client's."""
    user = bench.ask(IMPERSONATED, shows(CLIENT_CA.issue("front-proxy-client")))

    assert user.name == "front-proxy-client"


def test_one_connection_carries_many_users(bench: Bench) -> None:
    peer = shows(PROXY)

    names = [bench.ask([(b"x-remote-user", name)], peer).name for name in (b"a", b"b", b"a")]

    assert names == ["a", "b", "a"]


def test_equal_headers_give_the_same_user_object(bench: Bench) -> None:
    peer = shows(PROXY)

    assert bench.ask(IMPERSONATED, peer) is bench.ask(IMPERSONATED, peer)


def test_a_certificate_that_expires_ends_an_open_connections_rights(bench: Bench) -> None:
    peer = shows(PROXY_CA.issue("front-proxy-client", ends=60))
    assert bench.ask(IMPERSONATED, peer) == BOB

    bench.clock.now += 61

    with pytest.raises(Unauthorized):
        bench.ask(IMPERSONATED, peer)


def test_a_certificate_that_becomes_valid_is_accepted_on_the_open_connection(
    bench: Bench,
) -> None:
    peer = shows(PROXY_CA.issue("front-proxy-client", starts=5))
    with pytest.raises(Unauthorized):
        bench.ask(IMPERSONATED, peer)

    bench.clock.now += 11

    assert bench.ask(IMPERSONATED, peer) == BOB


def test_a_rotated_ca_ends_the_old_ones_connections_and_begins_the_new(bench: Bench) -> None:
    old, new = shows(PROXY), Authority("front-proxy-ca", NOW)
    fresh = shows(new.issue("front-proxy-client"))
    assert bench.ask(IMPERSONATED, old) == BOB

    bench.trust.set_proxy(ProxySettings(new.pem, ("front-proxy-client",)))

    assert bench.ask(IMPERSONATED, fresh) == BOB
    with pytest.raises(Unauthorized):
        bench.ask(IMPERSONATED, old)


def test_a_withdrawn_name_ends_an_open_connections_rights(bench: Bench) -> None:
    peer = shows(PROXY)
    assert bench.ask(IMPERSONATED, peer) == BOB

    bench.trust.set_proxy(ProxySettings(PROXY_CA.pem, ("somebody-else",)))

    with pytest.raises(Unauthorized):
        bench.ask(IMPERSONATED, peer)


def test_before_any_trust_is_known_a_certificate_says_nothing() -> None:
    authentication = Authentication(ClientAuth(), None, Clock())
    scope: Scope = {"headers": IMPERSONATED, SCOPE_KEY: shows(PROXY)}

    assert asyncio.run(authentication.authenticate(scope)) == ANONYMOUS_USER


def proxied(audit: int, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """What kube-apiserver sends: its client's own lines, and a new Audit-ID each time."""
    return [
        (b"host", b"adapter"),
        (b"audit-id", b"%032x" % audit),
        (b"x-forwarded-for", b"10.0.0.%d" % (audit % 250)),
        *more,
        *IMPERSONATED,
    ]


def test_headers_that_state_no_identity_do_not_miss_what_is_remembered(bench: Bench) -> None:
    peer = shows(PROXY)

    users = {id(bench.ask(proxied(audit), peer)) for audit in range(50)}

    assert len(users) == 1
    assert (bench.authentication.hits, bench.authentication.misses) == (49, 1)
    assert bench.authentication.remembered == 1


def test_a_clients_own_headers_are_not_remembered(bench: Bench) -> None:
    peer = shows(PROXY)
    before = bench.authentication.remembered_bytes

    for audit in range(200):
        bench.ask(proxied(audit, (b"x-own", b"%032x" % audit * 1000)), peer)

    assert bench.authentication.remembered_bytes - before < 4096


def test_remembered_users_are_bounded_in_bytes(bench: Bench) -> None:
    peer = shows(PROXY)

    for number in range(3000):
        group = b"g%d-" % number + b"x" * 4096
        bench.ask([(b"x-remote-user", b"u"), (b"x-remote-group", group)], peer)

    assert 0 < bench.authentication.remembered_bytes <= 4 << 20
    assert bench.authentication.remembered < 600


def test_a_stated_user_larger_than_the_memory_is_answered_and_not_kept(bench: Bench) -> None:
    large = [(b"x-remote-user", b"u"), (b"x-remote-group", b"g" * (3 << 20))]

    assert bench.ask(large, shows(PROXY)).name == "u"
    assert bench.authentication.remembered == 0


def test_unknown_tokens_of_one_address_are_reviewed_up_to_its_allowance(bench: Bench) -> None:
    tokens = ReviewedTokens(bench.reviewer, clock=bench.clock)
    authentication = Authentication(bench.trust, tokens, bench.clock)

    def send(token: str, address: str) -> str:
        scope: Scope = {"headers": [bearer(token)], "client": (address, 1)}
        try:
            return asyncio.run(authentication.authenticate(scope)).name
        except ApiError as error:
            return error.reason

    answers = [send(f"bad-{number}", "10.0.0.1") for number in range(80)]

    assert answers == ["Unauthorized"] * 50 + ["TooManyRequests"] * 30
    assert len(bench.reviewer.asked) == 50
    assert tokens.refused == {"rate": 30}
    assert send("good", "10.0.0.2") == "alice"

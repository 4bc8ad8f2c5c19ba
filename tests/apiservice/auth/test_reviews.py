"""What is remembered of the cluster's answers, for how long, and what an error does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from apiservice.auth.authorization import Authorization
from apiservice.auth.tokens import ReviewedTokens, ReviewError
from apiservice.errors import Internal, TooManyRequests
from apiservice.identity import AccessDecision, Attributes, User

BOB = User("bob", groups=("dev",))
PODS = Attributes("get", "custom.metrics.k8s.io", "v1beta2", "pods", "m", "*", "ns")
METRICS = Attributes("get", path="/metrics")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeCluster:
    """Allows what a test configures, and can wait or fail."""

    allowed: set[str] = field(default_factory=lambda: {"bob"})
    tokens: dict[str, User] = field(default_factory=lambda: {"good": BOB})
    down: bool = False
    asked: int = 0
    gate: asyncio.Event | None = None

    async def review_access(self, user: User, attributes: Attributes) -> AccessDecision:
        await self._think()
        return AccessDecision(user.name in self.allowed, "because")

    async def review_token(self, token: str) -> User | None:
        await self._think()
        return self.tokens.get(token)

    async def _think(self) -> None:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise ReviewError("POST /reviews: connection refused")


STATIC = {
    "the privileged group": (User("x", groups=("system:masters",)), PODS, True),
    "liveness, for anybody": (User("system:anonymous"), Attributes("get", path="/livez"), True),
    "readiness": (User("system:anonymous"), Attributes("get", path="/readyz"), True),
    "health": (User("system:anonymous"), Attributes("get", path="/healthz"), True),
    "a check below readiness is not open": (
        User("system:anonymous"),
        Attributes("get", path="/readyz/ping"),
        False,
    ),
    "metrics are not open": (User("system:anonymous"), METRICS, False),
    "a user of the name of the group": (User("system:masters"), PODS, False),
    "an allowed user": (User("demo"), PODS, True),
}


@pytest.mark.parametrize(("user", "wanted", "allowed"), STATIC.values(), ids=STATIC.keys())
async def test_static_rules_without_a_cluster(
    user: User, wanted: Attributes, allowed: bool
) -> None:
    authorization = Authorization(None, allow_users=("demo",))

    assert (await authorization.authorize(user, wanted)).allowed is allowed


@pytest.mark.parametrize("name", ["bob", "mallory"])
async def test_allow_and_deny_are_remembered_for_ten_seconds(name: str) -> None:
    cluster, clock = FakeCluster(), Clock()
    authorization = Authorization(cluster, clock=clock)
    user = User(name)
    first = await authorization.authorize(user, PODS)

    clock.now = 9.9
    assert authorization.known_decision(user, PODS) == first
    clock.now = 10.1
    assert authorization.known_decision(user, PODS) is None
    await authorization.authorize(user, PODS)
    assert cluster.asked == 2


async def test_answers_are_not_mixed_up_between_users_groups_extras_or_attributes() -> None:
    cluster = FakeCluster()
    authorization = Authorization(cluster)
    questions = [
        (BOB, PODS),
        (User("bob"), PODS),
        (User("bob", uid="1"), PODS),
        (User("bob", extra={"scopes": ("a",)}), PODS),
        (BOB, PODS._replace(namespace="other")),
        (BOB, PODS._replace(subresource="n")),
        (BOB, METRICS),
    ]
    for user, wanted in questions * 2:
        await authorization.authorize(user, wanted)

    assert cluster.asked == len(questions)


async def test_an_authorizer_error_is_500_never_allow_and_not_remembered() -> None:
    cluster = FakeCluster(down=True)
    authorization = Authorization(cluster)

    with pytest.raises(Internal, match="connection refused"):
        await authorization.authorize(BOB, PODS)
    assert authorization.known_decision(BOB, PODS) is None

    cluster.down = False
    assert (await authorization.authorize(BOB, PODS)).allowed


async def test_an_expired_allow_is_not_used_when_the_cluster_is_down() -> None:
    cluster, clock = FakeCluster(), Clock()
    authorization = Authorization(cluster, clock=clock)
    await authorization.authorize(BOB, PODS)
    clock.now, cluster.down = 11.0, True

    with pytest.raises(Internal):
        await authorization.authorize(BOB, PODS)


async def test_equal_questions_at_one_time_are_one_review() -> None:
    cluster = FakeCluster(gate=asyncio.Event())
    authorization = Authorization(cluster)
    waiting = [asyncio.create_task(authorization.authorize(BOB, PODS)) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert cluster.gate is not None
    cluster.gate.set()

    decisions = await asyncio.gather(*waiting)

    assert cluster.asked == 1
    assert all(decision.allowed for decision in decisions)


async def test_who_asked_first_may_hang_up_without_taking_the_answer_along() -> None:
    cluster = FakeCluster(gate=asyncio.Event())
    authorization = Authorization(cluster)
    first = asyncio.create_task(authorization.authorize(BOB, PODS))
    second = asyncio.create_task(authorization.authorize(BOB, PODS))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    assert cluster.gate is not None
    cluster.gate.set()

    assert (await second).allowed
    assert cluster.asked == 1


async def test_an_unreasonably_long_question_is_answered_but_not_remembered() -> None:
    cluster = FakeCluster()
    authorization = Authorization(cluster)
    long = Attributes("get", path="/" + "x" * 20_000)

    assert (await authorization.authorize(BOB, long)).allowed
    assert authorization.known_decision(BOB, long) is None


@pytest.mark.parametrize(("token", "user"), [("good", BOB), ("bad", None)])
async def test_tokens_are_remembered_for_ten_seconds_both_ways(
    token: str, user: User | None
) -> None:
    cluster, clock = FakeCluster(), Clock()
    tokens = ReviewedTokens(cluster, clock=clock)

    assert await tokens.user(token) == user
    clock.now = 9.9
    assert await tokens.user(token) == user
    assert cluster.asked == 1
    clock.now = 10.1
    assert await tokens.user(token) == user
    assert cluster.asked == 2


async def test_a_token_asked_about_by_many_is_reviewed_once() -> None:
    cluster = FakeCluster(gate=asyncio.Event())
    tokens = ReviewedTokens(cluster)
    waiting = [asyncio.create_task(tokens.user("good")) for _ in range(50)]
    await asyncio.sleep(0)
    assert cluster.gate is not None
    cluster.gate.set()

    assert set(await asyncio.gather(*waiting)) == {BOB}
    assert cluster.asked == 1


async def test_a_review_error_reaches_everybody_who_waited() -> None:
    cluster = FakeCluster(gate=asyncio.Event(), down=True)
    tokens = ReviewedTokens(cluster)
    waiting = [asyncio.create_task(tokens.user("good")) for _ in range(3)]
    await asyncio.sleep(0)
    assert cluster.gate is not None
    cluster.gate.set()

    answers = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(answer) for answer in answers] == [ReviewError] * 3


async def test_a_huge_token_is_bad_without_asking() -> None:
    cluster = FakeCluster()

    assert await ReviewedTokens(cluster).user("x" * 100_000) is None
    assert cluster.asked == 0


async def test_no_token_is_kept_in_clear() -> None:
    tokens = ReviewedTokens(FakeCluster())
    await tokens.user("good")

    assert b"good" not in b"".join(tokens._answers)


async def test_hits_and_misses_are_counted_and_static_rules_are_neither() -> None:
    clock = Clock()
    authorization = Authorization(FakeCluster(), clock=clock)
    for _ in range(3):
        await authorization.authorize(BOB, PODS)
    await authorization.authorize(User("x", groups=("system:masters",)), PODS)
    assert (authorization.hits, authorization.misses, authorization.remembered) == (2, 1, 1)
    clock.now = 11.0
    await authorization.authorize(BOB, PODS)
    assert (authorization.hits, authorization.misses, authorization.remembered) == (2, 2, 1)


async def test_tokens_asked_about_and_remembered_are_counted() -> None:
    tokens = ReviewedTokens(FakeCluster())
    for token in ("good", "good", "bad", "bad"):
        await tokens.user(token)
    assert (tokens.hits, tokens.misses, tokens.remembered) == (2, 2, 2)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


async def test_anonymous_clients_share_an_allowance_of_reviews() -> None:
    cluster, clock = FakeCluster(allowed=set()), Clock()
    authorization = Authorization(cluster, clock=clock)
    refused = 0
    for number in range(500):
        try:
            await authorization.authorize(ANONYMOUS, Attributes("get", path=f"/{number}"))
        except TooManyRequests:
            refused += 1

    assert (cluster.asked, refused, authorization.refused["rate"]) == (50, 450, 450)

    clock.now = 2.0
    assert not (await authorization.authorize(ANONYMOUS, METRICS)).allowed
    assert not (await authorization.authorize(ANONYMOUS, METRICS)).allowed, "remembered"
    assert cluster.asked == 51


async def test_the_allowance_of_anonymous_clients_does_not_bind_authenticated_users() -> None:
    cluster = FakeCluster()
    authorization = Authorization(cluster, clock=Clock())
    for number in range(60):
        with suppress(TooManyRequests):
            await authorization.authorize(ANONYMOUS, Attributes("get", path=f"/{number}"))

    for number in range(200):
        wanted = PODS._replace(namespace=f"ns{number}")
        assert (await authorization.authorize(BOB, wanted)).allowed


@pytest.mark.parametrize("name", ["bob", "mallory"])
async def test_remembered_answers_are_bounded_in_bytes(name: str) -> None:
    authorization = Authorization(FakeCluster(), limit=200_000)
    for number in range(2000):
        await authorization.authorize(
            User(name), PODS._replace(name="\U0001f642" * 500 + str(number))
        )

    assert 0 < authorization.remembered_bytes <= 200_000
    assert authorization.remembered < 100


async def test_attributes_are_measured_in_bytes() -> None:
    authorization = Authorization(FakeCluster())
    wanted = PODS._replace(name="\U0001f642" * 3000)

    await authorization.authorize(BOB, wanted)

    assert authorization.known_decision(BOB, wanted) is None


async def test_a_users_groups_count_for_what_is_remembered() -> None:
    authorization = Authorization(FakeCluster(), limit=100_000)
    for number in range(100):
        user = User("bob", groups=("g" * 5000, str(number)))
        await authorization.authorize(user, PODS)

    assert authorization.remembered < 20


async def test_remembered_tokens_are_bounded_in_bytes() -> None:
    cluster = FakeCluster(tokens={str(n): User("u", groups=(f"{n}" * 2000,)) for n in range(200)})
    tokens = ReviewedTokens(cluster, limit=100_000)
    for number in range(200):
        assert await tokens.user(str(number), sender=str(number)) is not None

    assert 0 < tokens.remembered_bytes <= 100_000


async def test_questions_about_one_namespace_do_not_delay_those_about_another() -> None:
    cluster = FakeCluster(gate=asyncio.Event())
    authorization = Authorization(cluster)
    loud = [
        asyncio.create_task(authorization.authorize(BOB, PODS._replace(subresource=f"m{number}")))
        for number in range(400)
    ]
    await asyncio.sleep(0.01)
    half, other = cluster.asked, PODS._replace(namespace="other")
    assert half == 16, "half of the places"
    calm = asyncio.create_task(authorization.authorize(BOB, other))
    await asyncio.sleep(0.01)
    assert cluster.asked == half + 1
    assert cluster.gate is not None
    cluster.gate.set()
    assert (await calm).allowed
    answers = await asyncio.gather(*loud, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, TooManyRequests)]
    assert len(refused) == 400 - half - 256 == authorization.refused["full"]
    assert "too many requests wait already (256 of the namespace)" in str(refused[0])

"""Tokens of a cloud, kept and renewed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.tokens import CachedToken, Token, redact_error
from tests.adapter.pipeline.sources.conftest import settled


class Clock:
    """A settable clock."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Issuer:
    """Issues numbered tokens, or fails."""

    def __init__(self, clock: Clock, life: float = 3600.0) -> None:
        self.clock = clock
        self.life = life
        self.asked = 0
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> Token:
        self.asked += 1
        assert self.gate.wait(20)
        if self.error:
            raise self.error
        return Token(f"token-{self.asked}", self.clock.now + self.life)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_token_is_kept_until_five_minutes_before_its_end(clock: Clock) -> None:
    issuer = Issuer(clock)
    tokens = CachedToken("cloud", issuer, clock=clock)
    assert (await tokens.current()).text == "token-1"
    clock.now += 3299
    assert (await tokens.current()).text == "token-1"
    clock.now += 2
    assert (await tokens.current()).text == "token-1", "the old one is good while another comes"
    await settled(lambda: issuer.asked == 2)
    await settled(lambda: tokens._pending is None or tokens._pending.done())
    assert (await tokens.current()).text == "token-2"


async def test_a_short_lived_token_is_renewed_at_half_of_its_life(clock: Clock) -> None:
    issuer = Issuer(clock, life=60.0)
    tokens = CachedToken("cloud", issuer, clock=clock)
    await tokens.current()
    clock.now += 29
    await tokens.current()
    assert issuer.asked == 1
    clock.now += 22
    assert (await tokens.current()).text == "token-2", "ten seconds before its end none is shown"


async def test_concurrent_queries_request_one_token(clock: Clock) -> None:
    issuer = Issuer(clock)
    issuer.gate.clear()
    tokens = CachedToken("cloud", issuer, clock=clock)
    asking = [asyncio.create_task(tokens.current()) for _ in range(5)]
    await settled(lambda: issuer.asked == 1)
    asking[0].cancel()
    issuer.gate.set()
    assert {(await task).text for task in asking[1:]} == {"token-1"}
    assert issuer.asked == 1


async def test_a_failed_renewal_has_no_effect_while_the_token_is_valid(clock: Clock) -> None:
    issuer = Issuer(clock)
    tokens = CachedToken("cloud", issuer, clock=clock)
    await tokens.current()
    issuer.error = OSError("metadata server is unavailable")
    clock.now += 3500
    assert (await tokens.current()).text == "token-1"
    await settled(lambda: issuer.asked == 2)
    clock.now += 95
    with pytest.raises(CredentialError, match="cloud: metadata server is unavailable"):
        await tokens.current()


async def test_a_failing_cloud_is_tried_at_most_every_ten_seconds(clock: Clock) -> None:
    issuer = Issuer(clock)
    issuer.error = OSError("no")
    tokens = CachedToken("cloud", issuer, clock=clock)
    for _ in range(3):
        with pytest.raises(CredentialError):
            await tokens.current()
    assert issuer.asked == 1
    issuer.error = None
    clock.now += 11
    assert (await tokens.current()).text == "token-2"


async def test_a_refused_token_is_replaced_once_in_five_minutes(clock: Clock) -> None:
    issuer = Issuer(clock)
    tokens = CachedToken("cloud", issuer, clock=clock)
    await tokens.current()
    assert tokens.note_refusal("token-1"), "another may be better"
    assert (await tokens.current()).text == "token-2"
    assert tokens.note_refusal("token-1"), "a newer one is here already"
    assert not tokens.note_refusal("token-2"), "the server refuses every token"
    assert ((await tokens.current()).text, issuer.asked) == ("token-2", 2)
    clock.now += 301
    assert tokens.note_refusal("token-2")


async def test_an_expired_token_hints_at_the_clock(clock: Clock) -> None:
    issuer = Issuer(clock, life=-3600.0)
    tokens = CachedToken("cloud", issuer, clock=clock)
    for _ in range(3):
        with pytest.raises(CredentialError, match=r"cloud: .*check this machine's clock"):
            await tokens.current()
    assert issuer.asked == 1, "no haste helps"


JWT = "eyJhbGciOiJSUzI1NiJ9." + "A" * 200 + "." + "b-_" * 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("two\n lines", "two lines", id="one line"),
        pytest.param(
            f"bad answer: {{'id_token': '{JWT}'}}", "bad answer: {'id_token': '…'}", id="jwt"
        ),
        pytest.param("", "ValueError", id="an error without words"),
        pytest.param(
            "see https://login.microsoftonline.com/common/oauth2",
            "see https://login.microsoftonline.com/common/oauth2",
            id="an address stays",
        ),
    ],
)
def test_a_possible_token_is_never_logged(text: str, said: str) -> None:
    assert redact_error(ValueError(text)) == said

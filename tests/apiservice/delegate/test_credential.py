"""The token for delegates: requested, renewed, refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from apiservice.delegate.credential import RequestedToken, TokenFile
from apiservice.delegate.failure import DelegateFailure


class Api:
    """Answers TokenRequests."""

    def __init__(self) -> None:
        self.asked = 0
        self.failure: Exception | None = None
        self.now = 100.0

    async def ask(self) -> bytes:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        token = {"token": f"t{self.asked}"}
        return json.dumps({"spec": {"expirationSeconds": 600}, "status": token}).encode()

    def credential(self) -> RequestedToken:
        return RequestedToken(self.ask, "ns/reader", lambda: self.now)


async def settle(condition: Callable[[], bool]) -> None:
    """Let tasks run until a condition holds, and their callbacks after it."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert condition()


async def test_many_requests_share_one_token() -> None:
    api = Api()
    credential = api.credential()
    tokens = await asyncio.gather(*(credential.token() for _ in range(10)))
    assert set(tokens) == {"t1"}
    assert api.asked == 1


async def test_a_token_is_renewed_before_it_expires_and_nobody_waits() -> None:
    api = Api()
    credential = api.credential()
    await credential.token()
    api.now += 481
    assert await credential.token() == "t1"
    await settle(lambda: api.asked == 2)
    assert await credential.token() == "t2"
    assert api.asked == 2


async def test_an_old_token_serves_until_it_expires() -> None:
    api = Api()
    credential = api.credential()
    await credential.token()
    api.failure = OSError("down")
    api.now += 500
    assert await credential.token() == "t1"
    await settle(lambda: api.asked == 2)
    api.now += 101
    with pytest.raises(DelegateFailure, match="ns/reader: down; the adapter needs the right to"):
        await credential.token()
    api.failure = None
    api.now += 11
    assert await credential.token() == f"t{api.asked}"


async def test_a_refused_token_is_replaced_but_not_in_a_storm() -> None:
    api = Api()
    credential = api.credential()
    first = await credential.token()
    assert not credential.note_refusal(first)
    api.now += 11
    assert credential.note_refusal(first)
    assert await credential.token() == "t2"
    assert credential.note_refusal(first)
    assert not credential.note_refusal("t2")
    assert api.asked == 2


async def test_failures_are_not_repeated_for_each_request() -> None:
    api = Api()
    api.failure = OSError("down")
    credential = api.credential()
    for _ in range(5):
        with pytest.raises(DelegateFailure):
            await credential.token()
    assert api.asked == 1


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    credential = TokenFile(file)
    with pytest.raises(DelegateFailure, match="cannot be read: No such file"):
        await credential.token()
    file.write_text("one\n")
    assert await credential.token() == "one"
    assert not credential.note_refusal("one")
    file.write_text("another\n")
    assert credential.note_refusal("one")
    assert await credential.token() == "another"
    file.write_text("two\nlines")
    with pytest.raises(DelegateFailure, match="a token of one line"):
        await credential.token()

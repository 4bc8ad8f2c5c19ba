"""A controller that is killed at any write orders neither twice nor less once it is back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.nodepool.act import ledgerstore
from adapter.nodepool.act.ledgerstore import restore
from adapter.nodepool.learn.ledger import Ledger
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.run.test_controller import World

_ROUNDS = (60, 75, 90, 900, 915)
"""Seconds of the rounds of one process; the ledger is stored after ten minutes."""


class Killed(BaseException):
    """SIGKILL: nothing after it runs."""


class MortalApi(FakeApi):
    """Ends its client at one write, before or after the write took effect."""

    def __init__(self, at: int, *, written: bool) -> None:
        super().__init__()
        self.at = at
        self.written = written

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        if method == "GET":
            return await super().__call__(method, path, body, content_type)
        self.at -= 1
        if self.at == 0 and not self.written:
            raise Killed
        answer = await super().__call__(method, path, body, content_type)
        if self.at == 0:
            raise Killed
        return answer


async def live(api: FakeApi) -> tuple[World, bool]:
    """Run a new process over what is there; returns it, and whether it lived to its end."""
    world = World(api=api, apply=True)
    try:
        for seconds in _ROUNDS:
            world.replicas()
            await world.round(seconds)
    except Killed:
        return world, False
    return world, True


def histories(api: FakeApi) -> int:
    """Of the stored ledger, each of which can be read."""
    (stored,) = [
        obj for path, obj in api.objects.items() if path.endswith(f"/configmaps/{ledgerstore.NAME}")
    ] or [{}]
    ledger = Ledger()
    restore(ledger, json.loads(json.dumps(stored.get("data", {}))))
    return len(ledger.histories)


@pytest.mark.parametrize("written", [False, True], ids=["before the write", "after it"])
async def test_after_a_kill_at_any_write_the_orders_are_those_of_a_life_without(
    written: bool,
) -> None:
    quiet, lived = await live(MortalApi(0, written=False))
    wanted, kept = quiet.replicas(), histories(quiet.api)
    assert lived
    assert wanted == [2]
    assert kept == 1
    kills = 0
    for write in range(1, 60):
        api = MortalApi(write, written=written)
        killed, lived = await live(api)
        assert sum(killed.replicas()) <= sum(wanted), "nothing is ordered twice"
        if lived:
            break
        kills += 1
        again, lived = await live(api)
        assert lived
        assert again.replicas() == wanted, f"killed at write {write}"
        assert histories(api) == kept
    assert kills >= 4, "lifeline, order, event, ledger"

"""Places that are shared fairly over namespaces and users."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiservice.runtime.shares import ASKER, Asker, NoPlaceError, Shares


class Crowd:
    """Requests that hold their place until the test ends them."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.order: list[str] = []
        self.running: Counter[str] = Counter()
        self.refused: list[tuple[str, str]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: dict[str, list[asyncio.Event]] = {}

    def ask(self, namespace: str, user: str = "u", *, shared: bool = False) -> asyncio.Task[None]:
        task = asyncio.create_task(self._hold(namespace, user, shared=shared))
        self.tasks.append(task)
        return task

    async def _hold(self, namespace: str, user: str, *, shared: bool) -> None:
        ASKER.set(Asker(namespace, user))
        place = self.shares.shared_place() if shared else self.shares.place()
        try:
            async with place:
                self.order.append(f"{namespace}/{user}")
                self.running[namespace] += 1
                end = asyncio.Event()
                self.ends.setdefault(namespace, []).append(end)
                try:
                    await end.wait()
                finally:
                    self.running[namespace] -= 1
        except NoPlaceError as error:
            self.refused.append((namespace, error.reason))

    async def end(self, namespace: str) -> None:
        self.ends[namespace].pop(0).set()
        await turns()

    async def end_all(self) -> None:
        while any(not task.done() for task in self.tasks):
            for ends in self.ends.values():
                while ends:
                    ends.pop().set()
            await turns()


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_namespace_takes_at_most_half_of_the_places() -> None:
    crowd = Crowd(Shares(4))
    for _ in range(10):
        crowd.ask("loud")
    await turns()
    assert crowd.running["loud"] == 2
    crowd.ask("quiet")
    await turns()
    assert crowd.running["quiet"] == 1
    await crowd.end_all()


async def test_places_go_round_over_namespaces_and_then_over_users() -> None:
    crowd = Crowd(Shares(1))
    crowd.ask("a", "first")
    await turns()
    for user in ("x", "x", "x", "y"):
        crowd.ask("a", user)
    for namespace in ("b", "c"):
        crowd.ask(namespace)
        await turns()
    for _ in range(6):
        await crowd.end(crowd.order[-1].partition("/")[0])
    assert crowd.order == ["a/first", "a/x", "b/u", "c/u", "a/y", "a/x", "a/x"]
    await crowd.end_all()


async def test_one_namespace_may_wait_only_so_often_and_others_still_may() -> None:
    crowd = Crowd(Shares(2, waiting=3))
    for _ in range(20):
        crowd.ask("loud")
    crowd.ask("quiet")
    await turns()
    assert crowd.refused == [("loud", "full")] * 16
    assert crowd.running["quiet"] == 1
    assert crowd.shares.refused["full"] == 16
    await crowd.end_all()
    assert crowd.shares.waiting == 0


async def test_shared_work_comes_first_and_has_places_of_its_own() -> None:
    crowd = Crowd(Shares(3, shared_only=1, per_namespace=8))
    for number in range(6):
        crowd.ask(f"ns-{number}")
    await turns()
    assert crowd.running.total() == 2
    for _ in range(2):
        crowd.ask("", shared=True)
    await turns()
    assert crowd.running[""] == 1
    await crowd.end("ns-0")
    assert crowd.running[""] == 2
    await crowd.end_all()


async def test_a_place_that_does_not_come_in_time_is_refused_and_taken_by_nobody() -> None:
    crowd = Crowd(Shares(1, seconds=0.0))
    crowd.ask("a")
    await turns()
    waiting = crowd.ask("b")
    await waiting
    assert crowd.refused == [("b", "timeout")]
    await crowd.end("a")
    crowd.ask("b")
    await turns()
    assert crowd.running["b"] == 1
    await crowd.end_all()


async def test_a_client_that_leaves_when_its_turn_comes_passes_the_place_on() -> None:
    crowd = Crowd(Shares(1))
    crowd.ask("a")
    await turns()
    leaves, stays = crowd.ask("b"), crowd.ask("c")
    await turns()
    crowd.ends["a"].pop().set()
    await asyncio.sleep(0)  # the holder ends and serves b
    await asyncio.sleep(0)
    leaves.cancel()
    await turns()
    assert leaves.cancelled() or leaves.done()
    assert crowd.running["c"] == 1
    assert not stays.done()
    await crowd.end_all()


@pytest.mark.parametrize("shared", [False, True])
async def test_an_error_of_the_work_gives_the_place_back(*, shared: bool) -> None:
    shares = Shares(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="work"):
            async with shares.shared_place() if shared else shares.place():
                raise ValueError("work")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("abcd"), st.sampled_from("xyz")),
        st.tuples(st.just("shared"), st.just(""), st.just("")),
        st.tuples(st.just("end"), st.sampled_from(["a", "b", "c", "d", ""]), st.just("")),
        st.tuples(st.just("cancel"), st.integers(0, 60), st.just("")),
    ),
    max_size=60,
)


def take(step: tuple[str, str | int, str], crowd: Crowd) -> None:
    """Do what a step says, if it can be done."""
    kind, who, user = step
    if kind == "ask":
        crowd.ask(str(who), user)
    elif kind == "shared":
        crowd.ask("", shared=True)
    elif kind == "end" and crowd.ends.get(str(who)):
        crowd.ends[str(who)].pop(0).set()
    elif kind == "cancel" and crowd.tasks:
        crowd.tasks[int(who) % len(crowd.tasks)].cancel()


@given(STEPS, st.integers(1, 5), st.integers(0, 2))
@settings(max_examples=200, deadline=None)
def test_no_place_is_lost_or_given_twice(
    steps: list[tuple[str, str | int, str]], places: int, kept: int
) -> None:
    kept = min(kept, places - 1)
    per_namespace = max(1, (places - kept) // 2)

    async def play() -> None:
        shares = Shares(places, shared_only=kept, waiting=5, all_waiting=30)
        crowd = Crowd(shares)
        for step in steps:
            take(step, crowd)
            await turns(1)
            assert crowd.running.total() <= places
            assert max(crowd.running[namespace] for namespace in "abcd") <= per_namespace
        await turns()
        assert crowd.running.total() or not shares.waiting, "who waits beside free places?"
        await crowd.end_all()
        assert shares.waiting == 0
        # Every place is there again.
        async with AsyncExitStack() as held:
            for _ in range(places):
                await held.enter_async_context(shares.shared_place())

    asyncio.run(play())

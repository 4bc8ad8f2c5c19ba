"""Queries of rules: asked once, kept for a short time, and never invented."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapter.answers.rules import series
from adapter.answers.rules import store as stores
from adapter.answers.rules import vector as vectors
from adapter.answers.rules.store import RuleAnswer, RuleStore, StoreOptions
from adapter.answers.rules.vector import decode
from adapter.pipeline.sources.byteroom import HeldBytes
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from apiservice.errors import Unavailable
from apiservice.runtime.shares import ASKER, Asker, Shares
from apiservice.runtime.steps import at_once, run_in_slices
from tests.adapter.answers.rules.engine import Engine, running, vector

ONE = vector(({"pod": "a"}, "1.5"))
BROKEN = (503, b'{"status":"error","errorType":"unavailable","error":"restarting"}')


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as made:
        made.answer = lambda query: (200, ONE)
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(engine: Engine, clock: Clock) -> AsyncIterator[RuleStore]:
    made = RuleStore(PrometheusOptions(engine.url, 60, timeout=5), StoreOptions(5, 60), clock)
    yield made
    await made.close()


async def ask(store: RuleStore, query: str = "up") -> RuleAnswer:
    return await run_in_slices(store.answer(query))


class Slow:
    """An answer that waits until the test lets it go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, query: str) -> tuple[int, bytes]:
        self.begun.set()
        self.go.wait(10)
        return 200, ONE

    async def wait(self) -> None:
        """Wait until the engine has the query."""
        assert await asyncio.to_thread(self.begun.wait, 10)


async def test_requests_at_the_same_time_send_one_query(store: RuleStore, engine: Engine) -> None:
    engine.answer = slow = Slow()
    waiting = [asyncio.create_task(ask(store)) for _ in range(20)]
    await slow.wait()
    slow.go.set()
    answers = await asyncio.gather(*waiting)
    assert {answer.vector.values[0].milli for answer in answers} == {1500}
    assert (len(engine.asked), store.queries) == (1, 1)


async def test_an_answer_serves_until_it_is_no_longer_fresh(
    store: RuleStore, engine: Engine, clock: Clock
) -> None:
    first = await ask(store)
    clock.now += 4.9
    assert await ask(store) is first
    clock.now += 0.2
    assert await ask(store) is not first
    assert (len(engine.asked), store.recalled) == (2, 1)


async def test_while_the_store_fails_the_last_answer_serves_up_to_the_age_limit(
    store: RuleStore, engine: Engine, clock: Clock
) -> None:
    first = await ask(store)
    engine.answer = lambda query: BROKEN
    clock.now += 59
    kept = await ask(store)
    assert kept.vector is first.vector
    assert kept.expires == first.at + 60
    clock.now += 2
    with pytest.raises(Unavailable, match=r"unavailable.*restarting"):
        await ask(store)
    assert store.failures == {"unavailable": 2}


async def test_a_store_that_never_answered_gives_no_value(store: RuleStore, engine: Engine) -> None:
    engine.answer = lambda query: BROKEN
    with pytest.raises(Unavailable):
        await ask(store)


async def test_a_query_that_takes_too_long_ends(engine: Engine, clock: Clock) -> None:
    engine.answer = slow = Slow()
    store = RuleStore(PrometheusOptions(engine.url, 60, timeout=0.1), StoreOptions(5, 60), clock)
    try:
        with pytest.raises(Unavailable, match="timeout"):
            await ask(store)
    finally:
        slow.go.set()
        await store.close()


async def ask_for(store: RuleStore, namespace: str, query: str) -> None:
    ASKER.set(Asker(namespace, "u"))
    await ask(store, query)


async def until(store: RuleStore, queries: int) -> None:
    async with asyncio.timeout(30):
        while store.queries < queries:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.01)


async def test_queries_of_a_namespace_that_wait_are_bounded(
    store: RuleStore, engine: Engine
) -> None:
    store.places = Shares(2, waiting=1)
    engine.answer = slow = Slow()
    tasks = [asyncio.create_task(ask_for(store, "loud", f"q{number}")) for number in range(3)]
    await slow.wait()
    with pytest.raises(Unavailable, match="busy"):
        await tasks[2]
    other = asyncio.create_task(ask_for(store, "quiet", "q"))
    await until(store, 2)
    slow.go.set()
    await asyncio.gather(*tasks[:2], other)
    assert store.failures["busy"] == 1


async def test_a_namespace_has_half_of_the_places_and_shared_queries_have_their_own(
    store: RuleStore, engine: Engine
) -> None:
    engine.answer = slow = Slow()
    half = (stores.PARALLEL - stores.KEPT) // 2
    tasks = [asyncio.create_task(ask_for(store, "loud", f"q{number}")) for number in range(15)]
    await until(store, half)
    tasks += [asyncio.create_task(ask_for(store, f"ns{n}", f"ns{n}")) for n in range(15)]
    await until(store, 2 * half)
    await slow.wait()
    assert store.queries == 2 * half
    shared = [asyncio.create_task(store.fetch(f"wide{number}")) for number in range(stores.KEPT)]
    await until(store, stores.PARALLEL)
    slow.go.set()
    await asyncio.gather(*tasks, *shared)
    assert store.queries == 30 + stores.KEPT


async def test_a_list_of_series_may_take_three_times_as_long(
    store: RuleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []
    timeout = asyncio.timeout

    def noted(seconds: float | None) -> asyncio.Timeout:
        given.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", noted)
    await ask(store)
    assert 5 in given
    assert 15 not in given
    await store.shapes("up", 0.0)
    assert 15 in given


async def test_a_failure_is_logged_once_in_30_seconds(
    store: RuleStore, engine: Engine, clock: Clock
) -> None:
    engine.answer = lambda query: BROKEN
    logged = []
    for seconds in (0, 29, 1, 29, 1):
        clock.now += seconds
        with capture_logs() as logs:
            for number in range(3):
                with pytest.raises(Unavailable):
                    await ask(store, f"q{number}")
        logged.append(sum(line["event"] == "query of a rule failed" for line in logs))
    assert logged == [1, 0, 1, 0, 1]


async def test_answers_that_are_kept_are_bounded_in_bytes(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "CACHE_BYTES", 4000)
    store = RuleStore(PrometheusOptions(engine.url, 60), StoreOptions(50, 60), clock)
    try:
        for number in range(20):
            await ask(store, f"q{number}")
        await ask(store, "q0")
        assert len(engine.asked) == 21
        await ask(store, "q0")
        assert len(engine.asked) == 21
    finally:
        await store.close()


def test_what_the_api_cannot_express_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ("1", "NaN", "+Inf", "1e300", "x", "1_0")
    answer = at_once(decode(vector(*(({}, text) for text in texts)), 0))
    assert [value.milli for value in answer.values] == [1000]
    assert answer.left_out == {"nan": 1, "too_large": 2, "bad_value": 2, "too_many": 0}
    monkeypatch.setattr(vectors, "MAX_VALUES", 2)
    answer = at_once(decode(vector(*(({}, "1") for _ in range(5))), 0))
    assert (len(answer.values), answer.left_out["too_many"]) == (2, 3)


def test_a_scalar_is_one_value_without_labels_and_times_are_ours() -> None:
    body = b'{"status":"success","data":{"resultType":"scalar","result":[1700000007,"2"]}}'
    answer = at_once(decode(body, 7))
    assert answer.scalar
    assert answer.values == [({}, 2000, 1_700_000_000.0)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (vector(({}, "1"), isPartial=True), "partial"),
        (vector(({}, "1"), warnings=["store x is unreachable"]), "partial"),
        (b'{"status":"success","data":{"resultType":"matrix","result":[]}}', "result_type"),
        (b'{"status":"error","errorType":"bad_data","error":"parse error"}', "query"),
        (b"<html>", "not_json"),
        (b'{"status":"success","data":{"resultType":"vector","result":{}}}', "not_json"),
    ],
)
def test_an_answer_that_may_be_wrong_is_an_error(body: bytes, reason: str) -> None:
    with pytest.raises(SourceError) as raised:
        at_once(decode(body, 0))
    assert raised.value.reason == reason


def test_a_remark_on_the_expression_is_not_a_loss() -> None:
    answer = at_once(
        decode(vector(({}, "1"), warnings=["PromQL info: metric might be a counter"]), 0)
    )
    assert len(answer.values) == 1


async def test_answers_in_progress_share_a_bound_of_bytes(engine: Engine) -> None:
    """Ten answers of almost the bound arrive at once: each is read, within the bound together."""
    pad = b" " * 60_000
    engine.answer = lambda query: (200, ONE + pad)
    store = RuleStore(PrometheusOptions(engine.url, 60, max_bytes=1 << 16), StoreOptions(5, 60))
    held: list[int] = []
    take = HeldBytes.take

    async def counted(self: HeldBytes, size: int) -> None:
        await take(self, size)
        held.append((1 << 14) - store._room.free)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HeldBytes, "take", counted)
        answers = await asyncio.gather(*(ask(store, f"up{number}") for number in range(10)))
    await store.close()
    assert [len(answer.vector.values) for answer in answers] == [1] * 10
    assert 60_000 < max(held) <= (1 << 16) + (1 << 14)
    assert store._room.free == 1 << 14


async def test_an_answer_beyond_the_bound_is_refused(engine: Engine) -> None:
    engine.answer = lambda query: (200, ONE + b" " * 5000)
    store = RuleStore(PrometheusOptions(engine.url, 60, max_bytes=4096), StoreOptions(5, 60))
    with pytest.raises(Unavailable, match="too_large"):
        await ask(store)
    await store.close()
    assert store._room.free == 1024


def test_an_answer_with_very_many_parts_is_refused() -> None:
    """Each would take ten times its bytes while the answer is decoded."""
    rows = b"0," * vectors.MAX_PARTS
    body = b'{"status":"success","data":{"resultType":"vector","result":[%s0,0]}}' % rows
    with pytest.raises(SourceError) as refused:
        at_once(decode(body, 0))
    assert refused.value.reason == "too_large"
    with pytest.raises(SourceError) as refused:
        at_once(series.decode(b'{"status":"success","data":[%s0,0]}' % rows))
    assert refused.value.reason == "too_large"


TEXTS = st.text(max_size=8) | st.sampled_from(['"},{"', '"}]', '[{"', "\\", ","])


@given(st.lists(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=4), min_size=1, max_size=6))
def test_a_large_list_of_series_is_read_as_a_small_one(rows: list[dict[str, str]]) -> None:
    """Engines write JSON without blanks, and a text in it contains no bare quotation mark."""
    body = msgspec.json.encode({"status": "success", "warnings": ["w"], "data": rows})
    small = at_once(series.decode(body))
    with pytest.MonkeyPatch.context() as patched:
        # The envelope may have as many commas as this, and the list has more.
        patched.setattr(series, "MAX_PARTS", 2)
        if body.count(b",") > 2:
            assert at_once(series.decode(body)) == small

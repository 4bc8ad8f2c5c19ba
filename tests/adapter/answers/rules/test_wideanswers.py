"""Queries for all objects: asked once in an interval, kept, bounded, and given up with a reason."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import structlog

from adapter.answers.rules import vector as vectors
from adapter.answers.rules import wideanswers
from adapter.answers.rules.promql import ObjectKey
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import RuleText
from adapter.answers.rules.store import RuleStore, StoreOptions
from adapter.answers.rules.wideanswers import IDLE, RETRY, WideAnswers, WideOptions
from adapter.answers.rules.widevalues import WideAnswer
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from apiservice.errors import Unavailable
from apiservice.labels.selector import parse
from apiservice.runtime.shares import ASKER, NOBODY, Asker, Shares
from apiservice.runtime.steps import run_in_slices
from tests.adapter.answers.rules.engine import Engine, Row, running, vector

KEY = ObjectKey("pod", "namespace")
SUM = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
TWO: tuple[Row, ...] = (
    ({"namespace": "a", "pod": "p"}, "1.5"),
    ({"namespace": "b", "pod": "p"}, "2"),
)
ERROR = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"})


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Wide:
    """Answers of a store on loopback."""

    def __init__(self, engine: Engine, *, enabled: bool = True) -> None:
        self.clock = Clock()
        options = PrometheusOptions(engine.url, 60, timeout=5)
        self.store = RuleStore(options, StoreOptions(5, 60), self.clock)
        wide = WideOptions(enabled, 10, 60)
        self.answers = WideAnswers(lambda: self.store, wide, self.clock)
        self.rule = self.made(SUM)

    @staticmethod
    def made(template: str) -> MetricRule:
        return MetricRule(RuleText("rules[0]", 1, series_query="up", metrics_query=template))

    async def ask(self, selector: str = "", series: str = "up") -> WideAnswer | None:
        return await run_in_slices(self.answers.answer(self.rule, series, KEY, parse(selector)))

    async def reason(self, selector: str = "") -> str:
        """Ask what is not answered; return the counted reason."""
        before = self.answers.narrow.copy()
        assert await self.ask(selector) is None
        (reason,) = (self.answers.narrow - before).keys()
        return reason


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as made:
        made.answer = lambda query: (200, vector(*TWO))
        yield made


@pytest.fixture
async def wide(engine: Engine) -> AsyncIterator[Wide]:
    made = Wide(engine)
    yield made
    await made.store.close()


async def test_one_query_answers_for_every_object(wide: Wide, engine: Engine) -> None:
    answers = await asyncio.gather(*(wide.ask() for _ in range(1500)))
    assert {id(answer) for answer in answers} == {id(answers[0])}
    assert answers[0] is not None
    assert answers[0].spaces == {"a": {"p": 1500}, "b": {"p": 2000}}
    assert engine.asked == ['sum(up{namespace!="",pod!=""}) by (pod,namespace)']
    assert (wide.answers.served, wide.answers.queries, wide.answers.objects) == (1500, 1, 2)


async def test_a_metric_selector_has_a_query_of_its_own(wide: Wide, engine: Engine) -> None:
    await wide.ask('queue in (x,y),zone!=""'.replace('""', "z"))
    assert engine.asked == [
        'sum(up{queue=~"x|y",zone!="z",namespace!="",pod!=""}) by (pod,namespace)'
    ]


async def test_selectors_of_clients_do_not_fill_the_places_of_everybodys_queries(
    wide: Wide, engine: Engine
) -> None:
    """One place that only shared queries may take: with a selector, there is none."""
    wide.store.places = Shares(1, shared_only=1, seconds=0.01)
    assert await wide.ask() is not None
    assert await wide.reason("queue=a") == "failed", "requests send queries of their own"
    assert len(engine.asked) == 1


async def test_selectors_of_one_namespace_do_not_delay_those_of_another(
    wide: Wide, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refresh has the place of the namespace that asked last, not one queue for all."""
    monkeypatch.setattr(wideanswers, "MAX_SELECTORS", 1000)
    wide.store.places = Shares(4, seconds=60.0)
    arrived, go = threading.Event(), threading.Event()
    quick = engine.answer

    def slow(query: str) -> tuple[int, bytes]:
        if "loud" in query:
            assert go.wait(60)
        arrived.set()
        return quick(query)

    for namespace, count in (("loud", 40), ("calm", 1)):
        ASKER.set(Asker(namespace, "u"))
        for number in range(count):
            assert await wide.ask(f"queue={namespace}{number}") is not None
    ASKER.set(NOBODY)
    engine.answer = slow
    wide.clock.now += 11
    asked = len(engine.asked)
    running = asyncio.create_task(wide.answers.run())
    try:
        assert await asyncio.to_thread(arrived.wait, 60)
        loud = [query for query in engine.asked[asked:] if "loud" in query]
        assert len(loud) <= 2, "half of the places"
    finally:
        go.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_selectors_beyond_the_bound_are_asked_narrowly(
    wide: Wide, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wideanswers, "MAX_SELECTORS", 2)
    assert await wide.ask("queue=a") is not None
    assert await wide.ask("queue=b") is not None
    assert await wide.reason("queue=c") == "selectors"
    assert await wide.ask("queue=a") is not None


async def test_queries_beyond_the_bound_are_asked_narrowly(
    wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wideanswers, "MAX_QUERIES", 1)
    assert await wide.ask() is not None
    assert await wide.reason("queue=c") == "queries"


async def test_few_plans_are_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wideanswers, "_PLANS", 2)
    wide = Wide(engine)
    for number in range(5):
        assert await wide.ask(series=f"m{number}") is not None
    assert len(wide.answers._plans) == 2
    assert await wide.ask(series="m0") is not None
    await wide.store.close()


async def test_a_setting_turns_them_off(engine: Engine) -> None:
    off = Wide(engine, enabled=False)
    assert await off.reason() == "off"
    assert engine.asked == []


async def test_a_template_that_may_mix_objects_is_asked_narrowly(
    wide: Wide, engine: Engine
) -> None:
    wide.rule = wide.made("topk(1, <<.Series>>{<<.LabelMatchers>>})")
    assert await wide.reason() == "template"
    assert engine.asked == []


async def test_several_values_of_an_object_are_asked_narrowly(wide: Wide, engine: Engine) -> None:
    engine.answer = lambda query: (200, vector(*TWO, *TWO))
    assert await wide.reason() == "several_values"
    assert await wide.reason() == "several_values"
    assert len(engine.asked) == 1


async def test_an_answer_with_too_many_objects_is_given_up(
    wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MAX_VALUES", 1)
    assert await wide.reason() == "objects"


async def test_answers_beyond_the_memory_are_given_up(
    wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wideanswers, "KEPT_BYTES", 350)
    assert await wide.ask() is not None
    assert await wide.reason("queue=c") == "memory"
    assert await wide.ask() is not None


async def test_a_query_that_the_store_refuses_is_given_up_and_logged(
    wide: Wide, engine: Engine
) -> None:
    engine.answer = lambda query: (422, ERROR.encode())
    with structlog.testing.capture_logs() as logs:
        assert await wide.reason() == "failed"
    assert "too many samples" in str(logs)
    engine.answer = lambda query: (200, vector(*TWO))
    assert await wide.reason() == "failed"  # not tried again at once
    assert len(engine.asked) == 1


async def test_a_store_that_answers_nobody_gives_the_last_answer_up_to_the_age_limit(
    wide: Wide, engine: Engine
) -> None:
    first = await wide.ask()
    engine.answer = lambda query: (403, b"")
    wide.clock.now += 59
    assert await wide.ask() is first
    wide.clock.now += 1
    with pytest.raises(Unavailable, match=r"rules\[0\] for all objects failed: \(denied\)"):
        await wide.ask()


async def test_the_last_answer_is_there_after_the_store_refuses(wide: Wide, engine: Engine) -> None:
    first = await wide.ask()
    engine.answer = lambda query: (422, ERROR.encode())
    wide.clock.now += 30
    assert await wide.reason() == "failed"
    given = (wide.rule, "up", KEY, parse(""))
    assert wide.answers.last(*given) is first
    wide.clock.now += 30
    assert wide.answers.last(*given) is None


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - the answers have no event for it
            await asyncio.sleep(0.01)


async def test_answers_are_kept_current_while_they_are_requested(
    wide: Wide, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wideanswers, "_TICK", 0.01)
    await wide.ask()
    keeper = asyncio.create_task(wide.answers.run())
    wide.clock.now += 10
    await until(lambda: len(engine.asked) == 2)
    wide.clock.now += IDLE * 10
    await until(lambda: wide.answers.queries == 0)
    wide.clock.now += 10
    await asyncio.sleep(0.1)  # several looks, none of which sends a query
    keeper.cancel()
    assert len(engine.asked) == 2


async def test_a_query_that_was_given_up_is_tried_again_later(
    wide: Wide, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wideanswers, "_TICK", 0.01)
    engine.answer = lambda query: (422, ERROR.encode())
    await wide.reason()
    keeper = asyncio.create_task(wide.answers.run())
    engine.answer = lambda query: (200, vector(*TWO))
    for _ in range(int(RETRY / 50)):
        wide.clock.now += 50
        await wide.reason() if wide.answers.queries == 0 else None
    await until(lambda: wide.answers.queries == 1)
    keeper.cancel()
    assert await wide.ask() is not None


async def test_a_value_that_cannot_be_expressed_keeps_its_reason(
    wide: Wide, engine: Engine
) -> None:
    rows = (*TWO, ({"namespace": "a", "pod": "q"}, "NaN"), ({"namespace": "a", "pod": "r"}, "1e99"))
    engine.answer = lambda query: (200, vector(*rows))
    answer = await wide.ask()
    assert answer is not None
    assert answer.left_out == {("a", "q"): "nan", ("a", "r"): "too_large"}
    assert answer.spaces["a"] == {"p": 1500}

"""Answers that are compared with the answer before give what reading each series gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import AnswerReader, decode
from adapter.pipeline.sources.prometheus.storedpages import MOST_SAMPLES, StoredPages
from apiservice.runtime.steps import Steps, at_once
from tests.adapter.exporterstate import state_of
from tests.adapter.world import World, make_pod
from tests.examples import bounded

EPOCH, LOOKBACK = 1_700_000_000.0, 65.0
GROUPS = (
    QueryGroup("utilization", ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")),
    QueryGroup("memory", ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE")),
    QueryGroup("energy", ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",)),
)
DEVICES = (("p", "GPU-0", "e0"), ("q", "GPU-1", "e0"), ("r", "GPU-2", "e1"), ("", "GPU-3", "e1"))
NUMBERS = ("0", "1", "37", "99.5", "0.25", "5e4", "NaN", "+Inf", "-4", "250", "1_0", "x")
ODD = ("NaN", "1_0", "x", "")
ORIGIN = "e0"


class Stored(NamedTuple):
    """A series of the store."""

    labels: Mapping[str, str]
    samples: list[tuple[float, str]]


class Round(NamedTuple):
    """What happens until the next round."""

    numbers: Sequence[str]
    seconds: float
    scrapes: int
    """Of the exporters until then; the last one is ``late`` seconds before the round."""
    late: float
    apart: bool
    """The second exporter is scraped at another time."""
    silent: int | None
    """A series without a sample."""
    renamed: int | None
    """A device that another pod has from now on."""
    turned: bool
    """The store answers in another order."""
    failed: int | None
    """A group without an answer."""
    pod: tuple[str, str] | None
    """What happens to a pod."""


def _mostly(usual: Any, other: Any) -> Any:
    return st.integers(0, 9).flatmap(lambda chance: other if chance == 9 else usual)


ROUNDS = st.lists(
    st.builds(
        Round,
        _mostly(
            st.lists(st.sampled_from(NUMBERS[:6]), min_size=1, max_size=9),
            st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=9),
        ),
        _mostly(st.just(15.0), st.sampled_from((0.0, -20.0, 70.0))),
        _mostly(st.just(1), st.sampled_from((0, 2, 3))),
        st.sampled_from((0.0, 1.0, 14.0)),
        st.booleans(),
        _mostly(st.none(), st.integers(0, 19)),
        _mostly(st.none(), st.integers(0, 3)),
        _mostly(st.just(False), st.just(True)),
        _mostly(st.none(), st.integers(0, 2)),
        _mostly(
            st.none(),
            st.tuples(st.sampled_from("pqr"), st.sampled_from(("gone", "uid", "no_gpu"))),
        ),
    ),
    min_size=4,
    max_size=14,
)


class Engine:
    """A store, and two adapters: one compares answers, one reads each as if it were the first."""

    def __init__(self, *, honor: bool) -> None:
        pods = [make_pod(name, node="n") for name in "pqr"]
        self.fast, self.full = World(*pods), World(*pods)
        self.now = EPOCH
        self.pages = 0
        """Results of which only the numbers changed."""
        self._honor = honor
        self._owners = [pod for pod, _, _ in DEVICES]
        self._stored: dict[str, Stored] = {}
        self._memo = SeriesMemo()
        self._pages = StoredPages()
        self._seen: dict[str, float] = {}
        self._turned = self._moved = False
        self._last: list[QueryAnswer] = [QueryAnswer() for _ in GROUPS]
        self._sets: dict[str, Mapping[str, str]] = {}
        self._new_sets: dict[str, Mapping[str, str]] = {}
        self._kept: list[dict[str, list[Sample]]] = [{} for _ in GROUPS]

    def scrape(self, change: Round, time: float, number: int) -> None:
        place = 0
        for group in GROUPS:
            for name in group.series:
                for at, (_, uuid, exporter) in enumerate(DEVICES):
                    place += 1
                    if place - 1 == change.silent:
                        continue
                    labels = {"__name__": name, "instance": exporter, "UUID": uuid, "gpu": str(at)}
                    pod = self._owners[at]
                    if pod:
                        spelled = "" if self._honor else "exported_"
                        labels |= {f"{spelled}pod": pod, f"{spelled}namespace": "ml"}
                    if not self._honor:
                        labels |= {"pod": f"dcgm-{exporter}", "namespace": "gpu"}
                    key = json.dumps(labels)
                    stored = self._stored.setdefault(key, Stored(labels, []))
                    when = time - 0.5 if change.apart and exporter == "e1" else time
                    text = change.numbers[(place + number) % len(change.numbers)]
                    if not stored.samples or when > stored.samples[-1][0]:
                        stored.samples.append((when, text))

    def round(self, change: Round) -> None:
        self.now += change.seconds
        if change.renamed is not None:
            self._owners[change.renamed] = "pq"[len(self._owners[change.renamed]) % 2]
        for number in range(change.scrapes):
            self.scrape(
                change, self.now - change.late - 5.0 * (change.scrapes - 1 - number), number
            )
        if change.pod is not None:
            name, what = change.pod
            for world in (self.fast, self.full):
                if what != "gone":
                    made = make_pod(name, node="n", uid=str(self.now))
                    world.put(made if what == "uid" else make_pod(name, node="n", gpus={}))
                elif any(ref.name == name for ref in world.pods):
                    world.remove(name)
        self._turned ^= change.turned
        self._moved |= change.turned
        answers = [
            None if at == change.failed else self._answer(group) for at, group in enumerate(GROUPS)
        ]
        self._take_fast(answers)
        self._take_full(answers)

    def _answer(self, group: QueryGroup) -> list[Stored]:
        series = []
        for labels, samples in self._stored.values():
            held = [pair for pair in samples if self.now - LOOKBACK < pair[0] <= self.now]
            if labels["__name__"] in group.series and held:
                series.append(Stored(labels, held))
        return series[::-1] if self._turned else series

    def _take_fast(self, answers: Sequence[list[Stored] | None]) -> None:
        read = []
        for at, (group, series) in enumerate(zip(GROUPS, answers, strict=True)):
            answer = QueryAnswer(partial=True) if series is None else self._read(group, series)
            if series is None:
                at_once(answer.complete(self._last[at], self.now - LOOKBACK))
            self._last[at] = answer
            read.append(answer)
        self._memo.turn()
        for answer in read:
            at_once(answer.accept())
        rejects = sum((answer.rejects for answer in read), QueryAnswer().rejects)
        for origin in sorted({origin for answer in read for origin in answer.origins}):
            samples = at_once(self._pages.of(origin, read))
            self.pages += isinstance(samples, LayoutSamples)
            self.fast.store.ingest(ScrapeResult(origin, None, samples, self.now, rejects))
            rejects = QueryAnswer().rejects

    def _read(self, group: QueryGroup, found: Sequence[Stored]) -> QueryAnswer:
        reader = AnswerReader(self._memo, group)
        text = body(found)
        for start in range(0, len(text), 500):
            at_once(reader.feed(text[start : start + 500]))
        return at_once(reader.finish())

    def _take_full(self, answers: Sequence[list[Stored] | None]) -> None:
        """The reference: plain samples, and those that the last round had are left out."""
        rows: dict[str, list[Sample]] = {}
        rejects = QueryAnswer().rejects
        seen = {}
        for at, series in enumerate(answers):
            if series is None:
                kept = self._kept[at]
                for origin, samples in kept.items():
                    if any(row.time > self.now - LOOKBACK for row in samples):
                        rows.setdefault(origin, []).extend(samples)
                continue
            self._kept[at] = {}
            for labels, stored in series:
                key = json.dumps(labels)
                rest = self._same({name: v for name, v in labels.items() if name != "__name__"})
                new = [pair for pair in stored if pair[0] > self._seen.get(key, 0.0)]
                sound = [
                    Sample(labels["__name__"], rest, number, when)
                    for when, text in new or stored[-1:]
                    if (number := number_of(text)) is not None
                ]
                if lost := len(new or stored[-1:]) - len(sound):
                    rejects["bad_value"] += lost
                if sound:
                    seen[key] = sound[-1].time
                    rows.setdefault(labels["instance"], []).extend(sound[:-1])
                    self._kept[at].setdefault(labels["instance"], []).append(sound[-1])
            for origin, samples in self._kept[at].items():
                rows.setdefault(origin, []).extend(samples)
        self._seen = seen
        self._sets, self._new_sets = self._new_sets, {}
        for origin, samples in sorted(rows.items()):
            self.full.store.ingest(ScrapeResult(origin, None, samples, self.now, rejects))
            rejects = QueryAnswer().rejects

    def _same(self, labels: dict[str, str]) -> Mapping[str, str]:
        """Return the object for equal labels in this round or in the last one."""
        key = json.dumps(labels)
        shared = self._new_sets.get(key, self._sets.get(key, labels))
        return self._new_sets.setdefault(key, shared)

    def states(self) -> list[Any]:
        return [
            [comparable(state_of(world, origin), moved=self._moved) for origin in ("e0", "e1")]
            for world in (self.fast, self.full)
        ]


def comparable(state: Any, *, moved: bool) -> Any:
    """The state without the order of its device series.

    If the store has answered in another order, which the first adapter restores, the last of
    several equal rejects is another one, with another number or detail. See decision 19.
    """
    totals, counted, *rest = state
    rest = [sorted(part, key=repr) if isinstance(part, list) else part for part in rest]
    if moved:
        counted = {key: seen.partition(", value=")[0] for key, seen in counted.items()}
    return [totals, counted, *rest]


def number_of(text: str) -> float | None:
    try:
        return float("x" if "_" in text else text)
    except ValueError:
        return None


def body(found: Sequence[Stored]) -> bytes:
    result = [{"metric": labels, "values": samples} for labels, samples in found]
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":")).encode()


STEADY = Round(NUMBERS[:6], 15.0, 1, 1.0, False, None, None, False, None, None)


@settings(bounded(60), derandomize=True)
@given(rounds=ROUNDS, honor=st.booleans())
def test_states_are_those_of_samples_that_are_all_read(rounds: list[Round], *, honor: bool) -> None:
    engine = Engine(honor=honor)
    for change in rounds:
        engine.round(change)
        fast, full = engine.states()
        assert fast == full


def test_a_page_after_a_lost_answer_has_the_label_sets_of_now() -> None:
    memo, pages = SeriesMemo(), StoredPages()
    group, labels = GROUPS[2], {"__name__": GROUPS[2].series[0], "instance": ORIGIN}

    def read(time: float) -> QueryAnswer:
        reader = AnswerReader(memo, group)
        at_once(reader.feed(body([Stored(labels, [(time, "1")])])))
        return at_once(reader.finish())

    def handed_over(answer: QueryAnswer) -> Sequence[Sample]:
        memo.turn()
        at_once(answer.accept())
        return at_once(pages.of(ORIGIN, [answer]))

    first = read(1.0)
    page = handed_over(first)
    assert isinstance(page, LayoutSamples)
    lost = QueryAnswer(partial=True)
    at_once(lost.complete(first, 0.0))
    assert handed_over(lost) == list(page)
    later = read(2.0)
    (sample,) = handed_over(later)
    assert sample.labels is later.sets[0].labels


def test_an_exporter_with_new_scrapes_of_the_same_times_is_a_page() -> None:
    """One, or several of a late round; then only their numbers are taken in."""
    engine = Engine(honor=False)
    for _ in range(4):
        engine.round(STEADY)
    assert engine.pages == 8
    outline = engine.fast.store._exporters["e0"].outline
    engine.round(STEADY._replace(scrapes=3))
    assert engine.pages == 10
    assert engine.fast.store._exporters["e0"].outline is outline
    assert engine.states()[0] == engine.states()[1]
    engine.round(STEADY._replace(apart=True, scrapes=2))
    assert engine.pages == 12
    engine.round(STEADY._replace(silent=1))
    assert engine.pages == 13


def test_a_round_of_many_new_scrapes_is_not_a_page() -> None:
    engine = Engine(honor=False)
    for _ in range(3):
        engine.round(STEADY)
    engine.round(STEADY._replace(seconds=60.0, scrapes=8))
    assert engine.pages == 8
    engine.round(STEADY._replace(seconds=60.0, scrapes=9))
    assert engine.pages == 8
    assert engine.states()[0] == engine.states()[1]


def of_one_exporter(count: int) -> QueryAnswer:
    """An answer with one field of many devices, ready to be handed over."""
    name = GROUPS[2].series[0]
    rows = [
        Stored({"__name__": name, "instance": ORIGIN, "UUID": f"GPU-{number}"}, [(1.0, "1")])
        for number in range(count)
    ]
    memo = SeriesMemo()
    answer = decode(body(rows), memo, GROUPS[2])
    memo.turn()
    at_once(answer.accept())
    return answer


def steps_of(work: Steps[Any]) -> int:
    return sum(1 for _ in work)


def test_the_samples_of_a_page_with_a_layout_are_bounded() -> None:
    pages = StoredPages()
    most, more = (of_one_exporter(MOST_SAMPLES + surplus) for surplus in (0, 1))
    assert isinstance(at_once(pages.of(ORIGIN, [most])), LayoutSamples)
    samples = at_once(pages.of(ORIGIN, [more]))
    assert isinstance(samples, list)
    assert samples == at_once(more.samples_of(ORIGIN))
    assert at_once(pages.of(ORIGIN, [most, most])) == 2 * at_once(most.samples_of(ORIGIN))
    assert not pages._known


def test_many_samples_of_an_exporter_take_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    many = of_one_exporter(MOST_SAMPLES + 1)
    monkeypatch.setattr("adapter.pipeline.sources.prometheus.answer.at_once", None)
    assert steps_of(StoredPages().of(ORIGIN, [many])) == 5
    assert steps_of(QueryAnswer(partial=True).complete(many, 0.0)) == 5
    assert steps_of(QueryAnswer(partial=True).complete(many, 1.0)) == 10
    assert steps_of(many.newest_time(many.sets[0], "")) == 5


def test_an_answer_that_was_read_has_the_places_of_its_series(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A partial answer is completed before it is accepted, and other tasks run meanwhile."""
    before = of_one_exporter(3)
    answer = decode(
        body([Stored({"__name__": "x", "instance": "e1"}, [(2.0, "1")])]), SeriesMemo(), GROUPS[2]
    )
    monkeypatch.setattr("adapter.pipeline.sources.prometheus.answer.at_once", None)
    at_once(answer.complete(before, 0.0))
    assert list(answer.origins) == [ORIGIN, "e1"]

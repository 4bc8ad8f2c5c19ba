"""Ingest in steps: each step is short, and a page becomes visible with its last step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adapter.pipeline.devices.ingest
import adapter.pipeline.devices.reader
import adapter.pipeline.exposition.page
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.reader import DEVICES, SAMPLES
from adapter.pipeline.devices.state import ExporterState
from adapter.pipeline.exposition.line import label_set
from adapter.pipeline.exposition.page import LabelMemo, parse, parse_in_steps
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.store.store import Store
from apiservice.runtime.steps import Steps, at_once
from tests.adapter.pipeline.store.test_laws import PAGES, PODS
from tests.adapter.world import World, make_pod, row

ORIGIN = "http://exporter"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"


def result(
    page: str, time: float, origin: str = ORIGIN, memo: LabelMemo | None = None
) -> ScrapeResult:
    read = parse(page.encode(), time=time, memo=memo)
    return ScrapeResult(origin, "n", read.samples, time, read.rejects, ("monitoring", origin[-1]))


def large(devices: int, value: int = 50, pod: str = "p", first: int = 0) -> str:
    numbers = range(first, first + devices)
    return "".join(
        row(series, value, pod, uuid=f"GPU-{n}") for series in (UTIL, USED) for n in numbers
    )


def exporter(store: Store, origin: str = ORIGIN) -> ExporterState | None:
    return store._exporters.get(origin)


def content(found: ExporterState | None) -> object:
    """The contents of an exporter's state, regardless of object identity."""
    if found is None:
        return None
    contents = {
        key: [
            repr(getattr(series, field.name)) for field in fields(series) if field.name != "history"
        ]
        + [
            series.history.latest(),
            tuple(series.history.times),
            repr(list(series.history.frames())),
        ]
        for key, series in found.all_series.items()
    }
    return (
        repr(contents),
        dict(found.reported),
        found.scale,
        repr(found.idle._models),
        found.disowned,
    )


def tried(steps: Steps[None], between: Callable[[], None]) -> int:
    """Run all steps with a call between them; return their number."""
    count = 1
    for _ in steps:
        between()
        count += 1
    return count


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (adapter.pipeline.devices.reader, adapter.pipeline.devices.ingest):
        monkeypatch.setattr(module, "DEVICES", 1)
    monkeypatch.setattr(adapter.pipeline.devices.reader, "SAMPLES", 1)
    monkeypatch.setattr(adapter.pipeline.exposition.page, "_LINES", 1)


@pytest.mark.usefixtures("tiny")
@given(st.lists(PAGES, min_size=1, max_size=3), PAGES)
def test_many_short_steps_give_the_same_result_as_one(
    pages: list[list[str]], beside: list[str]
) -> None:
    one, other = World(*map(make_pod, PODS)), World(*map(make_pod, PODS))
    for number, page in enumerate(pages):
        time = 100.0 + 5 * number
        taken = result("".join(page), time)
        neighbour = result("".join(beside), time, "http://neighbour")
        at_once(one.store.steps(neighbour))
        at_once(one.store.steps(taken))
        at_once(other.store.steps(neighbour))
        tried(other.store.steps(taken), lambda: None)
    assert content(exporter(one.store)) == content(exporter(other.store))
    assert one.store.rejects.totals == other.store.rejects.totals
    assert list(one.store.rejects.recent) == list(other.store.rejects.recent)


@pytest.mark.usefixtures("tiny")
@given(PAGES, PAGES)
def test_interleaved_pages_give_the_same_result_as_sequential_pages(
    left: list[str], right: list[str]
) -> None:
    pages = [result("".join(left), 100.0, "http://l"), result("".join(right), 100.0, "http://r")]
    one, other = World(*map(make_pod, PODS)), World(*map(make_pod, PODS))
    for page in pages:
        one.store.ingest(page)
    under_way: list[Iterator[None]] = [other.store.steps(page) for page in pages]
    while under_way:
        for steps in list(under_way):
            if next(steps, ...) is ...:
                under_way.remove(steps)
    for origin in ("http://l", "http://r"):
        assert content(exporter(one.store, origin)) == content(exporter(other.store, origin))


def test_every_step_has_a_bounded_number_of_samples_and_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        made = getattr(module, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            met[name] += 1
            return made(*arguments, **named)

        monkeypatch.setattr(module, name, counted)

    counting(adapter.pipeline.devices.reader, "identify")
    counting(adapter.pipeline.devices.ingest, "DeviceSeries")

    class Rows(list[Sample]):
        def __getitem__(self, index: Any) -> Any:
            rows = super().__getitem__(index)
            met["rows"] += len(rows)
            return rows

    worst: Counter[str] = Counter()

    def note() -> None:
        for name, count in met.items():
            worst[name] = max(worst[name], count)
        met.clear()

    world = World(make_pod("p"))
    read = result(large(1000), 100.0)
    page = ScrapeResult(ORIGIN, "n", Rows(read.samples), 100.0)
    steps = tried(world.store.steps(page), note)
    note()
    assert steps > 100
    assert worst["identify"] <= DEVICES
    assert worst["DeviceSeries"] <= DEVICES
    assert worst["rows"] <= SAMPLES


def test_every_step_has_a_bounded_number_of_new_label_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    met, worst = 0, 0
    real = label_set

    def counted(text: bytes) -> Any:
        nonlocal met
        met += 1
        return real(text)

    monkeypatch.setattr(adapter.pipeline.exposition.page, "label_set", counted)
    for _ in parse_in_steps(large(1000).encode(), time=100.0):
        worst, met = max(worst, met), 0
    assert 0 < worst <= 32


def test_a_usual_page_is_one_step() -> None:
    world = World(make_pod("p"))
    assert tried(world.store.steps(result(large(8), 100.0)), lambda: None) == 1


def test_a_partly_ingested_page_is_not_visible() -> None:
    world = World(make_pod("p"))
    store = world.store
    store.ingest(result(large(60, 40), 100.0))
    store.ingest(result(large(60, 40), 100.0, "http://neighbour"))
    before = (store.version, content(exporter(store)), dict(store.rejects.totals), store.size)

    def unchanged() -> None:
        now = (store.version, content(exporter(store)), dict(store.rejects.totals), store.size)
        assert now == before

    flawed = large(60, 70) + row(UTIL, -5, "p", uuid="GPU-3")
    assert tried(store.steps(result(flawed, 105.0)), unchanged) > 5
    assert store.version > before[0]
    assert store.rejects.totals != before[2]


def test_an_abandoned_page_has_no_effect_on_the_next() -> None:
    given_up, never = World(make_pod("p")), World(make_pod("p"))
    first, second, third = (
        result(large(60, value, first=shift), time)
        for value, time, shift in ((40, 100.0, 0), (50, 105.0, 20), (60, 110.0, 20))
    )
    for world in (given_up, never):
        world.store.ingest(first)
    steps = given_up.store.steps(second)
    for _ in range(5):
        next(steps)
    steps.close()
    assert given_up.store.version == never.store.version
    for world in (given_up, never):
        world.store.ingest(third)
    assert content(exporter(given_up.store)) == content(exporter(never.store))
    assert given_up.store.rejects.totals == never.store.rejects.totals


def test_an_overtaken_page_is_ingested_after_the_other() -> None:
    one, other = World(make_pod("p")), World(make_pod("p"))
    slow, quick = result(large(60, 40), 101.0), result(large(60, 50, first=30), 100.0)
    one.store.ingest(quick)
    one.store.ingest(slow)
    steps = other.store.steps(slow)
    next(steps)
    other.store.ingest(quick)
    at_once(steps)
    assert content(exporter(one.store)) == content(exporter(other.store))
    assert one.store.rejects.totals == other.store.rejects.totals


def test_a_page_in_progress_restores_a_dropped_exporter() -> None:
    world = World(make_pod("p"), options=TelemetryOptions(age_limit=10.0))
    store = world.store
    store.ingest(result(large(60, 40), 100.0))
    steps = store.steps(result(large(60, 50), 900.0))
    next(steps)
    store.ingest(result(large(1, 1, first=900), 900.0, "http://neighbour"))
    assert exporter(store) is None
    at_once(steps)
    assert store.size.exporters == 2
    assert store.size.devices == 61
    assert store.size.pods == 1


@pytest.mark.parametrize("back", [1, 2, 3])
def test_dropping_a_compared_exporter_does_not_affect_a_page(
    back: int,
) -> None:
    world = World(make_pod("p"), options=TelemetryOptions(age_limit=10.0))
    store = world.store
    store.ingest(result(large(200, 40), 100.0, "http://neighbour"))
    page = result(large(200, 50), 105.0)
    pauses = sum(1 for _ in store._read(None, page))
    steps = store.steps(page)
    for _ in range(pauses - back + 1):
        next(steps)
    store.forget("http://neighbour")
    store.ingest(result(large(1, 1, first=900), 130.0, "http://third"))
    assert exporter(store, "http://neighbour") is None
    at_once(steps)
    assert store.size.devices == 201

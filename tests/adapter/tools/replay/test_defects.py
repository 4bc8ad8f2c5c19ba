"""What is missing in a recording is named, with its minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.hpa import from_manifest
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.server.recording.events import Begun, Event, Losses, PageRead, PodSeen, Stretch
from adapter.server.recording.reader import RecordingReader
from adapter.tools.replay import defects as module
from adapter.tools.replay.defects import Defects
from adapter.tools.replay.scrutiny import Scrutiny
from adapter.tools.replay.study import StudyOptions, study
from tests.adapter.tools.replay.day import METRIC, PERIOD, START, Day, manifest, waves, write
from tests.adapter.tools.replay.storedcluster import StoredCluster
from tests.adapter.tools.replay.test_store import DAY, folder, found, of_store
from tests.adapter.world import make_pod
from tests.needs import PROMETHEUS, PROMTOOL, needs

__all__ = ["folder"]
LABELS = {"namespace": "ml", "pod": "p", "UUID": "GPU-0"}
STORED = {"source": {"kind": "prometheus", "prometheus": {"scrape_interval": 10}}}


def page(time: float, name: str = METRIC, value: float = 1.0, origin: str = "a") -> PageRead:
    return PageRead(time, ScrapeResult(origin, None, [Sample(name, LABELS, value, time)], time))


def seen(events: Iterable[Event], metric: str = METRIC) -> list[Stretch]:
    hpa = manifest()
    hpa["spec"]["metrics"][0]["pods"]["metric"]["name"] = metric
    defects = Defects()
    list(Scrutiny(from_manifest(hpa), defects).watch(events))
    return list(defects)


def test_a_regular_exporter_has_no_defect() -> None:
    assert seen([Begun(0, STORED), *(page(10.0 * step) for step in range(50))]) == []


@pytest.mark.parametrize("settings", [STORED, {}], ids=["by the settings", "by its past"])
def test_missing_pages_are_a_silent_exporter(settings: dict[str, object]) -> None:
    times = [*range(0, 400, 10), *range(700, 800, 10)]
    assert seen([Begun(0, settings), *map(page, times)]) == [
        Stretch(390, 700, "exporter_silent", "a")
    ]


def test_pages_of_other_namespaces_are_not_looked_at() -> None:
    labels = {**LABELS, "namespace": "other"}
    times = (0.0, 10.0, 500.0, 510.0)
    results = [ScrapeResult("b", None, [Sample(METRIC, labels, 1.0, time)], time) for time in times]
    assert seen([Begun(0, STORED), *(PageRead(read.received, read) for read in results)]) == []


def test_samples_far_apart_are_named_with_both_distances() -> None:
    times = [*range(0, 400, 10), *range(400, 4000, 300), *range(4000, 4100, 10)]
    assert seen([Begun(0, STORED), *map(page, times)]) == [
        Stretch(400, 4000, "sparse_samples", "a: 5m apart, expected 10s")
    ]


def test_a_store_that_downsampled_everything_is_named() -> None:
    (stretch,) = seen([Begun(0, STORED), *(page(300.0 * step) for step in range(20))])
    assert stretch == Stretch(0, 5700, "sparse_samples", "a: 5m apart, expected 10s")


def test_an_interruption_of_the_recording_does_not_count_as_silence() -> None:
    assert seen([Begun(0, STORED), page(0), page(10), Begun(900, STORED), page(905)]) == []


def test_another_name_of_the_metric_is_named_once() -> None:
    events = [page(10.0 * step, METRIC if step < 5 else METRIC.lower()) for step in range(10)]
    assert seen([Begun(0, STORED), *events]) == [
        Stretch(40, 50, "other_name", f"a: {METRIC}, then {METRIC.lower()}")
    ]


def test_another_name_at_a_new_address_is_named_and_a_mixed_fleet_is_not() -> None:
    old, new = METRIC, METRIC.lower()
    mixed = [page(0, old, origin="a"), page(1, new, origin="b")]
    assert seen([Begun(0, STORED), *mixed]) == []
    upgraded = [*(page(10.0 * step, old) for step in range(40)), page(400, new, origin="b")]
    assert seen([Begun(0, STORED), *upgraded]) == [
        Stretch(400, 400, "other_name", f"b, a new address: {old}, then {new}")
    ]


def test_a_pod_from_the_future_shows_a_wrong_clock() -> None:
    pods = [make_pod("p", namespace="ml", born=born) for born in (100.0, 104.0, 140.0)]
    events = [PodSeen(100, pod) for pod in pods]
    about = "40s behind the cluster's, by the creation of pod p"
    assert seen([Begun(0, STORED), *events]) == [Stretch(100, 140, "clock_back", about)]
    elsewhere = PodSeen(100, make_pod("p", namespace="other", born=140.0))
    assert seen([Begun(0, STORED), elsewhere]) == []


def test_a_counter_that_begins_again_is_named() -> None:
    settings = {
        "metrics": [{"name": "tokens", "series": "tokens_total", "kind": "rate", "unit": "number"}]
    }
    values = (5.0, 9.0, 2.0, 3.0)
    events = [page(10.0 * step, "tokens_total", value) for step, value in enumerate(values)]
    assert seen([Begun(0, {**STORED, **settings}), *events], "tokens") == [
        Stretch(10, 20, "counter_reset", "a: tokens_total")
    ]


def test_a_clock_that_is_set_back_is_named() -> None:
    events = [page(100), page(110), page(50), page(60)]
    assert seen([Begun(90, STORED), *events]) == [Stretch(50, 110, "clock_back", "by 60s")]


def test_stretches_that_touch_become_one_and_others_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    defects = Defects()
    for start in (0.0, 10.0, 20.0, 100.0, 200.0, 300.0):
        defects.add(Stretch(start, start + 10, "x", ""))
    assert list(defects) == [Stretch(0, 30, "x", ""), Stretch(100, 110, "x", "")]
    assert defects.more == {"x": 2}
    assert list(defects.lines()) == ["pods without a value (x) for 40s in all: 4 times"]


def test_times_without_value_and_without_a_recording_are_in_the_report(tmp_path: Path) -> None:
    silent = (6 * 3600.0, 7 * 3600.0)
    day = Day(waves, syncs=180, silent=silent)
    write(tmp_path / "day.gma", day)
    later = list(replace(day, syncs=10, silent=(0.0, 0.0)).events())
    content = (tmp_path / "day.gma").read_bytes()
    (tmp_path / "day.gma").write_bytes(content + b"\x00" * 100)
    write(tmp_path / "day.gma", _Shifted(later, 13 * 3600.0))
    options = StudyOptions(controller=replace(StudyOptions().controller, sync_period=PERIOD))
    hpa_study = study(RecordingReader(tmp_path / "day.gma"), from_manifest(day.hpa), options)
    by_reason: dict[str, list[Stretch]] = {}
    for stretch in hpa_study.defects:
        by_reason.setdefault(stretch.reason, []).append(stretch)
    unknown = by_reason["no_value"][0]
    assert abs(unknown.start - START - silent[0]) <= PERIOD
    assert abs(unknown.end - START - silent[1]) <= PERIOD
    (damaged,) = by_reason["damaged"]
    assert damaged.start == pytest.approx(START + 180 * PERIOD, abs=5)
    assert damaged.end == START + 13 * 3600
    assert "not_known" not in by_reason, "the damage says it"


class _Shifted:
    """Events at a later time."""

    def __init__(self, events: list[Event], by: float) -> None:
        self._events = events
        self._by = by
        self.losses = Losses()

    def events(self) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, PageRead):
                yield page(event.time + self._by)
            else:
                yield event._replace(time=event.time + self._by)


def test_a_workload_without_pods_is_named() -> None:
    class Empty(Day):
        def events(self) -> Iterator[Event]:
            kept: list[Event] = []
            for event in super().events():
                if not isinstance(event, PodSeen):
                    kept.append(event)
                elif event.time == START:
                    kept += [event, PodSeen(START + 5000, event.pod, gone=True)]
            yield from sorted(kept, key=lambda event: event.time)

    day = Empty(lambda _: 100.0, syncs=40)
    options = StudyOptions(controller=replace(StudyOptions().controller, sync_period=PERIOD))
    hpa_study = study(day, from_manifest(day.hpa), options)
    none = [stretch for stretch in hpa_study.defects if stretch.reason == "no_pods"]
    assert [stretch.end for stretch in none] == [hpa_study.end]
    assert abs(none[0].start - START - 5000) <= PERIOD


@needs(PROMETHEUS, PROMTOOL)
def test_the_defects_of_a_store_are_named_with_their_minutes(folder: Path, tmp_path: Path) -> None:
    def lost(time: float, job: str) -> bool:
        minutes = (time - START) / 60
        if job == "ksm":
            return 30 <= minutes < 45
        return 80 <= minutes < 90 or (120 <= minutes < 180 and round(time - START) % 300 != 14)

    def renamed(time: float, name: str) -> str:
        return name.lower() if time - START > 200 * 60 else name

    store = StoredCluster(lost=lost, renamed=renamed).scrape(DAY.events())
    with store.prometheus(tmp_path) as url:
        done = of_store(folder, url, "-o", "json", "--record", str(tmp_path / "read.gma"))
        text = of_store(folder, url)
    defects = {defect["reason"]: defect for defect in found(done)["defects"]}
    minutes = {
        reason: (defect["start"][11:16], defect["end"][11:16]) for reason, defect in defects.items()
    }
    # The recording begins at 14:13:20, and the first scrape is 14 seconds later.
    assert minutes["no_cluster_state"] == ("14:43", "14:58")
    assert minutes["exporter_silent"] == ("15:33", "15:43")
    assert minutes["sparse_samples"] == ("16:13", "17:13")
    assert minutes["other_name"] == ("17:33", "17:33")
    assert "5m apart, expected 15s" in defects["sparse_samples"]["about"]
    assert "no page of an exporter: 2026-09-21 15:33 to 15:43 (10.0.0.7:9400)" in text.output
    assert "DCGM_FI_DEV_GPU_UTIL, then dcgm_fi_dev_gpu_util" in text.output
    assert not [reason for reason in defects if reason == "not_known"], "the first of these says it"

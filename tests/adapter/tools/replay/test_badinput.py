"""The six kinds of bad input are named with their minutes, in each kind of input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import Sample
from adapter.server.recording.events import Begun, Event, PageRead, PodSeen
from adapter.server.recording.writer import RecordingFile, RecordingWriter
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import START, Day, manifest, waves
from tests.adapter.tools.replay.storedcluster import StoredCluster
from tests.adapter.tools.replay.test_savedpages import saved
from tests.needs import PROMETHEUS, PROMTOOL, needs

INTERVAL = 15.0
TOKENS: Final = {"name": "tokens", "series": "tokens_total", "kind": "rate", "unit": "number"}
SETTINGS: Final[dict[str, Any]] = {
    "values": {"window": 15, "collect_interval": 15},
    "metrics": [TOKENS],
}
GAP, SKEW, RESET, SPARSE, NO_PODS, UPGRADE = (20, 30), (35, 55), 60, (70, 110), (130, 140), 170
"""Minutes since the start."""
MINUTES = 190
TEXTS: Final = (
    "no page of an exporter",
    "a counter began again",
    "samples are far apart",
    "the workload had no pod",
    "the clock was set back, or is wrong",
    "the metric under another name",
)
"""What the page and the table call the six."""


def hpa() -> dict[str, Any]:
    """The HPA of the days, with a second metric that is a counter's rate."""
    hpa_manifest = manifest("30")
    second = json.loads(
        json.dumps(hpa_manifest["spec"]["metrics"][0]).replace("DCGM_FI_DEV_GPU_UTIL", "tokens")
    )
    hpa_manifest["spec"]["metrics"].append(second)
    return hpa_manifest


def lost(time: float) -> bool:
    """Whether the page of a time is missing."""
    minutes = (time - START) / 60
    sparse = SPARSE[0] <= minutes < SPARSE[1] and (time - START) % 300 >= INTERVAL
    return GAP[0] <= minutes < GAP[1] or sparse


def events() -> Iterator[Event]:
    """The events of a day with all six defects, except the missing pages."""
    day = Day(waves, syncs=MINUTES * 4, period=INTERVAL, hpa=manifest("30"))
    pods: dict[str, Pod] = {}
    gone = False
    for event in day.events():
        minutes = (event.time - START) / 60
        if not gone and NO_PODS[0] <= minutes < NO_PODS[1]:
            gone = True
            yield from (PodSeen(event.time, pod, gone=True) for pod in pods.values())
        elif gone and minutes >= NO_PODS[1]:
            gone = False
            yield from (PodSeen(event.time, pod) for pod in pods.values())
        match event:
            case Begun():
                yield Begun(event.time, SETTINGS)
            case PodSeen():
                pod = event.pod
                if SKEW[0] * 60 < pod.born - START < SKEW[1] * 60:
                    pod = pod.replace(born=pod.born + 100)
                pods[pod.uid] = pod
                if event.gone:
                    del pods[pod.uid]
                if not gone:
                    yield PodSeen(event.time, pod, gone=event.gone)
            case PageRead():
                yield counted(event)
            case _:
                yield event


def counted(event: PageRead) -> PageRead:
    """Return a page with a counter, and after the upgrade with the metric's other name."""
    since = event.time - START
    tokens = since - RESET * 60 if since >= RESET * 60 else since
    samples = []
    for sample in event.result.samples:
        name = sample.name.lower() if since >= UPGRADE * 60 else sample.name
        samples.append(Sample(name, sample.labels, sample.value, sample.time))
        samples.append(Sample("tokens_total", sample.labels, tokens, sample.time))
    return PageRead(event.time, replace(event.result, samples=samples))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "hpa.yaml").write_text(yaml.safe_dump(hpa()))
    (folder / "config.yaml").write_text(yaml.safe_dump(SETTINGS))
    return folder


def replay(folder: Path, *arguments: str) -> tuple[Ended, str]:
    """Replay; return the end of the command, and the page that it wrote."""
    page = folder / "report.html"
    options = ("-f", str(folder / "hpa.yaml"), "--html", str(page), "-o", "json")
    done = invoke("replay", "hpa", "ml/llm", *options, *arguments)
    assert done.code == 0, done.output
    return done, page.read_text()


def named(done: Ended) -> dict[str, list[tuple[float, float, str]]]:
    """Return the defects by reason: their minutes since the start, and what they are about."""
    spans: dict[str, list[tuple[float, float, str]]] = {}
    for defect in json.loads(done.output)["defects"]:
        start, end = (datetime.fromisoformat(defect[key]).timestamp() for key in ("start", "end"))
        row = (start - START) / 60, (end - START) / 60, defect["about"]
        spans.setdefault(defect["reason"], []).append(row)
    return spans


def near(row: tuple[float, float, str], minutes: tuple[float, float]) -> bool:
    return all(abs(mine - theirs) <= 1.1 for mine, theirs in zip(row[:2], minutes, strict=True))


def check(done: Ended, page: str) -> None:
    """Check that each of the six is named with its minutes, and that no other time is."""
    spans = named(done)
    assert any(near(row, GAP) for row in spans["exporter_silent"]), spans
    assert [near(row, (RESET, RESET)) for row in spans["counter_reset"]] == [True], spans
    (sparse,) = spans["sparse_samples"]
    assert near(sparse, (SPARSE[0], SPARSE[1])) or near(sparse, (SPARSE[0], SPARSE[1] - 5)), spans
    assert "5m apart, expected 15s" in sparse[2]
    assert any(near(row, NO_PODS) for row in spans.get("no_pods", [])), spans
    for start, end, about in spans["clock_back"]:
        assert SKEW[0] <= start < end < SKEW[1] + 2, spans
        assert "behind the cluster's, by the creation of pod llm-" in about
    assert [near(row, (UPGRADE, UPGRADE)) for row in spans["other_name"]] == [True], spans
    # A value that expires in a gap is missing: nothing is interpolated.
    assert any(GAP[0] <= start and end <= GAP[1] + 1 for start, end, _ in spans["no_value"]), spans
    for text in TEXTS:
        assert text in page


def test_in_a_recording(folder: Path, tmp_path: Path) -> None:
    writer = RecordingWriter()
    for event in events():
        if not (isinstance(event, PageRead) and lost(event.time)):
            writer.event(event)
    RecordingFile(tmp_path / "day.gma", 1 << 30).append(writer.take())
    check(*replay(folder, "--from", str(tmp_path / "day.gma")))


@needs(PROMETHEUS, PROMTOOL)
def test_in_a_store(folder: Path, tmp_path: Path) -> None:
    store = StoredCluster(lost=lambda time, job: job == "dcgm" and lost(time)).scrape(events())
    with store.prometheus(tmp_path) as url:
        config = ("--config", str(folder / "config.yaml"))
        times = ("--since", "5h", "--until", "2026-09-21T18:30")
        check(*replay(folder, "--from-prometheus", url, *config, *times))


def test_in_saved_pages(folder: Path, tmp_path: Path) -> None:
    saved(tmp_path / "pages", events(), lost)
    config = ("--config", str(folder / "config.yaml"))
    check(*replay(folder, "--from", str(tmp_path / "pages"), *config))

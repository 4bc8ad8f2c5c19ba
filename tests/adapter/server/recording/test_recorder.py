"""The recorder beside ``serve``: what it writes, and that its failures end only the recording."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.server.recording import recorder as module
from adapter.server.recording.events import Begun, Event, HpaSeen, NodeSeen, PageRead, PodSeen
from adapter.server.recording.reader import RecordingReader
from adapter.server.recording.recorder import Recorder
from adapter.server.recording.writer import RecordingFile
from apiservice.kube.reflector import EventType
from apiservice.runtime.steps import Steps, at_once
from tests.adapter.tools.replay.day import shown_hpa
from tests.adapter.world import make_pod


class Taken:
    """A sink that takes everything."""

    def __init__(self) -> None:
        self.results: list[ScrapeResult] = []
        self.forgotten: list[str] = []

    def steps(self, result: ScrapeResult) -> Steps[None]:
        self.results.append(result)
        yield

    def forget(self, origin: str) -> None:
        self.forgotten.append(origin)


class FullDisk(RecordingFile):
    """No space is left."""

    def append(self, lines: Sequence[bytes]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def objects() -> ObjectLookup:
    return ObjectLookup(PodIndex(), Services(), Nodes(), Hpas())


def page(time: float = 5.0) -> ScrapeResult:
    return ScrapeResult("http://a", None, [Sample("x", {}, 1.0, time)], time)


def recorded(path: Path) -> list[Event]:
    return list(RecordingReader(path).events())


async def finished(recorder: Recorder) -> None:
    """Run the recorder until it has written what it has."""
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_it_writes_what_is_known_at_the_beginning_and_every_change(tmp_path: Path) -> None:
    known = objects()
    pod, node, hpa = make_pod("p"), Node("n", {"a": "b"}), shown_hpa(1, 2)
    known.pod_index.replace([pod])
    assert known.hpas is not None
    known.hpas.replace([hpa])
    recorder = Recorder(RecordingFile(tmp_path / "file", 1 << 20), known, clock=lambda: 9.0)
    known.nodes.replace([node])  # before it begins: found when it does
    recorder.begin({})
    changed = shown_hpa(2, 3)
    known.hpas.apply(EventType.MODIFIED, changed)
    known.hpas.apply(EventType.MODIFIED, changed)  # not a change
    known.nodes.replace([])
    known.pod_index.apply(EventType.DELETED, pod)
    asyncio.run(finished(recorder))
    assert recorded(tmp_path / "file") == [
        Begun(9.0, {}),
        PodSeen(9.0, pod),
        NodeSeen(9.0, node),
        HpaSeen(9.0, hpa),
        HpaSeen(9.0, changed),
        NodeSeen(9.0, node, gone=True),
        PodSeen(9.0, pod, gone=True),
    ]


def test_pages_reach_the_store_and_the_recording(tmp_path: Path) -> None:
    recorder = Recorder(RecordingFile(tmp_path / "file", 1 << 20), objects())
    store = Taken()
    sink = recorder.recording_sink(store)
    at_once(sink.steps(page(4.0)))  # not begun yet
    recorder.begin({})
    at_once(sink.steps(page()))
    sink.forget("http://a")
    asyncio.run(finished(recorder))
    assert [result.received for result in store.results] == [4.0, 5.0]
    assert store.forgotten == ["http://a"]
    pages = [event for event in recorded(tmp_path / "file") if isinstance(event, PageRead)]
    assert [event.time for event in pages] == [5.0]


@pytest.mark.parametrize("failure", ["disk", "limit", "slow"])
def test_a_failure_ends_the_recording_and_nothing_else(
    tmp_path: Path, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EVERY", 0.01)
    path = tmp_path / "file"
    if failure == "slow":
        monkeypatch.setattr(module, "_WAITING", 100)
    file = FullDisk(path, 1 << 20) if failure == "disk" else RecordingFile(path, 50)
    recorder = Recorder(file, objects())
    recorder.begin({})
    store = Taken()
    sink = recorder.recording_sink(store)
    with capture_logs() as logs:
        for time in range(100):
            at_once(sink.steps(page(time)))
        asyncio.run(asyncio.wait_for(recorder.run(), 30))
        at_once(sink.steps(page(200.0)))
        recorder.begin({})  # new settings: it stays ended
    message = {
        "disk": f"{path} cannot be written: No space left on device",
        "limit": f"{path} has reached its limit of 50 bytes",
        "slow": f"{path} is written too slowly: 0 MiB wait",
    }[failure]
    assert [(row["event"], row["error"]) for row in logs] == [("recording ended", message)]
    assert recorder.stopped == message
    assert len(store.results) == 101

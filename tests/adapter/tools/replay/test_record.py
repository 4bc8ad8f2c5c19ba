"""``replay record``: a real process beside a real exporter, with pods and HPAs from a file."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.server.recording.events import Begun, Event, HpaSeen, PageRead, PodSeen
from adapter.server.recording.reader import RecordingReader
from tests.adapter.commandline import Ended, invoke
from tests.adapter.server.serve.test_inference import pod
from tests.adapter.serving import PAGE, POD, Exporter, eventually, start
from tests.adapter.tools.replay.day import manifest

HPA = {**manifest(), "status": {"currentReplicas": 1, "desiredReplicas": 1}}


@dataclass
class Stand:
    """An exporter, the cluster's objects, and the configuration that names them."""

    folder: Path
    exporter: Exporter

    def configure(self, **sections: Any) -> None:
        scrape = {"interval": 0.2, "targets": [{"url": self.exporter.url, "node": "n1"}]}
        config = {"source": {"scrape": scrape}, "log": {"format": "json"}, **sections}
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config))
        (self.folder / "objects.yaml").write_text(yaml.safe_dump_all([POD, HPA]))

    @property
    def file(self) -> Path:
        return self.folder / "day.gma"

    @property
    def arguments(self) -> tuple[str, ...]:
        inputs = ("--config", str(self.folder / "config.yaml"))
        objects = ("--pods-file", str(self.folder / "objects.yaml"))
        return ("replay", "record", str(self.file), *inputs, *objects)

    def record(self, *more: str, **kinds: Any) -> Ended:
        return invoke(*self.arguments, *more, **kinds)

    def events(self) -> list[Event]:
        return list(RecordingReader(self.file).events())

    def values(self) -> set[float]:
        """The values on all pages that are in the file by now."""
        if not self.file.exists() or not self.file.stat().st_size:
            return set()
        pages = [event.result for event in self.events() if isinstance(event, PageRead)]
        return {sample.value for page in pages for sample in page.samples}


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    exporter = Exporter()
    made = Stand(tmp_path, exporter)
    made.configure()
    yield made
    exporter.close()


def test_it_records_until_it_is_killed_and_goes_on_later(stand: Stand) -> None:
    process = start(*stand.arguments)
    try:
        eventually(lambda: 80.0 in stand.values())
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    before = stand.events()
    stand.exporter.page = PAGE.format(value=7).encode()
    done = stand.record(until=lambda _: 7.0 in stand.values())
    assert done.code == 0, done.output
    events = stand.events()
    assert events[: len(before)] == before
    assert [type(event) for event in events].count(Begun) == 2
    for kind, name in ((PodSeen, "p0"), (HpaSeen, "llm")):
        assert name in str(next(event for event in events if isinstance(event, kind)))
    assert {event.result.node for event in events if isinstance(event, PageRead)} == {"n1"}
    assert stand.values() == {80.0, 7.0}
    assert "and 1 HPA: " in done.output


def test_the_histograms_of_servers_are_recorded_though_nobody_asks(stand: Stand) -> None:
    stand.configure()
    server = pod("p1", stand.exporter.url.rpartition(":")[2].partition("/")[0])
    (stand.folder / "objects.yaml").write_text(yaml.safe_dump_all([server, HPA]))
    name = "vllm:time_to_first_token_seconds"
    stand.exporter.page = (
        f'vllm:num_requests_running{{model_name="m"}} 1\n{name}_bucket{{le="1",model_name="m"}} 3\n'
        f'{name}_bucket{{le="+Inf",model_name="m"}} 4\n{name}_count{{model_name="m"}} 4\n'
    ).encode()
    done = stand.record(until=lambda _: {3.0, 4.0} <= stand.values())
    assert done.code == 0, done.output


def test_a_limit_of_bytes_ends_it(stand: Stand) -> None:
    stand.file.write_bytes(b"\x00" * (1 << 20))
    stand.configure(recording={"max_bytes": 1 << 20})
    done = stand.record("--for", "60s")
    assert done.code == 1
    assert done.output.endswith(f"{stand.file} has reached its limit of {1 << 20} bytes\n")


def test_an_exporter_that_does_not_answer_is_named(stand: Stand) -> None:
    stand.exporter.status = 503
    done = stand.record(until=lambda text: "503" in text)
    assert done.code == 1
    assert "gpu-metrics-adapter: recorded 0 pages, and 1 HPA" in done.output
    assert done.output.splitlines()[-1].startswith("gpu-metrics-adapter: nothing to replay: ")
    assert "503" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no/such/day.gma",), "no/such/day.gma cannot be written: No such file or directory"),
        (("day.gma", "--config", "none.yaml"), "none.yaml"),
        (("day.gma", "--pods-file", "none.yaml"), "none.yaml: No such file or directory"),
        (("day.gma", "--kubeconfig", "none"), "none"),
        (("day.gma", "--for", "0"), "'0': write a number and s, m, h or d"),
    ],
    ids=["file", "config", "pods", "kubeconfig", "time"],
)
def test_a_wrong_argument_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("replay", "record", *arguments)
    assert done.code == 2
    assert said in done.output.splitlines()[-1]
    assert "Traceback" not in done.output

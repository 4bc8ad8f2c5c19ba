"""What the log says about readiness and about pods without a value."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapter.server.serve.coverage import Counted, Coverage, CoverageLog
from tests.adapter.pipeline.sources.conftest import settled
from tests.adapter.server.serve.test_coverage import T0, UTIL, Known
from tests.adapter.serving import Lab, eventually
from tests.adapter.world import World, make_pod, row

PATIENCE = 65.0


class Watched:
    """A world that is counted, and the lines that the counts write."""

    def __init__(self, *names: str, ready_since: float = 0.0) -> None:
        pods = [make_pod(name, node="n1", ready_since=ready_since) for name in names]
        self.world = World(*pods)
        self.now = T0
        self.log = CoverageLog(self.world.index, lambda: self.world.store.snapshot.exporters)
        self._coverage = Coverage(
            Known(self.world),
            self.world.index,
            self.world.store.attributions,
            lambda: self.now,
            patience=lambda: PATIENCE,
        )

    def scrape(self, *named: str) -> None:
        page = "".join(row(UTIL, 50, name, uuid=f"GPU-{name}") for name in named)
        self.world.scrape(page, self.now, node="n1", pod=("gpu", "dcgm-1"))

    def lines(self) -> list[Any]:
        with capture_logs() as lines:
            self.log.note(asyncio.run(self._coverage.count()))
        return lines


def test_one_line_says_that_it_is_ready_and_what_it_found() -> None:
    watched = Watched("a", "b")
    watched.scrape("a", "b")
    assert watched.lines() == [
        {"event": "ready: 2 pods, 2 with GPUs, 1 exporters, 2 measured", "log_level": "info"}
    ]
    assert watched.lines() == []


def test_pods_without_a_value_are_one_warning_again_on_change_and_one_line_at_the_end() -> None:
    watched = Watched("a", "b", "c")
    watched.scrape("a", "b", "c")
    watched.lines()
    watched.now += PATIENCE + 1
    (warning,) = watched.lines()
    assert (warning["log_level"], warning["event"]) == ("warning", "pods with GPUs have no value")
    assert (warning["pods"], warning["of"], warning["reasons"]) == (3, 3, {"stale": 3})
    assert warning["example"].startswith("ml/a: The newest value is older than the age limit")
    assert warning["hint"] == "kubectl -n gpu logs dcgm-1 --tail=20"
    assert watched.lines() == []
    watched.scrape("a", "b")
    (changed,) = watched.lines()
    assert changed["pods"] == 1
    watched.scrape("a", "b", "c")
    (over,) = watched.lines()
    assert (over["log_level"], over["event"]) == (
        "info",
        "every pod with a GPU has a value again",
    )


def test_a_pod_that_has_just_started_causes_no_warning() -> None:
    watched = Watched("new", ready_since=T0 - 5)
    assert [line["log_level"] for line in watched.lines()] == ["info"]
    watched.now += PATIENCE
    assert [line["log_level"] for line in watched.lines()] == ["warning"]


@pytest.mark.parametrize("patience", [0, 3600])
async def test_no_count_is_reported_before_the_process_is_ready(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages come first: a process that will soon be ready does not count yet."""
    monkeypatch.setattr("adapter.server.serve.coverage._UNREADY", patience)
    world = World(make_pod("a", node="n1"))
    ready, reported = False, asyncio.Event()

    def report(_: Counted) -> None:
        assert ready
        reported.set()

    coverage = Coverage(
        Known(world),
        world.index,
        world.store.attributions,
        lambda: T0,
        ready=lambda: ready,
        report=report,
    )
    task = asyncio.create_task(coverage.run())
    if patience:
        await asyncio.sleep(0.1)
        assert coverage.last is None
    else:
        await settled(lambda: coverage.last is not None)
    assert not reported.is_set()
    ready = True
    await asyncio.wait_for(reported.wait(), 30)
    task.cancel()


def test_a_normal_start_writes_one_line_about_readiness_and_no_warning(lab: Lab) -> None:
    with lab.serving() as serving:
        eventually(lambda: any(line["event"].startswith("ready:") for line in serving.log))
        lines = list(serving.log)
    assert [line["event"] for line in lines if line["event"].startswith("ready")] == [
        "ready: 1 pods, 1 with GPUs, 1 exporters, 1 measured"
    ]
    assert [line for line in lines if line["level"] not in ("info", "debug")] == []
    assert {tuple(line)[:3] for line in lines} == {("timestamp", "level", "event")}

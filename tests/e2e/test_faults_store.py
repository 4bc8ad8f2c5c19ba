"""Prometheus hangs, is killed and comes back, for adapters whose clocks are right and wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.e2e.faultnodes import faulty_nodes
from tests.e2e.faultyadapter import Clock, FaultyAdapter
from tests.e2e.prometheus import Prometheus
from tests.e2e.stage import Stage
from tests.e2e.traffic import Lists, Traffic
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE, NODE = "store", "node-store"
LIMIT = 8
VALUES = {"window": "2s", "collect_interval": "1s", "age_limit": f"{LIMIT}s"}
CLOCKS = {"right": 0, "behind": -15, "ahead": 15}
"""Adapter -> seconds that its clock is ahead of Prometheus': more than a value may be old."""
SERVED = ("right", "behind")


class Seen(NamedTuple):
    """What came of it."""

    traffic: Traffic
    same: bool
    logs: dict[str, str]


@pytest.fixture(scope="module")
def seen(running_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    stage, folder, truth = running_stage, tmp_path_factory.mktemp("store"), Truth(LIMIT)
    with ExitStack() as stack:
        stack.callback(setattr, stage.load, "used", stage.load.used)
        stage.load.used = truth.used
        exporter = stack.enter_context(faulty_nodes(stage, [NODE]))[NODE]
        stage.workload(SPACE, 2, 120, node=NODE)
        stack.callback(stage.clear)
        stage.wait_size(SPACE, 2)
        server = Prometheus(folder, "prometheus", {NODE: exporter.port}, honor_labels=False)
        server.start()
        stack.callback(server.stop)
        queries: dict[str, Any] = {"url": server.url, "interval": "500ms", "scrape_interval": "1s"}
        source = {"kind": "prometheus", "prometheus": queries | {"timeout": "2s"}}
        adapters = {}
        for name, ahead in CLOCKS.items():
            clock = Clock(folder / f"{name}.clock")
            clock.set(ahead)
            adapter = adapters[name] = FaultyAdapter(
                folder,
                name,
                stage.kubeconfig(),
                source,
                environment=clock.environment,
                values=VALUES,
            )
            stack.callback(adapter.stop)
            adapter.process.start()
        for adapter in adapters.values():
            adapter.process.wait_ready(adapter.ready)
        pids = [adapter.process.pid for adapter in adapters.values()]
        clients = {
            name: Lists(adapter.client(stage.plane.proxy_client), SPACE, truth, CLOCKS[name])
            for name, adapter in adapters.items()
        }
        with Traffic(clients) as traffic:
            traffic.wait_pods(2, *SERVED)
            os.kill(server.process.pid, signal.SIGSTOP)
            traffic.wait_pods(0)
            server.process.stop(signal.SIGKILL)
            server.start()
            traffic.wait_pods(2, *SERVED)
            traffic.wait_more()
        same = pids == [
            adapter.process.pid for adapter in adapters.values() if adapter.process.running()
        ]
        logs = {name: adapter.process.log.read_text() for name, adapter in adapters.items()}
        yield Seen(traffic, same, logs)


@pytest.mark.parametrize("clock", CLOCKS)
def test_prometheus_hangs_and_is_killed_for_an_adapter_whose_clock_is(
    seen: Seen, clock: str
) -> None:
    """Values last as long as they may be old, by true time, and come back by themselves."""
    assert not seen.traffic.failed(clock)
    assert not seen.traffic.wrong(clock)
    assert seen.same


def test_a_clock_far_ahead_of_prometheus_makes_all_values_stale_and_is_logged(seen: Seen) -> None:
    """A store whose clock is behind looks like one that gives old answers."""
    assert not any(answer.pods for answer in seen.traffic.clients["ahead"].answers)
    assert '"clocks differ"' in seen.logs["ahead"]
    assert '"clocks differ"' not in seen.logs["right"]

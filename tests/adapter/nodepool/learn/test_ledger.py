"""The ledger: data kept between rounds and across restarts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import structlog.testing

from adapter.config.settings.nodepool import HistorySettings
from adapter.nodepool.act.ledgerstore import LedgerStore, dump, restore
from adapter.nodepool.act.serverside import Writer
from adapter.nodepool.learn.boots import BootTimes
from adapter.nodepool.learn.historyqueries import histories
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.capacity import Headroom
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import DemandPoint
from adapter.nodepool.model.shape import key
from adapter.pipeline.sources.prometheus.seriesreader import Points, QueriedSeries
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import T0
from tests.adapter.nodepool.orders import SHAPE

REF = WorkloadRef("team", "Deployment", "inference")
QUEUE = WorkloadRef("team", "Job", key(SHAPE))
ROW = Demand(REF, SHAPE, bound=2, pending=0, wanted=4, max_replicas=8)
PATH = "/api/v1/namespaces/gpu-metrics/configmaps/gpu-metrics-adapter-nodepool"


def full() -> Ledger:
    ledger = Ledger(boots=BootTimes({"gput4": (60.0, 90.0)}))
    ledger.learn([ROW, replace(ROW, workload=QUEUE, max_replicas=None)], T0)
    ledger.spend([], {}, 8, T0)
    ledger.spend([Headroom("team", SHAPE, 2, 2, T0)], {f"team/{key(SHAPE)}": "gput4"}, 8, T0 + 1800)
    return ledger


def test_known_demand_is_recorded_and_unknown_demand_is_not() -> None:
    ledger = Ledger()
    ledger.learn([ROW], T0)
    ledger.learn([replace(ROW, wanted=None)], T0 + 60)
    assert ledger.histories[REF].recent == (DemandPoint(T0, 4),)
    assert ledger.known_at == {REF: T0}


def test_a_queue_that_never_had_a_job_is_not_remembered() -> None:
    ledger = Ledger()
    ledger.learn([replace(ROW, workload=QUEUE, wanted=0)], T0)
    assert ledger.histories == {}


def test_headroom_costs_gpu_hours_for_the_time_it_exists() -> None:
    assert full().gpu_hours == {"gput4": 1.0}


def test_headroom_beyond_the_limit_of_a_pool_is_not_counted() -> None:
    ledger = Ledger()
    ledger.spend([], {}, 8, T0)
    ledger.spend([Headroom("team", SHAPE, 20, 20, T0)], {f"team/{key(SHAPE)}": "a"}, 8, T0 + 3600)
    assert ledger.gpu_hours == {"a": 8.0}


def test_the_workloads_not_seen_for_longest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.nodepool.learn.ledger._MOST", 3)
    ledger = Ledger()
    rows = [replace(ROW, workload=REF._replace(name=f"w{number}")) for number in range(4)]
    ledger.learn(rows[:3], T0)
    ledger.learn(rows[:1], T0 + 60)
    ledger.learn(rows[3:], T0 + 120)
    assert [ref.name for ref in ledger.histories] == ["w2", "w0", "w3"]
    assert set(ledger.known_at) == set(ledger.histories)


def test_a_new_day_has_a_new_budget() -> None:
    ledger = full()
    ledger.spend([Headroom("team", SHAPE, 2, 2, T0)], {}, 8, T0 + 86400 + 3600)
    assert list(ledger.gpu_hours) == [""]


def test_a_clock_that_is_set_back_adds_no_cost() -> None:
    ledger = full()
    ledger.spend([Headroom("team", SHAPE, 2, 2, T0)], {}, 8, T0)
    assert ledger.gpu_hours == {"gput4": 1.0}


def test_the_configmap_restores_everything() -> None:
    ledger, again = full(), Ledger()
    restore(again, dump(ledger))
    assert again.histories == ledger.histories
    assert again.known_at == ledger.known_at
    assert again.queues == {("team", key(SHAPE)): SHAPE}
    assert again.boots.seconds == ledger.boots.seconds
    assert (again.day, again.gpu_hours) == (ledger.day, ledger.gpu_hours)
    assert again.counted_at == T0 + 1800


@pytest.mark.parametrize(
    "data",
    [
        {"workloads": "no json"},
        {"workloads": '{"namespace":"a","kind":"b","name":"c","history":"9:x"}'},
        {"workloads": '{"namespace":"a","kind":"Job","name":"c","history":"","shape":"[]"}'},
        {"boots": '{"gpu": "fast"}'},
        {"spent": "[]"},
    ],
    ids=["garbage", "another version", "a broken shape", "no numbers", "no object"],
)
def test_invalid_edits_are_logged_and_ignored(data: dict[str, str]) -> None:
    ledger = Ledger()
    with structlog.testing.capture_logs() as logs:
        restore(ledger, data)
    assert ledger == Ledger()
    assert [row["log_level"] for row in logs] == ["warning"]


async def test_it_is_read_before_it_is_written_and_written_once_per_interval() -> None:
    api = FakeApi()
    store = LedgerStore(
        Writer(api, lambda: True), full(), "gpu-metrics", HistorySettings(interval=300)
    )
    await store.write(T0)
    assert api.sent == []
    assert await store.read(T0)
    assert not await store.read(T0)
    for seconds in (0, 299, 300, 400, 600):
        await store.write(T0 + seconds)
    assert api.paths("PATCH") == [PATH, PATH]


async def test_an_unreadable_configmap_is_not_overwritten() -> None:
    api = FakeApi()
    api.fail("GET", "configmaps", 503)
    store = LedgerStore(
        Writer(api, lambda: True), full(), "gpu-metrics", HistorySettings(interval=300)
    )
    with structlog.testing.capture_logs():
        assert not await store.read(T0)
        await store.write(T0 + 400)
    assert api.sent == []


async def test_a_write_that_fails_is_tried_an_interval_later() -> None:
    api = FakeApi()
    writer = Writer(api, lambda: True)
    store = LedgerStore(writer, full(), "gpu-metrics", HistorySettings(interval=300))
    await store.read(T0)
    api.fail("PATCH", "configmaps", 403)
    with structlog.testing.capture_logs():
        for seconds in (300, 310, 600):
            await store.write(T0 + seconds)
    assert writer.failed == {("ConfigMap", "forbidden"): 2}
    assert "grant it to this ServiceAccount" in store.problem
    api.failures.clear()
    await store.write(T0 + 900)
    assert store.problem == ""


def test_series_of_prometheus_become_histories() -> None:
    labels = {"namespace": "team", "kind": "Deployment", "name": "inference"}
    restored = histories(
        [
            QueriedSeries("", labels, Points([(T0, 2), (T0 + 60, 4)])),
            QueriedSeries("", {"namespace": "team"}, Points([(T0, 9)])),
        ]
    )
    assert list(restored) == [REF]
    assert restored[REF].recent == (DemandPoint(T0, 2), DemandPoint(T0 + 60, 4))


def test_samples_of_prometheus_without_a_number_of_pods_are_left_out() -> None:
    labels = {"namespace": "team", "kind": "Deployment", "name": "inference"}
    values = enumerate((math.nan, math.inf, -1, 1e30, 2.5))
    points = Points([(T0 + 60 * at, value) for at, value in values])
    restored = histories([QueriedSeries("", labels, points)])
    assert restored[REF].recent == (DemandPoint(T0 + 240, 2.5),)

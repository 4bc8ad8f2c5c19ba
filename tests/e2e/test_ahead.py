"""Replicas ahead of demand on the real HPA controller: what was learned comes from a ConfigMap."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from adapter.hpa import quantity
from adapter.nodepool.model.history import (
    DAY,
    MINUTE,
    SLOT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)
from adapter.pipeline.cluster.workload import DEPLOYMENTS
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.stored import dump
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace, wait_available
from tests.e2e.cluster import HPAS
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage, autoscaler, deployment

pytestmark = pytest.mark.e2e
MEASURED = "gpu_utilization"
EXPECTED = MEASURED + "_expected"
PLACE = "ahead"
LOAD, RISE = 100.0, 120.0
"""Percent of one GPU: what runs now, and what came on top at this time on each earlier day."""
NAME = f"{SERVICE}-memory"
CONFIGMAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
AHEAD = {
    "ahead": {"enabled": True},
    "memory": {"configmap": f"{NAMESPACE}/{NAME}", "interval": 15},
}


def earlier_days(now: float) -> DemandHistory:
    """Four days that rise at this time, and in the next slot too: it may begin soon."""
    minute, today = now // MINUTE * MINUTE, int(now // DAY)
    begins = int(now // SLOT)

    def peak(slot: int) -> float:
        return LOAD + RISE * max(0, min(2, slot - begins + 1))

    peaks = tuple(peak(today * SLOTS + slot) for slot in range(SLOTS))
    days = (DemandDay(day, peaks) for day in range(today - 4, today))
    recent = (DemandPoint(minute - back * MINUTE, LOAD) for back in range(300, 0, -1))
    return DemandHistory(tuple(recent), tuple(days))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("ahead")) as running:
        ensure_namespace(running.admin, PLACE)
        now = time.time()
        key = LoadKey(PLACE, DEPLOYMENTS, "inference", MEASURED)
        load = WorkloadLoad(
            now,
            history=earlier_days(now),
            replica=ReplicaLoad(60.0 * 1e6, 1e6, now),
            starts=StartTimes(watched=(30.0,)),
        )
        # As an earlier process of serve wrote it.
        running.admin.patch(CONFIGMAP, {"data": {"loads": dump({key: load})[0]}})
        running.adapter.stop()
        settings = yaml.safe_load(running.adapter.config.read_text()) | AHEAD
        running.adapter.config.write_text(yaml.safe_dump(settings))
        running.adapter.start()
        wait_available(running.admin)
        yield running


def test_the_hpa_adds_replicas_for_a_rise_that_each_day_had_at_this_time(stage: Stage) -> None:
    """Two replicas carry the load. The expected one asks for four, and the HPA takes the larger."""
    stage.load.set(PLACE, LOAD, expected=2)
    stage.admin.create(deployment(PLACE, 2))
    hpa = autoscaler(PLACE, low=2, high=6, metric=MEASURED, target="60")
    second = autoscaler(PLACE, metric=EXPECTED, target="60")["spec"]["metrics"][0]
    hpa["spec"]["metrics"].append(second)
    stage.admin.create(hpa)

    def sizes() -> dict[str, float]:
        status = stage.admin.get(f"{HPAS.format(ns=PLACE)}/inference")["status"]
        return {"desired": status["desiredReplicas"], "max": max(stage.sizes[PLACE])}

    try:
        wait_until(lambda: sizes()["desired"] == 4, "the HPA wants four replicas", 120)
        measured, expected = (stage.values(PLACE, name) for name in (MEASURED, EXPECTED))
        assert measured.keys() == expected.keys()
        total = float(sum(map(quantity.parse, measured.values())))
        assert total == pytest.approx(LOAD, abs=15)
        # The measured metric alone asks for two.
        assert total / 60 < 2.2
        assert sizes()["max"] == 4
    except BaseException:
        print(stage.tails())
        raise


def test_what_it_learns_is_stored_again_with_the_rights_of_the_chart(stage: Stage) -> None:
    begun = stage.admin.get(CONFIGMAP)["metadata"]["resourceVersion"]
    wait_until(
        lambda: stage.admin.get(CONFIGMAP)["metadata"]["resourceVersion"] != begun,
        "the ConfigMap is written",
        90,
    )

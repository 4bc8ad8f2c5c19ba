"""Replicas ahead of demand on the real HPA controller: what was learned comes from a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapter.hpa import quantity
from tests.e2e import learnedload
from tests.e2e.apiservice import ensure_namespace, wait_available
from tests.e2e.cluster import HPAS
from tests.e2e.learnedload import CONFIGMAP, EXPECTED, MEASURED
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage, autoscaler, deployment

pytestmark = pytest.mark.e2e
PLACE = "ahead"
LOAD, RISE = 100.0, 120.0
"""Percent of one GPU: what runs now, and what came on top at this time on each earlier day."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("ahead")) as running:
        ensure_namespace(running.admin, PLACE)
        learnedload.write(running.admin, PLACE, LOAD, RISE, 60.0)
        running.adapter.stop()
        learnedload.use(running.adapter.config)
        running.adapter.start()
        wait_available(running.admin)
        yield running


def test_the_hpa_adds_replicas_for_a_rise_that_each_day_had_at_this_time(stage: Stage) -> None:
    """Two replicas carry the load. The expected one asks for four, and the HPA takes the larger."""
    stage.load.set(PLACE, LOAD, expected=2)
    stage.admin.create(deployment(PLACE, 2))
    hpa = autoscaler(PLACE, low=2, high=6, metric=MEASURED, target="60")
    stage.admin.create(learnedload.add_expected(hpa))

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

"""`nodepool` and replicas ahead of demand, on Karpenter: the same demand is ordered once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import chart, learnedload
from tests.e2e.apiservice import NAMESPACE, ensure_namespace, wait_available
from tests.e2e.cluster import HPAS
from tests.e2e.lab.stage import LabStage
from tests.e2e.nodepoolstage import HEADROOM
from tests.e2e.process import wait_until
from tests.e2e.stage import RIGHTS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]
BOOT, PACE = 10, 15
PLACE = "early"
BUFFERS = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/capacitybuffers"
MOST = 12
"""maxReplicas: more than is needed, so that it hides no order too many."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStage]:
    with LabStage(tmp_path_factory.mktemp("early"), BOOT, sync=PACE) as stage:
        for row in chart.render(RIGHTS, only=("memory",)):
            stage.admin.create(row)
        ensure_namespace(stage.admin, PLACE)
        # Four pods carry the load; as much again came at this time on each earlier day.
        learnedload.write(stage.admin, PLACE, 200.0, 200.0, 50.0)
        stage.adapter.stop()
        learnedload.use(stage.adapter.config)
        stage.adapter.process.start()
        wait_available(stage.admin)
        yield stage


def test_what_the_hpa_creates_ahead_is_not_ordered_as_headroom_too(lab: LabStage) -> None:
    """The HPA doubles its pods before the load comes; then it comes."""
    controller = lab.controller("early", interval=PACE, provisioning_method="buffer")
    controller.start()
    nodes = held = 0

    def looked(pods: int) -> bool:
        nonlocal nodes, held
        nodes = max(nodes, lab.lab.ordered())
        buffers = lab.admin.get(BUFFERS + HEADROOM.format(ns=PLACE))["items"]
        held = max(held, sum(buffer["spec"]["replicas"] for buffer in buffers))
        return len(lab.running(PLACE)) == pods

    path = f"{HPAS.format(ns=PLACE)}/inference"
    try:
        lab.load.set(PLACE, 200)
        lab.workload(PLACE, 4, most=MOST)
        hpa = learnedload.add_expected(lab.admin.get(path))
        lab.admin.patch(path, {"spec": {"metrics": hpa["spec"]["metrics"]}})
        wait_until(lambda: looked(8), "eight pods run before the load comes", 180, 0.2)
        assert lab.admin.get(path)["status"]["desiredReplicas"] == 8
        lab.load.set(PLACE, 400)
        for _ in range(3 * PACE * 5):  # three rounds of both
            wait_until(lambda: looked(8), "the load needs no other pod", 30, 0.2)
        print(f"nodes at most {nodes}, headroom at most {held}")
        assert nodes == 8
    finally:
        controller.stop()
        lab.clear(PLACE)

"""The companion controller before a real scheduler and a real node autoscaler (Karpenter)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.apiservice import NAMESPACE, ensure_namespace
from tests.e2e.cluster import Object
from tests.e2e.lab.lab import holder
from tests.e2e.lab.stage import LabStage
from tests.e2e.nodepoolstage import ACCOUNT, HEADROOM, Controller
from tests.e2e.process import wait_until

BOOT = 10
pytestmark = pytest.mark.timeout(400)
BUFFERS = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/capacitybuffers"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStage]:
    """One lab for all tests of this module."""
    with LabStage(tmp_path_factory.mktemp("lab"), BOOT) as stage:
        yield stage


def steps(lab: LabStage, namespace: str, headroom: int) -> dict[str, int]:
    """Take a workload from 0 over 2 and 4 to 8 pods; returns the pods of each that had no node.

    The pods' utilisation asks for the steps: 2 busy pods want 4, 4 want 8. Before each, the
    headroom is there.
    """
    waited: dict[str, int] = {}
    lab.workload(namespace, 0, headroom)
    lab.lab.wait_nodes(headroom)
    lab.load.set(namespace, 100, expected=2)
    lab.scale(namespace, 2)
    lab.wait_running(namespace, 2)
    waited["0→2"] = len(lab.waited(namespace))
    for before, after in ((2, 4), (4, 8)):
        lab.lab.wait_nodes(before + headroom)
        earlier = lab.waited(namespace)
        lab.load.set(namespace, 50.0 * after)
        lab.wait_running(namespace, after)
        waited[f"{before}→{after}"] = len(lab.waited(namespace) - earlier)
    lab.clear(namespace)
    lab.lab.wait_nodes(0)
    return waited


def test_steps_wait_for_a_boot_only_without_the_controller(lab: LabStage) -> None:
    without = steps(lab, "plain", headroom=0)
    controller = lab.controller("buffers", provisioning_method="auto")
    controller.start()
    try:
        nudged = steps(lab, "nudged", headroom=4)
        assert controller.metric('gma_nodepool_provisioning_method{method="CapacityBuffer"}') == 1
    finally:
        controller.stop()
    print(f"pods that waited for a node: without {without}, with {nudged}")
    assert without == {"0→2": 2, "2→4": 2, "4→8": 4}
    assert nudged == dict.fromkeys(without, 0)


def held(lab: LabStage, namespace: str) -> int:
    """Pods of headroom for a namespace's workloads."""
    buffers = lab.admin.get(BUFFERS + HEADROOM.format(ns=namespace))["items"]
    return sum(buffer["spec"]["replicas"] for buffer in buffers)


@pytest.mark.long
def test_placeholders_reserve_capacity_if_buffers_are_not_used(lab: LabStage) -> None:
    controller = lab.controller("placeholders", provisioning_method="placeholder")
    controller.start()
    try:
        waited = steps(lab, "held", headroom=4)
    finally:
        controller.stop()
    assert not any(waited.values())


def test_headroom_outlives_a_restart_of_the_api_server(lab: LabStage) -> None:
    """It freezes: what is unknown for a moment costs nobody a node."""
    controller = lab.controller("restart")
    controller.start()
    try:
        lab.workload("restart", 2, headroom=2)
        lab.load.set("restart", 50)
        lab.lab.wait_nodes(4)
        lab.wait_running("restart", 2)
        before = {node["metadata"]["uid"] for node in lab.lab.nodes()}
        earlier = lab.waited("restart")
        lab.lab.plane.restart_apiserver()
        wait_until(lambda: controller.get("/readyz")[0] == 200, "the controller sees it again")
        lab.load.set("restart", 200)
        lab.wait_running("restart", 4)
        assert lab.waited("restart") == earlier, "the nodes of the new pods were there"
        assert before <= {node["metadata"]["uid"] for node in lab.lab.nodes()}
    finally:
        lab.clear("restart")
        wait_until(lambda: not held(lab, "restart"), "headroom of no workload is let go")
        controller.stop()


def kill(_: LabStage, controller: Controller) -> None:
    controller.stop(signal.SIGKILL)


def uninstall(lab: LabStage, controller: Controller) -> None:
    """With its Deployment go its account and its permissions, and then its pod."""
    lab.uninstall()
    controller.stop()


@pytest.mark.long
@pytest.mark.parametrize("end", [kill, uninstall])
def test_nothing_of_a_controller_that_is_gone_remains(
    lab: LabStage, end: Callable[[LabStage, Controller], None]
) -> None:
    """Karpenter 1.14 takes no notice of the last buffer's deletion: the probe outlives the
    headroom."""
    name = end.__name__
    controller = lab.controller(name, provisioning_method="buffer", lifeline=20)
    controller.start()
    try:
        lab.workload(name, 2, headroom=3)
        lab.load.set(name, 50)
        lab.lab.wait_nodes(5)
        end(lab, controller)
        ended = time.monotonic()
        assert held(lab, name) == 3, "nobody was there to let it go"
        wait_until(lambda: not held(lab, name), "the buffer is gone")
        gone = time.monotonic() - ended
        lab.lab.wait_nodes(2)
        assert len(lab.running(name)) == 2
        print(f"after {name} headroom was gone in {gone:.0f} s", end=", ")
        print(f"its nodes in {time.monotonic() - ended:.0f} s", end=", ")
        wait_until(lambda: not remains(lab), "nothing remains", 200)
        print(f"everything in {time.monotonic() - ended:.0f} s")
    finally:
        lab.clear(name)
        if end is uninstall:
            lab.install()
    lab.lab.wait_nodes(0)


def remains(lab: LabStage) -> list[str]:
    """Names of headroom, probes and lifelines. The release has a Deployment and its pod."""
    lists = (
        BUFFERS,
        f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
        f"/api/v1/namespaces/{NAMESPACE}/podtemplates",
        f"/api/v1/namespaces/{NAMESPACE}/pods",
    )
    rows = [row["metadata"]["name"] for path in lists for row in lab.admin.get(path)["items"]]
    return [name for name in rows if not name.startswith(ACCOUNT)]


@pytest.mark.long
def test_nodes_of_headroom_that_is_stopped_are_removed(lab: LabStage) -> None:
    controller = lab.controller("stopped", provisioning_method="buffer")
    controller.start()
    try:
        lab.workload("stopped", 2, headroom=3)
        lab.load.set("stopped", 50)
        lab.lab.wait_nodes(5)
        text = controller.config.read_text()
        controller.config.write_text(text.replace("nodepool:\n", "nodepool:\n  stop: true\n"))
        lab.lab.wait_nodes(2)
        assert not held(lab, "stopped")
        assert len(lab.running("stopped")) == 2
    finally:
        lab.clear("stopped")
        controller.stop()
    lab.lab.wait_nodes(0)


@pytest.mark.long
def test_a_burst_of_fifty_jobs_stays_within_the_limits_and_leaves_nothing(lab: LabStage) -> None:
    """The jobs' pods order their own nodes; the controller must not order them again.

    After the last Job there is no headroom: one burst says nothing about another.
    """
    cap = 4
    controller = lab.controller("burst", limits={"max_pods": cap, "max_gpus_per_pool": cap})
    most = 0
    controller.start()
    try:
        ensure_namespace(lab.admin, "burst")
        for number in range(50):
            lab.admin.request("POST", "/apis/batch/v1/namespaces/burst/jobs", _job(number))

        def all_done() -> bool:
            nonlocal most
            most = max(most, len(lab.lab.nodes()))
            jobs = lab.admin.get("/apis/batch/v1/namespaces/burst/jobs")["items"]
            return bool(sum(job["status"].get("succeeded", 0) for job in jobs) == 50)

        wait_until(all_done, "fifty jobs are done", 240, 0.5)
        assert most <= 50 + cap
        for number in range(50):
            lab.admin.delete(f"/apis/batch/v1/namespaces/burst/jobs/burst-{number}")
        ended = time.monotonic()
        left = 0

        def empty() -> bool:
            nonlocal left
            left = max(left, held(lab, "burst"))
            return not lab.lab.nodes()

        wait_until(empty, "the nodes of the jobs are gone", 180, 0.2)
        assert not held(lab, "burst")
        print(f"{left} pods of headroom at most after them", end=", ")
        print(f"no node {time.monotonic() - ended:.0f} s after they were deleted")
    finally:
        controller.stop()
    print(f"burst of fifty jobs: {most} nodes at most")


def _job(number: int) -> Object:
    annotations = {"lab/runs-for": "20s"}
    spec = holder(restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"burst-{number}", "namespace": "burst"},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": spec}},
    }

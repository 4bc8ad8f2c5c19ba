"""Nodes are ordered once: the HPA controller and `nodepool` at their own pace, and Karpenter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.apiservice import NAMESPACE
from tests.e2e.lab.stage import LabStage
from tests.e2e.nodepoolstage import HEADROOM, Controller
from tests.e2e.process import wait_until

BOOT = 10
PACE = 15
"""Seconds between two looks of the HPA controller, and of `nodepool`: the defaults of both."""
pytestmark = pytest.mark.timeout(500)
BUFFERS = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/capacitybuffers"
SLOW = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStage]:
    """One lab for all tests of this module."""
    with LabStage(tmp_path_factory.mktemp("orders"), BOOT, sync=PACE) as stage:
        yield stage


@pytest.fixture
def controller(lab: LabStage) -> Iterator[Controller]:
    """A controller that looks at metrics as seldom as it does by default."""
    one = lab.controller("orders", interval=PACE, provisioning_method="buffer")
    one.start()
    yield one
    one.stop()


def jump(lab: LabStage, namespace: str, **behavior: Any) -> tuple[int, int]:
    """Let 4 pods want 8, all that the HPA allows.

    Returns:
        The most nodes that were ordered, and the most headroom, until all was quiet again.
    """
    nodes = held = 0

    def calm() -> bool:
        nonlocal nodes, held
        nodes = max(nodes, lab.lab.ordered())
        buffers = lab.admin.get(BUFFERS + HEADROOM.format(ns=namespace))["items"]
        replicas = sum(buffer["spec"]["replicas"] for buffer in buffers)
        held = max(held, replicas)
        return len(lab.running(namespace)) == 8 and not replicas

    lab.load.set(namespace, 200)
    lab.workload(namespace, 4, most=8, **behavior)
    lab.wait_running(namespace, 4)
    lab.lab.wait_nodes(4)
    lab.load.set(namespace, 400)
    wait_until(calm, f"8 pods of {namespace} run and no headroom is left", 180, 0.2)
    lab.clear(namespace)
    lab.lab.wait_nodes(0)
    return nodes, held


def test_pods_that_the_hpa_creates_are_not_ordered_again(
    lab: LabStage, controller: Controller
) -> None:
    """The HPA doubles its pods in one sync, and is at its most replicas then."""
    jumps = [jump(lab, f"twice-{number}") for number in range(2)]
    print(f"nodes and headroom at most, in two jumps from 4 to 8 pods: {jumps}")
    assert [nodes for nodes, _ in jumps] == [8, 8]


@pytest.mark.long
def test_pods_that_the_hpa_delays_are_ordered_ahead_once(
    lab: LabStage, controller: Controller
) -> None:
    """It adds a pod in a sync: the other nodes are ordered before it asks for them."""
    nodes, held = jump(lab, "slow", **SLOW)
    print(f"nodes at most {nodes}, headroom at most {held}")
    assert nodes == 8
    assert held >= 2

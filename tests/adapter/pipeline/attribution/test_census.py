"""The gauges of attribution and of sharing nodes show the real allocation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from adapter.pipeline.attribution.policy import PolicyRule, SharingOptions, SharingPolicy
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ONE: Mapping[str, str] = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
TWO: Mapping[str, str] = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
HAMI = 'hami_container_device_utilization_ratio{namespace="ml",pod="p",device_uuid="GPU-0"} 15\n'
BLIND = row(UTIL, 9) + row(UTIL, 4, "p", more='vgpu="0"') + row(UTIL, 5, "q", more='vgpu="1"')
PAIR = (make_pod("p", node="n", uid="p"), make_pod("q", node="n", uid="q"))
COPIES = row(UTIL, 9, "p", more='vgpu="0"') + row(UTIL, 9, "q", more='vgpu="1"')


class Case(NamedTuple):
    page: str
    says: dict[str, int]
    """Kinds with a device; the others are 0."""
    labels: Mapping[str, str] = {}
    sharing: SharingOptions = SharingOptions()
    pods: tuple[Pod, ...] = PAIR


CASES = {
    "each its own": Case(row(UTIL, 5, "p") + row(UTIL, 5, "q", uuid="GPU-1"), {"exact": 2}),
    "two containers, one device": Case(
        row(UTIL, 5, "p", container="a") + row(UTIL, 5, "p", container="b"), {"exact": 1}
    ),
    "the node's label says shared, the row names one": Case(row(UTIL, 5, "p"), {"copied": 2}, ONE),
    "the node's label says shared, the row names nobody": Case(row(UTIL, 5), {"copied": 2}, ONE),
    "of two devices one is named for one of two pods": Case(
        row(UTIL, 5, "p") + row(UTIL, 5, uuid="GPU-1"), {"copied": 1, "left_out": 1}, TWO
    ),
    "copies divided": Case(COPIES, {"split": 2}, sharing=SharingOptions(SharingPolicy.EQUAL)),
    "copies under exact": Case(
        COPIES, {"left_out": 2}, sharing=SharingOptions(SharingPolicy.EXACT)
    ),
    "copies by memory that nobody knows": Case(
        COPIES, {"left_out": 2}, sharing=SharingOptions(SharingPolicy.MEMORY)
    ),
    "a rule of another namespace": Case(
        COPIES,
        {"copied": 2},
        sharing=SharingOptions(rules=(PolicyRule(SharingPolicy.EQUAL, namespaces=("x",)),)),
    ),
    "accounted per process": Case(BLIND, {"exact": 2}, sharing=SharingOptions(SharingPolicy.EXACT)),
    "a container's own, and a sharer without rows": Case(HAMI, {"exact": 1, "left_out": 1}, ONE),
    "a pod that is not there": Case(row(UTIL, 5, "gone"), {}),
    "a pod without a GPU": Case(row(UTIL, 5, "p"), {}, pods=(make_pod("p", gpus={}, node="n"),)),
    "nobody's device": Case(row(UTIL, 5), {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_devices_are_counted_by_their_sharing(case: Case) -> None:
    lab = World(*case.pods, sharing=case.sharing)
    lab.nodes.replace([Node("n", case.labels)])
    lab.scrape(case.page, 100.0, node="n")
    none = dict.fromkeys(("exact", "copied", "split", "derived", "left_out"), 0)
    assert at_once(lab.store.attributions()) == none | case.says


def test_flapping_samples_are_counted_as_copies_and_two_exporters_once() -> None:
    lab = World(*PAIR)
    for i, name in enumerate("pqpq"):
        lab.scrape(row(UTIL, 5, name), 100.0 + 5 * i, node="n")
        lab.scrape(row(UTIL, 5, name), 101.0 + 5 * i, node="n", origin="second")
    counts = {"exact": 0, "copied": 2, "split": 0, "derived": 0, "left_out": 0}
    assert at_once(lab.store.attributions()) == counts
    assert lab.store.sharing_nodes["flapping_samples"] == 1


def test_an_exporter_without_sharing_does_not_override_another() -> None:
    lab = World(*PAIR)
    lab.scrape(COPIES, 100.0, node="n")
    lab.scrape(row(UTIL, 5, uuid="GPU-1"), 101.0, node="n", origin="second")
    assert lab.store.sharing_nodes["rows"] == 1


def test_a_node_that_left_a_page_has_no_sharing_any_more() -> None:
    lab = World(*PAIR)
    node_label, gone = 'node="n"', 200.0
    lab.scrape(COPIES.replace("}", f",{node_label}}}"), 100.0)
    assert lab.store.sharing_nodes["rows"] == 1
    for time in (gone, gone + 100.0):
        lab.scrape(row(UTIL, 5, uuid="GPU-1", more='node="m"'), time)
    assert lab.store.sharing_nodes["rows"] == 0


def test_the_holders_of_a_device_are_dropped_with_the_device() -> None:
    lab = World(*PAIR)
    other = row(UTIL, 5, uuid="GPU-1")
    for time, name in ((100.0, "p"), (105.0, "q")):
        lab.scrape(row(UTIL, 5, name) + other, time, node="n")
    assert lab.value("q", UTIL, 105.0, "sharing=shared") == 5.0
    for time in (300.0, 305.0):
        lab.scrape(other, time, node="n")
    lab.scrape(row(UTIL, 7, "q") + other, 310.0, node="n")
    assert lab.value("q", UTIL, 310.0, "sharing=exclusive") == 7.0

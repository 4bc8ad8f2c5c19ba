"""A pod that ran on another node before, and samples that still name it there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter.pipeline.cluster.pod import Pod
from apiservice.labels.selector import EVERYTHING
from tests.adapter.prometheusscrape import TARGET, Prometheus
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
NEW, OLD = "gpu-node-new", "gpu-node-old"
ADDRESSES = {NEW: "10.0.0.1", OLD: "10.0.0.2"}


def exporter(node: str) -> Pod:
    made = make_pod(f"agent-{node}", namespace="gpu", gpus={}, node=node, uid=node)
    return made.replace(ip=ADDRESSES[node])


def target(node: str, more: Mapping[str, str] = {}) -> dict[str, str]:
    """Neither service nor job names the pod of the exporter."""
    pod = {"pod": f"agent-{node}", "namespace": "gpu", "service": "metrics", "job": "metrics"}
    return {**TARGET, **pod, "instance": f"{ADDRESSES[node]}:9400", **more}


def page(node: str, value: int, hostname: str, *, idle: bool) -> str:
    """``db-0`` has the only device of the node, or one of two."""
    more = f'Hostname="{hostname}"' if hostname else ""
    own = row(UTIL, value, "db-0", uuid=f"GPU-{node}", more=more)
    return own + (row(UTIL, 1, uuid=f"GPU-{node}-idle", more=more) if idle else "")


PLACED = {
    "by the exporter's pod": ({}, "", True, True),
    "by Hostname": ({"instance": "exporter.example:9400"}, "{node}", False, False),
    "by the scraped address": ({}, "localhost", False, True),
}


@pytest.mark.parametrize("honor", [False, True], ids=["honorLabels false", "honorLabels true"])
@pytest.mark.parametrize("old_first", [False, True])
@pytest.mark.parametrize(("more", "hostname", "idle", "known"), PLACED.values(), ids=PLACED)
def test_a_moved_pod_is_not_counted_on_the_node_that_it_left(
    honor: bool,
    old_first: bool,
    more: Mapping[str, str],
    hostname: str,
    idle: bool,
    known: bool,
) -> None:
    exporters = [exporter(NEW), exporter(OLD)] if known else []
    world = World(make_pod("db-0", node=NEW), *exporters, nodes={NEW: {}, OLD: {}})
    engine = Prometheus(world.catalog, honor=honor)
    for node, value in ((NEW, 11), (OLD, 97)):
        name = f"{'a' if (node == OLD) is old_first else 'b'}"
        instance = {k: f"{name}.{v}" for k, v in more.items()}
        text = page(node, value, hostname.format(node=node), idle=idle)
        engine.scrape(text, 100.0, target(node, instance))
    engine.answer(world, 100.0)
    assert world.value("db-0", "gpu_utilization", 100.0) == 11.0
    assert world.count("wrong_node") == 1


@pytest.mark.parametrize("first", [NEW, OLD])
def test_a_sample_without_a_node_waits_for_one_with_a_node(first: str) -> None:
    world = World(make_pod("db-0", node=NEW), nodes={NEW: {}, OLD: {}})
    pages = {
        NEW: page(NEW, 11, NEW, idle=False),
        OLD: page(OLD, 97, "", idle=False),
    }
    for node in sorted(pages, key=lambda node: node != first):
        world.scrape(pages[node], 100.0, origin=node)
    db = make_pod("db-0", node=NEW)
    answer = world.store.snapshot.pod(db, UTIL, EVERYTHING, 100.0)
    assert world.value("db-0", UTIL, 100.0) == 11.0
    assert [item.reason for item in answer.left_out] == ["sample_without_node"]


def test_a_sample_without_a_node_waits_even_if_no_other_sample_names_the_pod_yet() -> None:
    world = World(make_pod("db-0", node=NEW), nodes={NEW: {}, OLD: {}})
    world.scrape(page(OLD, 97, "", idle=False), 100.0, origin=OLD)
    assert world.value("db-0", UTIL, 100.0) == 97.0  # no other exporter reports from the pod's node
    world.scrape(row(UTIL, 0, uuid="GPU-new", more=f'Hostname="{NEW}"'), 100.0, origin=NEW)
    assert world.value("db-0", UTIL, 100.0) == "sample_without_node"


def test_another_exporter_of_a_field_does_not_need_a_node() -> None:
    world = World(make_pod("db-0", node=NEW), nodes={NEW: {}})
    world.scrape(page(NEW, 11, NEW, idle=False), 100.0, origin="dcgm")
    labels = 'podname="db-0",podnamespace="ml",ctrname="server",deviceuuid="GPU-x"'
    world.scrape(f"vGPU_device_memory_usage_in_bytes{{{labels}}} 5\n", 100.0, origin="hami")
    assert world.value("db-0", "gpu_memory_used_bytes", 100.0) == 5.0


def test_an_address_of_pods_on_two_nodes_does_not_determine_the_node() -> None:
    twins = [exporter(NEW).replace(ip="10.0.0.9"), exporter(OLD).replace(ip="10.0.0.9")]
    world = World(make_pod("db-0", node=NEW), *twins, nodes={NEW: {}, OLD: {}})
    more = 'instance="10.0.0.9:9400"'
    world.scrape(row(UTIL, 40, "db-0", more=more), 100.0)
    assert world.value("db-0", UTIL, 100.0) == 40.0


def test_conflicting_labels_of_the_node_are_rejected() -> None:
    world = World(make_pod("db-0", node=NEW), exporter(OLD), nodes={NEW: {}, OLD: {}})
    more = f'instance="{ADDRESSES[OLD]}:9400",Hostname="{NEW}"'
    world.scrape(row(UTIL, 97, "db-0", more=more), 100.0)
    assert world.value("db-0", UTIL, 100.0) == "wrong_node"


@pytest.mark.parametrize(("phase", "expected"), [("Pending", 60.0), ("Running", "wrong_node")])
def test_a_pod_that_does_not_run_does_not_make_a_hostname_a_node(
    phase: str, expected: float | str
) -> None:
    """``Hostname`` may be the name of a container, and anyone can set ``nodeName`` to it."""
    other = make_pod("other", gpus={}, node="agent-abcde", phase=phase)
    world = World(make_pod("db-0", node=NEW), other, nodes={NEW: {}})
    world.scrape(row(UTIL, 60, "db-0", more='Hostname="agent-abcde"'), 100.0)
    assert world.value("db-0", UTIL, 100.0) == expected

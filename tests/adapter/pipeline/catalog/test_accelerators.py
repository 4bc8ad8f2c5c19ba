"""Exporters of accelerators besides the GPUs of NVIDIA, AMD and Intel: how they are found.

Their pages and values are in ``tests/adapter/pages/own/{gaudi,ascend,gke}``.
"""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.pod import ContainerPort
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES, select_exporters
from tests.adapter.world import World, make_pod


def test_short_names_on_the_page_of_another_program_are_not_read() -> None:
    world = World(make_pod("p", node="n"))
    world.scrape('memory_used{namespace="ml",pod="p",accelerator_id="x"} 5\n', 100.0, node="n")
    assert isinstance(world.value("p", "gpu_memory_used_bytes", 101.0), str)


EXPORTERS = {
    "gaudi": ({"app.kubernetes.io/name": "metric-exporter-ds"}, ()),
    "ascend-npu-exporter": ({"app": "npu-exporter"}, ()),
    "gke-tpu-plugin": ({"k8s-app": "tpu-device-plugin"}, ()),
    "gke-gpu-plugin": (
        {"k8s-app": "nvidia-gpu-device-plugin"},
        (ContainerPort("metrics", 2112),),
    ),
}
OTHERS = {"k8s-app": "nvidia-gpu-device-plugin"}, {"name": "volcano-device-plugin"}


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_pods_of_an_exporter_are_found(name: str) -> None:
    labels, ports = EXPORTERS[name]
    pod = make_pod("x", gpus={}, labels=labels, ports=ports, node="n", ip="10.0.0.1")
    assert [rule.name for rule in DISCOVERY_RULES if rule.matches(pod)] == [name]


def test_volcanos_monitor_is_found_at_its_port() -> None:
    labels = {"name": "volcano-device-plugin"}
    containers = ("volcano-device-plugin", "monitor")
    pod = make_pod("x", gpus={}, labels=labels, containers=containers, node="n", ip="10.0.0.1")
    (target,) = select_exporters([pod], DISCOVERY_RULES).values()
    assert (target.rule, target.url) == ("volcano-vgpu", "http://10.0.0.1:9394/metrics")


@pytest.mark.parametrize("labels", OTHERS, ids=str)
def test_a_device_plugin_without_a_page_is_not_scraped(labels: dict[str, str]) -> None:
    pod = make_pod("x", gpus={}, labels=labels, node="n", ip="10.0.0.1")
    assert not any(rule.matches(pod) for rule in DISCOVERY_RULES)

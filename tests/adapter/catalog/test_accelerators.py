"""Pages of accelerators besides the GPUs of NVIDIA, AMD and Intel: which pods have which values."""

from __future__ import annotations

import pytest

from adapter.cluster.pod import ContainerPort
from adapter.sources.scrape.discovery import DISCOVERY_RULES, selected
from tests.adapter.world import World, make_pod

MIB = 1048576


def gaudi(series: str, value: float, pod: str, number: int = 0) -> str:
    namespace = "ml" if pod else ""
    return (
        f'{series}{{Serial="AM{number}",UUID="01P0-HL{number}",device="AM{number}",id="{number}",'
        f'fit="fit-1",spi="spi-1",driver="1.22",pod_namespace="{namespace}",pod_name="{pod}"}} '
        f"{value}\n"
    )


def ascend(series: str, value: float, pod: str, number: int = 0) -> str:
    namespace, container = ("ml", "server") if pod else ("", "")
    return (
        f'{series}{{id="{number}",model_name="910B3-Ascend-V1",vdie_id="5C{number} 21 0A",'
        f'pcie_bus_info="0000:C{number}:00.0",namespace="{namespace}",pod_name="{pod}",'
        f'container_name="{container}"}} {value} 1767225600000\n'
    )


def gke(series: str, value: float, pod: str, make: str = "nvidia", number: int = 0) -> str:
    return (
        f'{series}{{namespace="ml",pod="{pod}",container="server",make="{make}",'
        f'accelerator_id="dev-{make}-{number}",model="m"}} {value}\n'
    )


def tpu(series: str, value: float, pod: str, number: int = 0) -> str:
    return gke(series, value, pod, "cloud-tpu", number)


PAGES: dict[str, tuple[dict[str, int], str, dict[str, float | str]]] = {
    "gaudi": (
        {"habana.ai/gaudi": 1},
        gaudi("habanalabs_utilization", 62, "p")
        + gaudi("habanalabs_utilization", 7, "", 1)
        + gaudi("habanalabs_memory_used_bytes", 34e9, "p")
        + gaudi("habanalabs_memory_total_bytes", 136e9, "p")
        + gaudi("habanalabs_power_mW", 412000, "p")
        + gaudi("habanalabs_temperature_onchip", 51, "p"),
        {
            "gpu_utilization": 62,
            "gpu_memory_used_bytes": 34e9,
            "gpu_memory_utilization": 25,
            "gpu_power_watts": 412,
            "gpu_temperature_celsius": 51,
            "gpu_count": 1,
            "habanalabs_utilization": 62,
        },
    ),
    "gaudi, more than all of it": (
        {"habana.ai/gaudi": 1},
        gaudi("habanalabs_utilization", 4294967295, "p"),
        {"gpu_utilization": "no_value"},
    ),
    "gaudi, two cards": (
        {"habana.ai/gaudi": 2},
        gaudi("habanalabs_utilization", 60, "p") + gaudi("habanalabs_utilization", 20, "p", 1),
        {"gpu_utilization": 40, "gpu_count": 2},
    ),
    "ascend": (
        {"huawei.com/Ascend910": 1},
        ascend("npu_chip_info_utilization", 77, "p")
        + ascend("npu_chip_info_utilization", 3, "", 1)
        + ascend("npu_chip_info_hbm_used_memory", 16384, "p")
        + ascend("npu_chip_info_hbm_total_memory", 65536, "p")
        + ascend("npu_chip_info_power", 310.5, "p")
        + ascend("npu_chip_info_temperature", 48, "p"),
        {
            "gpu_utilization": 77,
            "gpu_memory_used_bytes": 16384 * MIB,
            "gpu_memory_utilization": 25,
            "gpu_power_watts": 310.5,
            "gpu_temperature_celsius": 48,
            "gpu_count": 1,
        },
    ),
    "gke's plugin for gpus": (
        {"nvidia.com/gpu": 1},
        gke("duty_cycle", 81, "p")
        + gke("memory_used", 6e9, "p")
        + gke("memory_total", 24e9, "p")
        + 'duty_cycle_gpu_node{node_name="n",make="nvidia",accelerator_index="0",model="m"} 81\n',
        {"gpu_utilization": 81, "gpu_memory_used_bytes": 6e9, "gpu_memory_utilization": 25},
    ),
    "gke's plugin for tpus": (
        {"google.com/tpu": 2},
        tpu("duty_cycle", 40, "p")
        + tpu("duty_cycle", 60, "p", 1)
        + tpu("memory_used", 8e9, "p")
        + tpu("memory_used", 8e9, "p", 1)
        + tpu("memory_total", 32e9, "p")
        + tpu("memory_total", 32e9, "p", 1)
        + tpu("tensorcore_utilization", 30, "p")
        + tpu("tensorcore_utilization", 50, "p", 1)
        + tpu("memory_bandwidth_utilization", 10, "p")
        + tpu("memory_bandwidth_utilization", 20, "p", 1)
        + 'duty_cycle_node{make="cloud-tpu",accelerator_id="dev-cloud-tpu-3",model="m"} 99\n',
        {
            "gpu_utilization": 50,
            "gpu_memory_used_bytes": 16e9,
            "gpu_tensor_activity": 40,
            "gpu_memory_bandwidth_utilization": 15,
            "gpu_count": 2,
        },
    ),
    "tensor cores are not a duty cycle": (
        {"google.com/tpu": 1},
        tpu("tensorcore_utilization", 30, "p"),
        {"gpu_tensor_activity": 30, "gpu_utilization": "metric_not_exported"},
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_pods_and_has_their_values(name: str) -> None:
    gpus, page, expected = PAGES[name]
    world = World(make_pod("p", gpus=gpus, node="n"))
    world.scrape(page, 1767225600.0, node="n", pod=("system", "exporter"))
    found = {metric: world.value("p", metric, 1767225601.0) for metric in expected}
    assert found == expected


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
    (target,) = selected([pod], DISCOVERY_RULES).values()
    assert (target.rule, target.url) == ("volcano-vgpu", "http://10.0.0.1:9394/metrics")


@pytest.mark.parametrize("labels", OTHERS, ids=str)
def test_a_device_plugin_without_a_page_is_not_scraped(labels: dict[str, str]) -> None:
    pod = make_pod("x", gpus={}, labels=labels, node="n", ip="10.0.0.1")
    assert not any(rule.matches(pod) for rule in DISCOVERY_RULES)

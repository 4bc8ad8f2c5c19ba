"""Fields of AMD, Intel, HAMi and GKE: names, units, and the neutral metrics from them."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog.field import Mig
from tests.adapter.world import CATALOG, World, make_pod, reading

AMD = 'gpu_id="0",gpu_uuid="u",hostname="n",pod="p",namespace="ml",container="server"'
SPX = f'{AMD},gpu_partition_id="0",gpu_compute_partition_type="spx"'
CPX = f'{AMD},gpu_partition_id="3",gpu_compute_partition_type="cpx"'
INTEL = 'uuid="u",pci_bdf="0000:17:00.0",node="n",kube_pod="p",kube_namespace="ml"'
XPUM2 = 'pci_bdf="0000:17:00.0",node="n",pod="p",namespace="ml"'
HAMI = 'namespace="ml",pod="p",container="server",device_uuid="GPU-0"'
GKE = (
    'accelerator_id="GPU-9",make="nvidia",model="nvidia-l4",monitored_resource="k8s_container",'
    'namespace_name="ml",pod_name="p",container_name="server",cluster_name="c",location="l"'
)
LEGACY = 'podnamespace="ml",podname="p",ctrname="server",deviceuuid="GPU-0"'

PAGES = {
    "gke utilisation": (
        f"kubernetes_io:container_accelerator_duty_cycle{{{GKE}}} 83\n",
        "gpu_utilization",
        83.0,
    ),
    "gke memory": (
        (
            f"kubernetes_io:container_accelerator_memory_used{{{GKE}}} 6\n"
            f"kubernetes_io:container_accelerator_memory_total{{{GKE}}} 24\n"
        ),
        "gpu_memory_utilization",
        25.0,
    ),
    "gke beside dcgm-exporter is one device": (
        (
            f"kubernetes_io:container_accelerator_memory_used{{{GKE}}} 6\n"
            'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-9",pod="p",namespace="ml",container="server"} 83\n'
        ),
        "gpu_count",
        1.0,
    ),
    "amd utilisation": (f"gpu_gfx_activity{{{SPX}}} 83\n", "gpu_utilization", 83.0),
    "amd with its prefix": (f"amd_gpu_gfx_activity{{{SPX}}} 83\n", "gpu_utilization", 83.0),
    "amd verbatim under the other name": (
        f"amd_gpu_gfx_activity{{{SPX}}} 83\n",
        "gpu_gfx_activity",
        83.0,
    ),
    "amd partition: the mean over its compute cores": (
        (
            f'gpu_gfx_busy_instantaneous{{{CPX},xcc_index="0"}} 20\n'
            f'gpu_gfx_busy_instantaneous{{{CPX},xcc_index="1"}} 40\n'
        ),
        "gpu_utilization",
        30.0,
    ),
    "amd partition: the board's activity is not its own": (
        f"gpu_gfx_activity{{{CPX}}} 83\n",
        "gpu_utilization",
        "metric_not_exported",
    ),
    "amd busy cores stand in for an activity that is not exported": (
        f'gpu_gfx_busy_instantaneous{{{SPX},xcc_index="0"}} 20\n',
        "gpu_utilization",
        20.0,
    ),
    "amd activity that is not a number is not replaced": (
        (
            f"gpu_gfx_activity{{{SPX}}} 4294967295\n"
            f'gpu_gfx_busy_instantaneous{{{SPX},xcc_index="0"}} 9\n'
        ),
        "gpu_utilization",
        "no_value",
    ),
    "amd MB are mebibytes": (
        f"gpu_total_vram{{{SPX}}} 196592\n",
        "gpu_memory_total_bytes",
        206141652992.0,
    ),
    "amd memory": (
        f"gpu_used_vram{{{SPX}}} 49148\ngpu_total_vram{{{SPX}}} 196592\n",
        "gpu_memory_utilization",
        25.0,
    ),
    "amd headroom": (
        f"gpu_used_vram{{{SPX}}} 1\ngpu_total_vram{{{SPX}}} 3\n",
        "gpu_memory_headroom_bytes",
        2097152.0,
    ),
    "amd blank": (f"gpu_used_vram{{{SPX}}} 4294967295\n", "gpu_memory_used_bytes", "no_value"),
    "amd power": (f"gpu_package_power{{{SPX}}} 131\n", "gpu_power_watts", 131.0),
    "amd power of MI2xx": (f"gpu_average_package_power{{{SPX}}} 90\n", "gpu_power_watts", 90.0),
    "amd temperature": (f"gpu_junction_temperature{{{SPX}}} 42\n", "gpu_temperature_celsius", 42.0),
    "amd memory controller": (
        f"gpu_umc_activity{{{SPX}}} 12\n",
        "gpu_memory_bandwidth_utilization",
        12.0,
    ),
    "intel utilisation": (f"xpum_engine_ratio{{{INTEL}}} 0.25\n", "gpu_utilization", 25.0),
    "intel percent where a ratio belongs": (
        f"xpum_engine_ratio{{{INTEL}}} 25\n",
        "gpu_utilization",
        "no_value",
    ),
    "intel repeats a series: the last counts": (
        f"xpum_engine_ratio{{{INTEL}}} 0.5\nxpum_engine_ratio{{{INTEL}}} 0.25\n",
        "gpu_utilization",
        25.0,
    ),
    "intel tiles without the device: their mean": (
        (
            f'xpum_engine_ratio{{{INTEL},sub_dev="0"}} 0.2\n'
            f'xpum_engine_ratio{{{INTEL},sub_dev="1"}} 0.4\n'
        ),
        "gpu_utilization",
        30.0,
    ),
    "intel tiles beside the device: the device": (
        f'xpum_engine_ratio{{{INTEL}}} 0.5\nxpum_engine_ratio{{{INTEL},sub_dev="0"}} 0.9\n',
        "gpu_utilization",
        50.0,
    ),
    "intel tiles beside the device that rests: the device": (
        f'xpum_engine_ratio{{{INTEL}}} 0\nxpum_engine_ratio{{{INTEL},sub_dev="0"}} 0.2\n',
        "gpu_utilization",
        0.0,
    ),
    "intel memory of tiles is added up": (
        (
            f'xpum_memory_used_bytes{{{INTEL},sub_dev="0"}} 1000\n'
            f'xpum_memory_used_bytes{{{INTEL},sub_dev="1"}} 500\n'
        ),
        "gpu_memory_used_bytes",
        1500.0,
    ),
    "intel memory share": (f"xpum_memory_ratio{{{INTEL}}} 0.5\n", "gpu_memory_utilization", 50.0),
    "intel temperature of the GPU, not of its memory": (
        (
            f'xpum_temperature_celsius{{{INTEL},location="mem"}} 80\n'
            f'xpum_temperature_celsius{{{INTEL},location="gpu"}} 60\n'
        ),
        "gpu_temperature_celsius",
        60.0,
    ),
    "xpum 2: all engines": (
        (
            f'hw_gpu_utilization_ratio{{{XPUM2},hw_gpu_task="copy-all"}} 0.9\n'
            f'hw_gpu_utilization_ratio{{{XPUM2},hw_gpu_task="all"}} 0.25\n'
        ),
        "gpu_utilization",
        25.0,
    ),
    "xpum 2: an engine of another kind is none": (
        f'hw_gpu_utilization_ratio{{{XPUM2},hw_gpu_task="copy-all"}} 0.9\n',
        "gpu_utilization",
        "pod_not_named",
    ),
    "xpum 2: memory of the device": (
        (
            f'hw_memory_usage_bytes{{{XPUM2},hw_memory_location="device"}} 25\n'
            f'hw_memory_usage_bytes{{{XPUM2},hw_memory_location="system"}} 99\n'
            f'hw_memory_size_bytes{{{XPUM2},hw_memory_location="device"}} 100\n'
        ),
        "gpu_memory_utilization",
        25.0,
    ),
    "hami: percent regardless of the name": (
        f"hami_container_device_utilization_ratio{{{HAMI}}} 40\n",
        "gpu_utilization",
        40.0,
    ),
    "hami: 1 is one percent": (
        f"hami_container_device_utilization_ratio{{{HAMI}}} 1\n",
        "gpu_utilization",
        1.0,
    ),
    "hami above 100": (
        f"hami_container_device_utilization_ratio{{{HAMI}}} 140\n",
        "gpu_utilization",
        "no_value",
    ),
    "hami legacy": (
        f"Device_utilization_desc_of_container{{{LEGACY}}} 99\n",
        "gpu_utilization",
        99.0,
    ),
    "hami memory of its limit": (
        (
            f"vGPU_device_memory_usage_in_bytes{{{LEGACY}}} 1000\n"
            f"vGPU_device_memory_limit_in_bytes{{{LEGACY}}} 4000\n"
        ),
        "gpu_memory_utilization",
        25.0,
    ),
    "hami: two virtual devices on one device are added up": (
        (
            f'hami_vgpu_memory_used_bytes{{{HAMI},vdevice_index="0"}} 1000\n'
            f'hami_vgpu_memory_used_bytes{{{HAMI},vdevice_index="1"}} 500\n'
        ),
        "gpu_memory_used_bytes",
        1500.0,
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_vendor_samples_become_neutral_metrics(name: str) -> None:
    page, metric, expected = PAGES[name]
    world = World(make_pod("p", gpus={"amd.com/gpu": 1}))
    world.scrape(page, 100.0)
    assert world.value("p", metric, 101.0) == expected


def test_a_repeated_sample_is_counted() -> None:
    world = World(make_pod("p"))
    world.scrape(f"xpum_engine_ratio{{{INTEL}}} 0.5\nxpum_engine_ratio{{{INTEL}}} 0.25\n", 100.0)
    assert world.count("duplicate_series") == 1


def test_a_hami_container_is_exact_and_names_its_series() -> None:
    world = World(make_pod("p"))
    world.scrape(f"hami_container_device_utilization_ratio{{{HAMI}}} 40\n", 100.0)
    (device,) = reading(world.read("p", "gpu_utilization", 101.0)).devices
    assert device.labels["attribution"] == "exact"
    assert device.formula == "hami_container_device_utilization_ratio"


def test_an_explanation_shows_the_labels_that_selected_a_sample() -> None:
    world = World(make_pod("p"))
    world.scrape(f'hw_gpu_utilization_ratio{{{XPUM2},hw_gpu_task="all"}} 0.25\n', 100.0)
    (device,) = reading(world.read("p", "gpu_utilization", 101.0)).devices
    assert device.formula == 'hw_gpu_utilization_ratio{hw_gpu_task="all"}'


def test_a_series_selected_by_labels_is_not_a_separate_metric() -> None:
    assert "hw_gpu_utilization_ratio" in CATALOG.series
    assert "hw_gpu_utilization_ratio" not in CATALOG.metrics


@pytest.mark.parametrize("name", [f.name for f in CATALOG.fields.values() if f.mig is Mig.BOARD])
def test_only_power_and_traffic_of_a_board_are_divided(name: str) -> None:
    field = CATALOG.fields[name]
    assert field.divisible is (field.unit.value in ("W", "mW", "bytes per second"))

"""Samples of every vendor's exporter are assigned to the right pod and device."""

from __future__ import annotations

import pytest

from tests.adapter.world import World, make_pod, reading, row

T = 1_700_000_000.0
AMD = (
    'gpu_gfx_activity{{gpu_id="{gpu}",gpu_partition_id="0",gpu_compute_partition_type="spx",'
    'gpu_uuid="{uuid}",hostname="{host}",pod="{pod}",namespace="{namespace}",'
    'container="{c}"}} {v}\n'
)
ZEROS = "00000000-0000-0000-0000-000000000000"


def amd(
    gpu: int, value: float, pod: str = "", *, uuid: str = "", host: str = "cb76105c40d0"
) -> str:
    namespace, container = ("ml", "server") if pod else ("", "")
    return AMD.format(
        gpu=gpu, uuid=uuid, host=host, pod=pod, namespace=namespace, c=container, v=value
    )


@pytest.mark.parametrize("uuid", ["", ZEROS], ids=["no uuid", "zeros"])
def test_amd_devices_without_a_uuid_are_identified_by_node_and_index(uuid: str) -> None:
    world = World(make_pod("llm", gpus={"amd.com/gpu": 2}, node="n1"))
    page = amd(0, 20, "llm", uuid=uuid) + amd(1, 60, "llm", uuid=uuid) + amd(2, 99, uuid=uuid)
    world.scrape(page, T, node="n1")
    assert world.value("llm", "gpu_utilization", T) == 40.0
    assert world.value("llm", "gpu_count", T) == 2.0


def test_an_exporter_that_restarts_in_another_container_reports_the_same_devices() -> None:
    world = World(make_pod("llm", gpus={"amd.com/gpu": 1}, node="n1"))
    world.scrape(amd(0, 20, "llm", host="cb76105c40d0"), T, node="n1")
    world.scrape(amd(0, 20, "llm", host="d00d00d00d00"), T + 5, node="n1")
    assert world.value("llm", "gpu_count", T + 5) == 1.0


def test_amd_partitions_are_separate_devices_of_their_pods() -> None:
    cut = (
        'gpu_gfx_busy_instantaneous{{gpu_id="0",gpu_partition_id="{part}",'
        'gpu_compute_partition_type="cpx",gpu_uuid="",hostname="n1",xcc_index="0",'
        'pod="{pod}",namespace="ml",container="c"}} {value}\n'
    )
    world = World(
        make_pod("a", gpus={"amd.com/gpu": 1}), make_pod("b", gpus={"amd.com/gpu": 1}, uid="b")
    )
    world.scrape(
        cut.format(part=0, pod="a", value=10) + cut.format(part=1, pod="b", value=90), T, node="n1"
    )
    assert world.value("a", "gpu_utilization", T) == 10.0
    assert world.value("b", "gpu_utilization", T) == 90.0
    assert world.value("b", "gpu_utilization", T, "mig_profile=cpx") == 90.0


def test_intel_pod_labels_are_read_and_an_idle_device_is_unassigned() -> None:
    world = World(make_pod("llm", gpus={"gpu.intel.com/i915": 1}, node="n1"))
    line = 'xpum_engine_ratio{{uuid="{uuid}",dev_name="Flex 140",node="n1"{pod}}} {value}\n'
    mine = ',kube_pod="llm",kube_namespace="ml",kube_container="server"'
    world.scrape(
        line.format(uuid="u-1", pod=mine, value=0.5) + line.format(uuid="u-2", pod="", value=0.9),
        T,
        node="n1",
    )
    assert world.value("llm", "gpu_utilization", T) == 50.0


def test_changing_hami_labels_do_not_create_devices() -> None:
    line = (
        'Device_utilization_desc_of_container{{context="{n}",data="{n}",ctrname="c",'
        'deviceuuid="GPU-1",podname="llm",podnamespace="ml",vdeviceid="0",zone="vGPU"}} {value}\n'
    )
    world = World(make_pod("llm", gpus={"nvidia.com/gpu": 1}))
    for step in range(5):
        world.scrape(line.format(n=step, value=50), T + step)
    assert world.value("llm", "Device_utilization_desc_of_container", T + 4) == 50.0
    assert [d.device for d in reading(world.read("llm", "gpu_count", T + 4)).devices] == ["GPU-1"]


def test_several_vendors_work_in_one_cluster() -> None:
    world = World(
        make_pod("nvidia", node="n1"),
        make_pod("amd", gpus={"amd.com/gpu": 1}, node="n2"),
        make_pod("intel", gpus={"gpu.intel.com/i915": 1}, node="n3"),
    )
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 10, "nvidia"), T, origin="a", node="n1")
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.9, uuid="GPU-2"), T, origin="b", node="n4")
    world.scrape(amd(0, 20, "amd"), T, origin="c", node="n2")
    intel = 'xpum_engine_ratio{uuid="u",kube_pod="intel",kube_namespace="ml"} 0.3\n'
    world.scrape(intel, T, origin="d", node="n3")
    values = {name: world.value(name, "gpu_utilization", T) for name in ("nvidia", "amd", "intel")}
    assert values == {"nvidia": 10.0, "amd": 20.0, "intel": 30.0}
    assert world.count("conflict") == 0


def test_device_0_on_two_nodes_is_two_devices() -> None:
    world = World(
        make_pod("a", gpus={"amd.com/gpu": 1}, node="n1"),
        make_pod("b", gpus={"amd.com/gpu": 1}, node="n2", uid="b"),
    )
    world.scrape(amd(0, 20, "a", host="localhost"), T, origin="a", node="n1")
    world.scrape(amd(0, 60, "b", host="localhost"), T, origin="b", node="n2")
    assert world.value("a", "gpu_utilization", T) == 20.0
    assert world.value("b", "gpu_utilization", T) == 60.0
    assert world.count("conflict") == 0


def test_an_unassigned_device_with_the_exporter_pod_is_left_out_and_counted() -> None:
    exporter = make_pod("dcgm-exporter-x", namespace="gpu", gpus={})
    world = World(exporter, make_pod("llm"))
    target = 'instance="10.0.0.7:9400",job="dcgm-exporter",service="dcgm-exporter"'
    own = f'{target},pod="dcgm-exporter-x",namespace="gpu",container="exporter"'
    world.scrape(
        row("DCGM_FI_DEV_GPU_UTIL", 70, "llm", more=target)
        + row("DCGM_FI_DEV_GPU_UTIL", 5, uuid="GPU-9", more=own),
        T,
    )
    assert world.value("llm", "gpu_utilization", T) == 70.0
    assert world.count("self_attribution") == 1


def test_lingering_samples_of_a_finished_pod_are_left_out_and_counted() -> None:
    world = World(make_pod("done", phase="Succeeded", ready=False))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "done"), T)
    assert world.value("done", "gpu_utilization", T) == "finished_pod"
    assert world.count("finished_pod") == 1


def test_a_pod_keeps_its_value_while_its_labels_come_and_go() -> None:
    world = World(make_pod("llm"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T)
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 72), T + 5)
    assert world.value("llm", "gpu_utilization", T + 5) == 70.0


def test_if_a_label_has_two_spellings_the_devices_label_counts() -> None:
    world = World(make_pod("llm"))
    line = (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",pod="llm",namespace="ml",gpu="mine",'
        'UUID="x"} 70\n'
    )
    world.scrape(line, T)
    assert world.value("llm", "gpu_utilization", T, "device=GPU-0") == 70.0
    assert world.count("duplicate_label") == 1


def test_a_pod_label_does_not_replace_another_pod() -> None:
    # dcgm-exporter up to 4.8.1 with --kubernetes-enable-pod-labels.
    world = World(make_pod("victim"), make_pod("tenant", uid="t"))
    forged = 'pod="victim",namespace="ml"'
    world.scrape(
        row("DCGM_FI_DEV_GPU_UTIL", 90, "victim")
        + row("DCGM_FI_DEV_GPU_UTIL", 2, "tenant", uuid="GPU-1", more=forged),
        T,
    )
    assert world.value("victim", "gpu_utilization", T) == 90.0
    assert world.value("tenant", "gpu_utilization", T) == 2.0
    assert world.count("duplicate_label") == 1


def test_the_uid_of_another_pod_is_a_mismatch_and_an_empty_uid_is_not() -> None:
    world = World(make_pod("llm"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm", more='pod_uid=""'), T)
    assert world.value("llm", "gpu_utilization", T) == 70.0
    world = World(make_pod("llm"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm", more='pod_uid="other"'), T)
    assert world.value("llm", "gpu_utilization", T) == "pod_uid_mismatch"

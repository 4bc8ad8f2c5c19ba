"""``gpus``: every device of the snapshot, with its own values."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.errors import Unavailable
from tests.adapter.answers.view.viewer import Viewer, numbers, reasons
from tests.adapter.pages.scene import Scene, every_scene
from tests.adapter.pages.test_pages import SCENES
from tests.adapter.world import World, make_pod, own_page, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
NODE = "node-1"
TWO = "".join(
    f'{UTIL}{{gpu="{gpu}",UUID="GPU-{gpu}",modelName="NVIDIA H100"{pod}}} {value}\n'
    for gpu, pod, value in (
        ("0", ',container="server",namespace="ml",pod="llm-0"', 80),
        ("1", "", 5),
    )
)


def test_assigned_and_unassigned_devices_are_listed_with_their_own_values() -> None:
    world = World(make_pod("llm-0", node=NODE), nodes={NODE: {}})
    world.scrape(TWO, 100.0, node=NODE)
    gpus = Viewer(world).gpus
    assert gpus.names() == ["node-1.gpu0", "node-1.gpu1"]
    assert gpus.row("node-1.gpu0", 102.0) == {
        "Node": NODE,
        "GPU": "0",
        "Model": "H100",
        "Util": "80%",
        "Pods": "ml/llm-0",
        "Age": "2s",
        "UUID": "GPU-0",
        "Exporter": "http://exporter",
    }
    idle = gpus.get("node-1.gpu1", 102.0)
    assert numbers(idle, "values") == {"gpu_utilization": 5}
    assert "pods" not in idle


def test_an_object_says_which_pod_has_the_device_and_how_that_is_known() -> None:
    world = World(make_pod("llm-0", node=NODE))
    world.scrape(row(UTIL, 80, "llm-0"), 100.0, node=NODE)
    (gpu,) = Viewer(world).gpus.every(100.0)
    assert gpu["pods"] == [
        {"namespace": "ml", "name": "llm-0", "container": "server", "evidence": "sample_name"}
    ]


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("llm-0", node=NODE, phase="Succeeded"),
        make_pod("llm-0", node="node-2"),
        make_pod("llm-0", node=NODE, gpus={}),
        make_pod("llm-0", node=NODE, born=200.0),
        make_pod("another", node=NODE),
    ],
    ids=["finished", "moved", "without a GPU", "a successor of the same name", "gone"],
)
def test_a_pod_that_cannot_have_the_device_is_not_listed(pod: Pod) -> None:
    world = World(pod)
    world.scrape(row(UTIL, 80, "llm-0"), 100.0, node=NODE)
    (gpu,) = Viewer(world).gpus.every(100.0)
    assert "pods" not in gpu
    assert numbers(gpu, "values") == {"gpu_utilization": 80}


def test_a_board_is_shown_by_its_mig_instances() -> None:
    world = World(make_pod("p", node=NODE))
    world.scrape(own_page("dcgm/3.1-mig-attributed.prom"), 100.0, node=NODE)
    gpus = Viewer(world).gpus
    names = [f"{NODE}.gpu0.mig{instance}" for instance in (2, 9, 12)]
    assert gpus.names() == names
    shown = gpus.row(names[1], 100.0)
    assert (shown["GPU"], shown["Util"], shown["Mem"], shown["Sharing"]) == (
        "0.mig9",
        "97%",
        "7.8/9.5Gi",
        "mig 1g.10gb",
    )
    gpu = gpus.get(names[1], 100.0)
    power = next(value for value in gpu["values"] if value["metric"] == "gpu_power_watts")
    assert power["of"] == "board"
    assert gpu["metadata"]["labels"]["mig-profile"] == "1g.10gb"


def test_a_shared_gpu_names_every_pod_that_has_it() -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    pods = [make_pod(f"llm-{i}", node=NODE, uid=str(i)) for i in range(3)]
    world = World(*pods, nodes={NODE: labels | {"nvidia.com/gpu.count": "1"}})
    world.scrape(row(UTIL, 80, "llm-1"), 100.0, node=NODE)
    gpus = Viewer(world).gpus
    shown = gpus.row(f"{NODE}.gpu0", 100.0)
    assert (shown["Pods"], shown["Sharing"]) == ("ml/llm-0 +2", "time-slicing")
    gpu = gpus.get(f"{NODE}.gpu0", 100.0)
    assert gpu["sharing"] == {
        "strategy": "time-slicing",
        "evidence": "node_replicas",
        "pods": 3,
        "policies": ["copy"],
    }
    evidence = {pod["name"]: pod["evidence"] for pod in gpu["pods"]}
    assert evidence == {
        "llm-0": "only_shared_device",
        "llm-1": "sample_name",
        "llm-2": "only_shared_device",
    }
    world.scrape(row(UTIL, 80, "llm-2"), 105.0, node=NODE)
    gpu = gpus.get(f"{NODE}.gpu0", 105.0)
    assert {pod["name"]: pod["evidence"] for pod in gpu["pods"]}["llm-1"] == "earlier_sample"


@pytest.mark.parametrize("scene", every_scene(SCENES))
def test_the_pods_of_a_shared_gpu_are_those_that_get_a_part_of_it(scene: Scene) -> None:
    world, now = scene.build(), scene.now
    viewer = Viewer(world)
    listed = {
        (pod["namespace"], pod["name"], gpu["uuid"])
        for gpu in viewer.gpus.every(now)
        for pod in gpu.get("pods", ())
    }
    measured = {
        (pod["metadata"]["namespace"], pod["metadata"]["name"], device["device"])
        for pod in viewer.pods.every(now)
        for device in pod.get("devices", ())
        if device.get("values") and device["evidence"] != "server_page"
    }
    assert measured <= listed


def test_a_doubted_value_is_left_out_and_its_reason_is_shown() -> None:
    page = row(UTIL, 0) + row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.9)
    world = World(make_pod("p", node=NODE), options=TelemetryOptions(collect_interval=1.0))
    for time in range(100, 140, 5):
        world.scrape(page, float(time), node=NODE)
    gpus = Viewer(world).gpus
    assert "Util" not in gpus.row(f"{NODE}.gpu0", 136.0)
    (gpu,) = gpus.every(136.0)
    assert reasons(gpu, "leftOut")["gpu_utilization"] == "util_zero_while_active"


def test_a_silent_exporters_devices_stay_with_their_age_and_without_values() -> None:
    world = World(make_pod("p", node=NODE))
    world.scrape(row(UTIL, 80), 100.0, node=NODE)
    gpus = Viewer(world).gpus
    shown = gpus.row(f"{NODE}.gpu0", 300.0)
    assert shown["Age"] == "3m20s"
    assert "Util" not in shown
    (gpu,) = gpus.every(300.0)
    assert reasons(gpu, "leftOut") == {"gpu_utilization": "stale"}
    assert "values" not in gpu


def test_labels_and_fields_select_by_node_model_and_sharing() -> None:
    labels = {
        "topology.kubernetes.io/zone": "eu-1a",
        "node.kubernetes.io/instance-type": "p5",
        "kubernetes.io/hostname": "h",
    }
    world = World(make_pod("p", node=NODE), nodes={NODE: labels})
    world.scrape(row(UTIL, 80), 100.0, node=NODE)
    gpus = Viewer(world).gpus
    (gpu,) = gpus.every(100.0)
    assert gpu["metadata"]["labels"] == {
        "node": NODE,
        "vendor": "nvidia",
        "model": "NVIDIA-H100",
        "sharing": "exclusive",
        "topology.kubernetes.io/zone": "eu-1a",
        "node.kubernetes.io/instance-type": "p5",
    }
    assert gpus.fields(f"{NODE}.gpu0") == {
        "node": NODE,
        "model": "NVIDIA H100",
        "sharing": "exclusive",
    }


def test_a_gpu_that_only_a_tenants_server_describes_is_not_listed() -> None:
    world = World(make_pod("triton", node=NODE))
    world.scrape(own_page("servers/triton.prom"), 100.0, pod=("ml", "triton"), serves=True)
    assert Viewer(world).gpus.names() == []


def test_an_unknown_name_has_no_object() -> None:
    gpus = Viewer(World(make_pod("p"))).gpus
    assert gpus.find("node-1.gpu0", 100.0) is None
    assert gpus.fields("node-1.gpu0") == {}


def test_nothing_is_answered_before_the_pods_are_known() -> None:
    world = World()
    world.index.synced = False
    with pytest.raises(Unavailable, match="have not been listed yet"):
        Viewer(world).gpus.listed()


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (row("DCGM_FI_DEV_XID_ERRORS", 79), "XID error 79"),
        (row("DCGM_FI_DEV_XID_ERRORS", 0), None),
        # An error of the application, after which the device plugin still offers the device.
        (row("DCGM_FI_DEV_XID_ERRORS", 31), None),
        ('gpu_health{gpu_id="0",gpu_uuid="u-0",hostname="node-1"} 0\n', "gpu_health is 0"),
        ('gpu_health{gpu_id="0",gpu_uuid="u-0",hostname="node-1"} 1\n', None),
    ],
)
def test_a_device_that_its_exporter_reports_sick_says_why(page: str, why: str | None) -> None:
    world = World(nodes={NODE: {}})
    busy = row(UTIL, 5) if "DCGM" in page else page.replace("gpu_health", "gpu_gfx_activity")
    world.scrape(page + busy, 100.0, node=NODE)
    (gpu,) = Viewer(world).gpus.every(100.0)
    assert gpu.get("unhealthy") == why

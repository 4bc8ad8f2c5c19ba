"""Since when devices, pods and workloads are idle."""

from __future__ import annotations

from adapter.tools.idle.find import idle_devices
from adapter.tools.idle.prices import PriceList
from apiservice.runtime.steps import at_once
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, make_pod, row

NODE = "node-1"
PAGE = "".join(
    row("DCGM_FI_DEV_GPU_UTIL", 0, pod, uuid=uuid)
    + row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0, pod, uuid=uuid)
    + row("DCGM_FI_DEV_POWER_USAGE", 60, pod, uuid=uuid)
    for pod, uuid in (("llm-0", "GPU-0"), ("llm-1", "GPU-1"))
)


def _idle(born: float = 0.0) -> World:
    world = World(*[make_pod(f"llm-{i}", node=NODE, born=born, uid=str(i)) for i in range(2)])
    for time in range(100, 200, 5):
        world.scrape(PAGE, float(time), node=NODE)
    return world


def test_an_idle_device_its_pod_and_its_workload_say_since_when() -> None:
    viewer = Viewer(_idle())
    idle_gpu = next(gpu for gpu in viewer.gpus.every(196.0) if gpu["uuid"] == "GPU-0")
    pod = viewer.pods.get("llm-0", 196.0)
    workload = viewer.workloads.get("pod.llm-0", 196.0)
    assert idle_gpu["idleSince"] == pod["idleSince"] == workload["idleSince"]
    assert viewer.workloads.row("pod.llm-0", 196.0)["Idle"].endswith("s")  # type: ignore[union-attr] # a text
    assert "Idle-Since" in viewer.gpus.row(idle_gpu["metadata"]["name"], 196.0)


def test_a_pod_is_not_idle_for_longer_than_it_exists() -> None:
    pod = Viewer(_idle(born=150.0)).pods.get("llm-0", 196.0)
    assert pod["idleSince"] == "1970-01-01T00:02:30Z"


def test_work_ends_idleness_at_once() -> None:
    world = _idle()
    world.scrape(PAGE.replace("} 0\n", "} 50\n", 1), 200.0, node=NODE)
    viewer = Viewer(world)
    assert "idleSince" not in viewer.pods.get("llm-0", 200.0)
    assert "idleSince" in viewer.pods.get("llm-1", 200.0)


def test_past_the_age_limit_nothing_is_known_to_be_idle() -> None:
    viewer = Viewer(_idle())
    assert "idleSince" not in viewer.pods.get("llm-0", 400.0)
    assert all("idleSince" not in gpu for gpu in viewer.gpus.every(400.0))


def _held_by_placeholders() -> World:
    pods = [
        make_pod(f"llm-{i}", node=NODE, uid=str(i), placeholder=i == 0, owner=None)
        for i in range(2)
    ]
    world = World(*pods)
    for time in range(100, 200, 5):
        world.scrape(PAGE, float(time), node=NODE)
    return world


def test_the_gpu_of_a_placeholder_is_free_and_not_idle() -> None:
    viewer = Viewer(_held_by_placeholders())
    gpus = {gpu["uuid"]: gpu for gpu in viewer.gpus.every(196.0)}
    assert "idleSince" not in gpus["GPU-0"]
    assert "idleSince" in gpus["GPU-1"]
    pod = viewer.pods.get("llm-0", 196.0)
    assert pod["placeholder"] is True
    assert "idleSince" not in pod
    assert "idleSince" not in pod["devices"][0]
    assert "placeholder" not in viewer.pods.get("llm-1", 196.0)
    assert "idleSince" not in viewer.workloads.get("pod.llm-0", 196.0)


def test_idle_lists_and_prices_no_placeholder() -> None:
    viewer = Viewer(_held_by_placeholders())
    pods = [viewer.pods.get(name, 196.0) for name in ("llm-0", "llm-1")]
    devices, held, *_ = idle_devices(pods, PriceList({"A100": 2.0}), "team", 196.0, 0.0)
    assert [(device.uuid, device.pods) for device in devices] == [("GPU-1", ("llm-1",))]
    assert held == 1, "a GPU that only holds room is not held by work"


def test_the_gauge_counts_the_gpu_of_a_placeholder_as_free() -> None:
    snapshot = _held_by_placeholders().store.snapshot
    held = {
        device: by_work for device, (_, by_work) in at_once(snapshot.idle_devices(196.0)).items()
    }
    assert held == {"GPU-0": False, "GPU-1": True}

"""``gpupods``: each pod that holds a GPU, or serves a page, and the explanation of its values."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from adapter.answers.view.podvalues import AskedPod
from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.cluster.pod import Owner, PodRef
from adapter.pipeline.devices.readpages import PageState
from apiservice.labels.selector import EVERYTHING
from tests.adapter.answers.view.viewer import Viewer, numbers, reasons
from tests.adapter.pages.scene import Scene, every_scene
from tests.adapter.pages.test_pages import SCENES
from tests.adapter.world import World, make_pod, own_page, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
NODE = "node-1"
OWNER = Owner("apps/v1", "ReplicaSet", "llm-abc")


def test_a_pod_with_a_claim_is_listed_once_a_sample_names_it() -> None:
    world = World(
        make_pod("dra", node=NODE, gpus={}, claims=True, owner=OWNER),
        make_pod("nic", node=NODE, gpus={}, claims=True),
        make_pod("own", node=NODE, gpus={}, extended={"acme.com/accelerator": 1}),
    )
    viewer = Viewer(world)
    assert viewer.pods.names() == []
    page = row(UTIL, 80, "dra") + row(UTIL, 30, "own", uuid="GPU-1")
    world.scrape(page, 100.0, node=NODE)
    assert viewer.pods.names() == ["dra", "own"]
    assert viewer.pods.row("dra", 102.0)["Util"] == "80%"
    assert viewer.pods.row("own", 102.0)["How"] == "exact"
    assert numbers(viewer.pods.get("own", 102.0))["gpu_utilization"] == 30
    assert viewer.pods.find("nic", 102.0) is None
    assert len(viewer.workloads.listed()) == 2


def test_a_pod_that_holds_a_gpu_is_listed_with_its_value() -> None:
    world = World(make_pod("llm-0", node=NODE), make_pod("web", node=NODE, gpus={}))
    world.scrape(row(UTIL, 80, "llm-0") + row(USED, 2048, "llm-0"), 100.0, node=NODE)
    pods = Viewer(world).pods
    assert pods.names() == ["llm-0"]
    assert pods.row("llm-0", 102.0) == {
        "Util": "80%",
        "Mem": "2Gi",
        "Devices": "1",
        "How": "exact",
        "Age": "2s",
        "Node": NODE,
        "Device-IDs": "GPU-0",
        "Series": UTIL,
        "Window": "30s",
    }


def test_lists_are_sorted_and_a_namespace_shows_only_its_own_pods() -> None:
    pods = [make_pod(n, namespace=space) for space in ("b", "a") for n in ("y", "x")]
    shelf = Viewer(World(*pods, make_pod("done", namespace="a", phase="Failed"))).pods
    assert [tuple(key) for key in shelf.listed()] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
        ("b", "y"),
    ]
    assert [tuple(key) for key in shelf.listed("b")] == [("b", "x"), ("b", "y")]
    assert shelf.listed("c") == []


def test_a_pod_without_a_value_says_why() -> None:
    world = World(make_pod("llm-0", node=NODE, phase="Pending", labels={"app": "llm"}))
    pods = Viewer(world).pods
    assert pods.row("llm-0", 100.0) == {"Why-Not": "pod_not_running", "Node": NODE}
    gpu_pod = pods.get("llm-0", 100.0)
    assert gpu_pod["metadata"]["labels"] == {"app": "llm"}
    assert (gpu_pod["measured"], gpu_pod["reason"]["reason"]) == (False, "pod_not_running")
    assert "metrics" not in gpu_pod
    assert set(reasons(gpu_pod)) == {
        metric.name for metric in world.catalog.neutral if metric.scope is Scope.DEVICE
    }
    assert pods.fields("llm-0") == {"node": NODE, "phase": "Pending", "measured": "false"}


def test_the_object_explains_the_value() -> None:
    pod = make_pod("llm-0", node=NODE, owner=OWNER, labels={"pod-template-hash": "abc"}, born=50.0)
    world = World(pod)
    world.scrape(row(UTIL, 87.5, "llm-0"), 100.0, node=NODE)
    gpu_pod = Viewer(world).pods.get("llm-0", 100.0)
    assert gpu_pod["metadata"]["creationTimestamp"] == "1970-01-01T00:00:50Z"
    assert gpu_pod["workload"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    assert gpu_pod["requests"] == {"nvidia.com/gpu": 1}
    assert gpu_pod["metrics"][0] == {
        "metric": "gpu_utilization",
        "value": "87500m",
        "number": 87.5,
        "unit": "percent",
        "time": "1970-01-01T00:01:40Z",
        "windowSeconds": 30,
        "series": [UTIL],
    }
    (device,) = gpu_pod["devices"]
    values, left_out = device.pop("values"), device.pop("leftOut")
    assert device == {
        "device": "GPU-0",
        "gpu": "node-1.gpu0",
        "model": "NVIDIA H100",
        "node": NODE,
        "exporter": "http://exporter",
        "container": "server",
        "evidence": "sample_name",
        "sampleTime": "1970-01-01T00:01:40Z",
        "attribution": "exact",
    }
    assert {"gpu_utilization", "gpu_utilization_of_request"} <= set(values[0]["metrics"])
    assert (values[0]["number"], values[0]["series"]) == (87.5, UTIL)
    assert reasons(gpu_pod)["gpu_sm_activity"] == "metric_not_exported"
    assert "gpu_sm_activity" in left_out[0]["metrics"]


def test_a_shared_device_states_policy_evidence_and_sharers() -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "2"}
    pods = [make_pod(f"llm-{i}", node=NODE, uid=str(i)) for i in range(2)]
    sharing = SharingOptions(policy=SharingPolicy.EQUAL)
    world = World(*pods, nodes={NODE: labels | {"nvidia.com/gpu.count": "1"}}, sharing=sharing)
    world.scrape(row(UTIL, 80, "llm-1"), 100.0, node=NODE)
    shelf = Viewer(world).pods
    assert shelf.row("llm-0", 100.0)["How"] == "split"
    gpu_pod = shelf.get("llm-0", 100.0)
    (device,) = gpu_pod["devices"]
    assert device["evidence"] == "only_shared_device"
    assert device["sharing"] == {"policy": "equal", "evidence": "node_replicas", "sharers": 2}
    assert (device["attribution"], device["values"][0]["number"]) == ("split", 40)
    assert device["gpu"] == f"{NODE}.gpu0"


def test_a_device_that_only_the_pods_own_server_reports_names_that_page() -> None:
    world = World(make_pod("triton-0", node=NODE))
    page = 'nv_gpu_utilization{gpu_uuid="GPU-T"} 0.25\n'
    world.scrape(page, 100.0, origin="http://triton", pod=("ml", "triton-0"), serves=True)
    (device,) = Viewer(world).pods.get("triton-0", 101.0)["devices"]
    assert (device["device"], device["evidence"]) == ("ml/triton-0/GPU-T", "server_page")
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 80, "triton-0"), 102.0, node=NODE)
    (device,) = Viewer(world).pods.get("triton-0", 103.0)["devices"]
    assert (device["device"], device["evidence"]) == ("GPU-0", "sample_name")


def test_another_namespaces_pod_is_never_named() -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "2"}
    secret = make_pod("secret-name", namespace="secret-space", node=NODE, uid="1")
    world = World(make_pod("llm-0", node=NODE), secret, nodes={NODE: labels})
    page = row(UTIL, 80, "llm-0") + row(UTIL, 80, "secret-name").replace('"ml"', '"secret-space"')
    world.scrape(page, 100.0, node=NODE)
    gpu_pod = Viewer(world).pods.get("llm-0", 100.0)
    assert gpu_pod["devices"][0]["sharing"]["sharers"] == 2
    assert "secret" not in str(gpu_pod)


def test_a_device_that_was_left_out_is_shown_with_its_reason() -> None:
    page = row(UTIL, 80, "llm-0") + row(UTIL, 10, "llm-0", uuid="GPU-1").replace(
        'gpu="0"', 'gpu="1"'
    )
    pod = make_pod("llm-0", node=NODE, gpus={"nvidia.com/gpu": 2})
    world = World(pod)
    world.scrape(page, 100.0, node=NODE)
    world.scrape(row(UTIL, 80, "llm-0"), 150.0, node=NODE)
    shelf = Viewer(world).pods
    assert shelf.row("llm-0", 170.0)["Devices"] == "1/2"
    gpu_pod = shelf.get("llm-0", 170.0)
    assert gpu_pod["metrics"][0]["partial"] is True
    old = next(device for device in gpu_pod["devices"] if device["device"] == "GPU-1")
    assert "values" not in old
    assert reasons(old, "leftOut")["gpu_utilization"] == "stale"


def test_a_server_without_a_gpu_is_listed_with_its_queue() -> None:
    world = World(make_pod("vllm-0", node=NODE, gpus={}))
    page = own_page("servers/vllm-v1.prom")
    world.scrape(page, 100.0, pod=("ml", "vllm-0"), serves=True)
    shelf = Viewer(world).pods
    assert shelf.names() == ["vllm-0"]
    shown = shelf.row("vllm-0", 101.0)
    assert {"Waiting", "Running", "Age", "Series"} <= shown.keys()
    assert shown.keys().isdisjoint({"Util", "Mem", "Devices", "How", "Why-Not"})
    gpu_pod = shelf.get("vllm-0", 101.0)
    assert gpu_pod["measured"] is True
    assert "devices" not in gpu_pod
    (part,) = gpu_pod["server"]
    assert "model_name=" in part["part"]
    assert part["values"][0]["metrics"] == ["inference_requests_waiting"]
    assert all(name.startswith("inference_") for name in numbers(gpu_pod))


def test_what_a_server_sees_of_a_gpu_that_an_exporter_describes_is_not_a_second_device() -> None:
    world = World(make_pod("triton-0", node=NODE))
    page = own_page("servers/triton.prom")
    world.scrape(page, 100.0, origin="http://triton", pod=("ml", "triton-0"), serves=True)
    world.scrape(row(UTIL, 80, "triton-0"), 102.0, node=NODE)
    (device,) = Viewer(world).pods.get("triton-0", 103.0)["devices"]
    assert (device["device"], device["evidence"]) == ("GPU-0", "sample_name")


def test_a_gateway_shows_its_own_queue_and_a_server_no_metric_of_gateways() -> None:
    world = World(make_pod("epp-0", node=NODE, gpus={}), make_pod("vllm-0", node=NODE, gpus={}))
    picker = 'llm_d_epp_flow_control_queue_size{inference_pool="chat",priority="0"} 7\n'
    picker += 'llm_d_epp_request_running{model_name="m",priority="0"} 5\n'
    world.scrape(picker, 100.0, origin="http://epp", pod=("ml", "epp-0"), serves=True)
    page = own_page("servers/vllm-v1.prom")
    world.scrape(page, 100.0, origin="http://vllm", pod=("ml", "vllm-0"), serves=True)
    shelf = Viewer(world).pods
    shown = shelf.row("epp-0", 101.0)
    assert (shown["Waiting"], shown["Running"]) == ("7", "5")
    assert "inference_gateway" in json.dumps(shelf.get("epp-0", 101.0))
    assert "inference_gateway" not in json.dumps(shelf.get("vllm-0", 101.0))


def test_a_server_whose_page_is_gone_says_why() -> None:
    world = World(make_pod("vllm-0", node=NODE, gpus={}))
    page = own_page("servers/vllm-v1.prom")
    world.scrape(page, 100.0, pod=("ml", "vllm-0"), serves=True)
    shown = Viewer(world).pods.row("vllm-0", 300.0)
    assert shown == {"Why-Not": "stale", "Node": NODE}


class Failing:
    """A source whose server pages fail."""

    of_store = False

    def on_node(self, node: str) -> Sequence[PageState]:
        return ()

    def of_pod(self, pod: PodRef) -> Sequence[PageState]:
        return [PageState("http://10.0.0.9:8000/metrics", pod, 0.0, "connection refused")]


def test_a_server_page_that_was_never_read_is_explained_beside_the_value_of_the_gpu() -> None:
    world = World(make_pod("llm-0", node=NODE), make_pod("batch-0", node=NODE))
    world.scrape(row(UTIL, 87, "llm-0") + row(UTIL, 5, "batch-0", uuid="GPU-1"), 100.0)
    silent = Viewer(world).pods.get("llm-0", 100.0)
    assert "inference_requests_waiting" not in reasons(silent)
    world.store.pages = Failing()
    world.scrape(row(UTIL, 87, "llm-0"), 105.0)
    gpu_pod = Viewer(world).pods.get("llm-0", 105.0)
    assert (gpu_pod["measured"], numbers(gpu_pod)["gpu_utilization"]) == (True, 87)
    assert reasons(gpu_pod)["inference_requests_waiting"] == "server_down"
    assert "inference_gateway_requests_waiting" not in reasons(gpu_pod)
    (down,) = [absence for absence in gpu_pod["absent"] if absence["reason"] == "server_down"]
    assert down["message"].endswith("has never answered: connection refused")


@pytest.mark.parametrize("scene", every_scene(SCENES))
def test_objects_and_cells_say_what_the_metrics_api_says(scene: Scene) -> None:
    world, now = scene.build(), scene.now
    snapshot, shelf = world.store.snapshot, Viewer(world).pods
    for key in shelf.listed():
        pod = world.pods[PodRef(*key)]
        answers = {
            metric.name: snapshot.pod(pod, metric.name, EVERYTHING, now)
            for metric in world.catalog.neutral
        }
        gpu_pod = shelf.get(key.name, now, key.namespace)
        expected = {
            name: pytest.approx(answer.value, abs=0.001)
            for name, answer in answers.items()
            if isinstance(answer, Reading)
        }
        assert numbers(gpu_pod) == expected
        missing = {
            name: str(answer.reason)
            for name, answer in answers.items()
            if not isinstance(answer, Reading) and name in reasons(gpu_pod)
        }
        assert reasons(gpu_pod) == missing
        shown = shelf.row(key.name, now, key.namespace)
        assert ("Util" in shown) == ("gpu_utilization" in expected)
        if pod.holds_gpu and not pod.finished:
            asked = AskedPod(snapshot, pod, now)
            assert asked.memory(asked.reading("gpu_utilization")) == asked.value(
                "gpu_memory_used_bytes"
            )
        assert ("Why-Not" in shown) is not gpu_pod["measured"]


def test_an_unknown_pod_and_one_without_a_gpu_have_no_object() -> None:
    shelf = Viewer(World(make_pod("web", gpus={}))).pods
    assert shelf.find("web", 100.0) is None
    assert shelf.find("nobody", 100.0) is None
    assert shelf.fields("nobody") == {}


def test_an_idle_pod_shows_since_when() -> None:
    world = World(make_pod("llm-0", node=NODE, born=500.0))
    for time in range(0, 900, 5):
        world.scrape(row(UTIL, 0, "llm-0" if time >= 400 else ""), float(time), node=NODE)
    viewer = Viewer(world)
    gpu_pod = viewer.pods.get("llm-0", 900.0)
    assert gpu_pod["idleSince"] == "1970-01-01T00:08:20Z", "it has the device since its start only"
    assert gpu_pod["devices"][0]["idleSince"] == "1970-01-01T00:00:00Z"
    world.scrape(row(UTIL, 30, "llm-0"), 905.0, node=NODE)
    assert "idleSince" not in viewer.pods.get("llm-0", 906.0)


def test_a_list_is_made_again_only_after_a_change_of_its_pods() -> None:
    world = World(*[make_pod(f"llm-{i}") for i in range(1000)])
    shelf = Viewer(world).pods
    first = list(shelf.provider.keys("ml"))
    assert len(list(shelf.provider.keys("ml"))) < len(first)
    world.put(make_pod("a-new-one"))
    assert shelf.names("ml")[0] == "a-new-one"
    world.put(make_pod("a-new-one", phase="Succeeded"))
    assert shelf.names("ml")[0] == "llm-0"

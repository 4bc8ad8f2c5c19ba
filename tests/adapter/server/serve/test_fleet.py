"""A mixed fleet through the real `serve`: exporters, versions and vendors side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from tests.adapter.serving import Exporter, Lab, Serving, eventually

PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization"
GPU = "nvidia.com/gpu"
NODES = {
    "gke": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
    "eks": {"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"},
    "aks": {"kubernetes.azure.com/accelerator": "nvidia"},
    "nfd": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
    "amd": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
    "intel": {"gpu.intel.com/product": "Max_1550"},
}
OWN = (
    'instance="10.0.0.7:9400",job="dcgm-exporter",service="dcgm-exporter",'
    'pod="dcgm-exporter-x",namespace="ns",container="exporter"'
)
PAGES = {
    # Up to exporter 4.8 and from 4.9 on; samples of the last but one name the model.
    "gke": 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G1",pod="gke",namespace="ns",container="c"} 10\n',
    "eks": 'DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="G2",pod="eks",namespace="ns"} 0.2\n',
    "aks": 'dcgm_gpu_utilization{gpu="0",uuid="G3",modelName="Tesla T4",pod_name="aks",'
    'pod_namespace="ns",container_name="c"} 30\n',
    "nfd": 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G4",pod="nfd",namespace="ns",container="c"} 40\n'
    'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="G5",pod="done",namespace="ns",container="c"} 90\n'
    f'DCGM_FI_DEV_GPU_UTIL{{gpu="2",UUID="G6",{OWN}}} 95\n',
    "amd": 'gpu_gfx_activity{gpu_id="0",pod="amd",namespace="ns",container="c"} 50\n',
    "intel": 'xpum_engine_ratio{uuid="I1",kube_pod="intel",kube_namespace="ns"} 0.6\n',
}
RESOURCES = {"amd": "amd.com/gpu", "intel": "gpu.intel.com/i915"}
ALL = {"gke": "10", "eks": "20", "aks": "30", "nfd": "40", "amd": "50", "intel": "60"}


def pod(name: str, node: str, resource: str = GPU, **status: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
    }
    if resource:
        made["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    return made | ({"status": status} if status else {})


def values(client: httpx.Client, selector: str = "") -> dict[str, str]:
    answer = client.get(PATH, params={"metricLabelSelector": selector} if selector else None)
    if answer.status_code != 200:
        return {}
    return {item["describedObject"]["name"]: item["value"] for item in answer.json()["items"]}


def rejected(page: str, reason: str) -> float:
    """The number of samples and values that were left out for a reason."""
    begin = f'gma_rejects_total{{reason="{reason}"}} '
    (sample,) = (line for line in page.splitlines() if line.startswith(begin))
    return float(sample.removeprefix(begin))


@contextmanager
def exporters() -> Iterator[dict[str, Exporter]]:
    with ExitStack() as stack:
        made = {}
        for node, page in PAGES.items():
            exporter = made[node] = Exporter()
            stack.callback(exporter.close)
            exporter.page = page.encode()
        yield made


class Fleet(NamedTuple):
    """A `serve` with an exporter and a pod of its node's name on each node."""

    lab: Lab
    exporters: dict[str, Exporter]
    serving: Serving
    client: httpx.Client


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with exporters() as made:
        lab = Lab(folder, made["gke"])
        lab.config["source"]["scrape"]["max_backoff"] = "500ms"
        lab.config["source"]["scrape"]["targets"] = [
            {"url": exporter.url, "node": node} for node, exporter in made.items()
        ]
        nodes = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}}
            for node, labels in NODES.items()
        ]
        pods = [pod(node, node, RESOURCES.get(node, GPU)) for node in NODES]
        others = [pod("done", "nfd", phase="Succeeded"), pod("dcgm-exporter-x", "nfd", "")]
        (folder / "pods.yaml").write_text(yaml.safe_dump_all([*nodes, *pods, *others]))
        with lab.serving() as serving, serving.client() as client:
            yield Fleet(lab, made, serving, client)


MODELS = {
    "nvidia-l4": "gke",
    "nvidia-tesla-v100": "eks",
    "Tesla-T4": "aks",
    "NVIDIA-A100-SXM4-40GB": "nfd",
    "AMD_Instinct_MI300X": "amd",
    "Max_1550": "intel",
}


def test_every_vendor_and_version_is_served_and_selected_by_its_model(fleet: Fleet) -> None:
    """Neither a lingering sample of a finished pod nor the exporter pod counts."""
    client = fleet.client
    eventually(lambda: values(client) == ALL)
    for model, name in MODELS.items():
        assert values(client, f"model={model}") == {name: ALL[name]}, model
    assert values(client, "model in (nvidia-l4,Max_1550)") == {"gke": "10", "intel": "60"}
    text = client.get("/metrics").text
    for reason in ("finished_pod", "self_attribution"):
        assert rejected(text, reason) > 0
    assert rejected(text, "conflict") == 0


def test_a_recreated_pod_does_not_get_its_predecessors_value(
    fleet: Fleet,
) -> None:
    client = fleet.client
    eventually(lambda: values(client) == ALL)
    fleet.exporters["nfd"].status = 500
    fleet.serving.wait_for("scrape failed")
    assert values(client)["nfd"] == "40", "the last value stands until the age limit"
    file = fleet.lab.folder / "pods.yaml"
    objects = list(yaml.safe_load_all(file.read_text()))
    for item in objects:
        if item["kind"] == "Pod" and item["metadata"]["name"] == "nfd":
            item["metadata"]["uid"] = "its-successor"
            item["metadata"]["creationTimestamp"] = datetime.now(UTC).isoformat()
    file.write_text(yaml.safe_dump_all(objects))
    eventually(lambda: "nfd" not in values(client))
    fleet.exporters["nfd"].page = PAGES["nfd"].replace(" 40\n", " 70\n").encode()
    fleet.exporters["nfd"].status = 200
    eventually(lambda: values(client).get("nfd") == "70")

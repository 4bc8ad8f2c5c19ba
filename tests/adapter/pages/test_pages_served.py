"""Captured pages through the real `serve`, requested over HTTPS like an HPA does.

Every way of sharing, and every vendor, side by side in one cluster: an exporter per page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.adapter.serving import Exporter, Lab
from tests.adapter.world import captured_page

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/%2A/{}"
SLICED = {
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED",
}
CASES = "cases/{}.prom"


class Node(NamedTuple):
    """A node with one exporter, and its pods."""

    page: str
    pods: dict[str, dict[str, str]]
    """namespace/name -> limits."""
    labels: Mapping[str, str] = {}
    renamed: tuple[tuple[str, str], ...] = ()
    """Pages of one author share names: each gets its own."""


NODES = {
    "sliced": Node(
        CASES.format("03_timeslice_flap"),
        {
            "default/gpu-pod-c69f6664f-vkkcb": {"nvidia.com/gpu": "1"},
            "default/gpu-pod-c69f6664f-2v922": {"nvidia.com/gpu": "1"},
        },
        SLICED,
        (("GPU-ee71aa82", "GPU-ee71aa03"),),
    ),
    "processes": Node(
        CASES.format("05_vgpu_per_process_4_8_2"),
        {f"ml/llm-{x}": {"nvidia.com/gpu.shared": "1"} for x in "ab"},
        SLICED,
        (("GPU-ee71aa82", "GPU-ee71aa05"), ("GPU-f25eff1c", "GPU-f25eff05")),
    ),
    "mig": Node(
        CASES.format("06_mig_mixed"),
        {
            "ml/mig-a": {"nvidia.com/mig-1g.5gb": "1"},
            "ml/mig-b": {"nvidia.com/mig-2g.10gb": "1"},
            "ml/whole-0": {"nvidia.com/gpu": "1"},
        },
        {"nvidia.com/mig.strategy": "mixed"},
    ),
    "pairs": Node(
        CASES.format("10_multi_gpu_multi_container"),
        {"ml/pair-0": {"nvidia.com/gpu": "2"}, "ml/train-0": {"nvidia.com/gpu": "2"}},
        {},
        (("GPU-ee71aa82", "GPU-ee71aa10"), ("GPU-f25eff1c", "GPU-f25eff10")),
    ),
    "amd": Node(
        "12_amd_device_metrics_exporter_real_lines.prom",
        {"amd/train-0": {"amd.com/gpu": "1"}},
        {},
        (('namespace="",pod="",serial_number=""', 'namespace="amd",pod="train-0"'),),
    ),
    "hami": Node(
        "40_hami_vgpu_monitor.prom",
        {"hami/hami-device": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"}},
        {},
        (('podnamespace="default"', 'podnamespace="hami"'),),
    ),
    "vllm": Node("30_vllm_v1_qwen_full_page.prom", {"vllm/server-0": {}}),
}


def _pod(where: str, node: str, limits: dict[str, str], port: int | None) -> dict[str, Any]:
    namespace, _, name = where.partition("/")
    prefix = "gpu-metrics-adapter.io"
    asks = {f"{prefix}/scrape": "true", f"{prefix}/port": str(port)} if port else {}
    uid = f"1843d150-0000-4000-8000-00000000000{name[-1]}"
    meta = {"name": name, "namespace": namespace, "uid": uid, "annotations": asks}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"limits": limits}}],
        },
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("served")
    objects: list[dict[str, Any]] = []
    targets = []
    with ExitStack() as stack:
        exporters = {}
        for name, node in NODES.items():
            page = captured_page(node.page)
            for old, new in node.renamed:
                page = page.replace(old, new)
            exporter = exporters[name] = Exporter()
            stack.callback(exporter.close)
            exporter.page = page.encode()
            served = name == "vllm"
            port = urlsplit(exporter.url).port if served else None
            if not served:
                targets.append({"url": exporter.url, "node": name})
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": node.labels},
                }
            )
            objects += [_pod(pod, name, limits, port) for pod, limits in node.pods.items()]
        lab = Lab(folder, exporters["mig"])
        lab.config["source"]["scrape"]["targets"] = targets
        (folder / "pods.yaml").write_text(yaml.safe_dump_all(objects))
        serving = stack.enter_context(lab.serving())
        yield stack.enter_context(serving.client())


class Asked(NamedTuple):
    """A query of an HPA and its whole answer."""

    namespace: str
    metric: str
    where: str
    says: dict[str, str]


ASKED = {
    "time-slicing: both pods of the device": Asked(
        "default",
        "gpu_utilization",
        "",
        {"gpu-pod-c69f6664f-vkkcb": "71", "gpu-pod-c69f6664f-2v922": "71"},
    ),
    "time-slicing: by sharing and attribution": Asked(
        "default",
        "gpu_utilization",
        "sharing=shared,attribution=copied",
        {"gpu-pod-c69f6664f-vkkcb": "71", "gpu-pod-c69f6664f-2v922": "71"},
    ),
    "time-slicing: nobody has it alone": Asked(
        "default", "gpu_utilization", "sharing=exclusive", {}
    ),
    "all of a namespace, each by its own mode": Asked(
        "ml",
        "gpu_utilization",
        "",
        {
            "llm-a": "62",
            "llm-b": "31",
            "mig-a": "40849m",
            "mig-b": "50",
            "pair-0": "50",
            "train-0": "50",
            "whole-0": "92",
        },
    ),
    "per process: exact although shared": Asked(
        "ml", "gpu_utilization", "sharing=shared,attribution=exact", {"llm-a": "62", "llm-b": "31"}
    ),
    "MIG: one profile": Asked("ml", "gpu_utilization", "mig_profile=1g.5gb", {"mig-a": "40849m"}),
    "MIG: any profile": Asked(
        "ml", "gpu_utilization", "mig_profile", {"mig-a": "40849m", "mig-b": "50"}
    ),
    "MIG: memory of the instance": Asked(
        "ml", "gpu_memory_used_bytes", "mig_profile=2g.10gb", {"mig-b": "9449766912"}
    ),
    "MIG: no percent of an instance": Asked("ml", "DCGM_FI_DEV_GPU_UTIL", "mig_profile", {}),
    "by model, in a selector's words": Asked(
        "ml",
        "DCGM_FI_DEV_FB_USED",
        "model=NVIDIA-A100-SXM4-40GB",
        {"mig-a": "4384", "mig-b": "9012", "whole-0": "39k"},
    ),
    "by another model": Asked("ml", "DCGM_FI_DEV_FB_USED", "model=NVIDIA-H100-80GB-HBM3", {}),
    "one container of several": Asked(
        "ml", "gpu_utilization", "container=prefill", {"pair-0": "80"}
    ),
    "two containers": Asked(
        "ml", "gpu_utilization", "container in (prefill,decode)", {"pair-0": "50"}
    ),
    "the busiest device": Asked(
        "ml",
        "gpu_utilization_max",
        "!mig_profile,sharing=exclusive",
        {
            "pair-0": "80",
            "train-0": "95",
            "whole-0": "92",
        },
    ),
    "AMD": Asked("amd", "gpu_utilization", "", {"train-0": "83"}),
    "AMD: verbatim": Asked("amd", "gpu_gfx_activity", "", {"train-0": "83"}),
    "AMD: by model": Asked(
        "amd", "gpu_utilization", "model=Aqua-Vanjaram-Instinct-MI325X-VF", {"train-0": "83"}
    ),
    "HAMi": Asked("hami", "gpu_utilization", "attribution=exact", {"hami-device": "99"}),
    "HAMi: of its own limit": Asked(
        "hami", "gpu_memory_utilization", "", {"hami-device": "67071m"}
    ),
    "HAMi: its container": Asked(
        "hami", "gpu_memory_used_bytes", "container=cuda-container", {"hami-device": "2109867008"}
    ),
    "vLLM: a pod without a GPU": Asked("vllm", "inference_requests_waiting", "", {"server-0": "0"}),
    "vLLM: the cache": Asked("vllm", "inference_kv_cache_utilization", "", {"server-0": "0"}),
    "vLLM: verbatim": Asked("vllm", "vllm:num_requests_running", "", {"server-0": "0"}),
    "vLLM: has no utilisation": Asked("vllm", "gpu_utilization", "", {}),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_hpa_is_answered(asked: Asked, client: httpx.Client) -> None:
    path = PODS.format(asked.namespace, asked.metric)
    query = {"metricLabelSelector": asked.where} if asked.where else {}
    deadline = time.monotonic() + 20
    found: dict[str, str] = {}
    while time.monotonic() < deadline:
        answer = client.get(path, params=query)
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 200 and client.get("/readyz").status_code == 200:
            items = answer.json()["items"]
            found = {item["describedObject"]["name"]: item["value"] for item in items}
            if found == asked.says:
                break
        time.sleep(0.05)
    assert found == asked.says

"""Pages through the real `serve`, requested over HTTPS like an HPA does.

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
from tests.adapter.world import own_page

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/%2A/{}"
SLICED = {
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED",
}
IN_ML = (('namespace="docs"', 'namespace="ml"'), ('namespace="edge"', 'namespace="ml"'))
TEAMS = (('namespace="team-a"', 'namespace="ml"'), ('namespace="team-b"', 'namespace="ml"'))


class Node(NamedTuple):
    """A node with one exporter, and its pods."""

    page: str
    pods: dict[str, dict[str, str]]
    """namespace/name -> limits."""
    labels: Mapping[str, str] = {}
    renamed: tuple[tuple[str, str], ...] = ()
    """Old and new text: several pages in one namespace, or a pod for a device."""


NODES = {
    "sliced": Node(
        "dcgm/4.5-time-sliced.prom",
        {
            "nlp/tagger-84c5b7d9f-6kzrp": {"nvidia.com/gpu": "1"},
            "nlp/tagger-84c5b7d9f-tq9wm": {"nvidia.com/gpu": "1"},
        },
        SLICED,
    ),
    "processes": Node(
        "dcgm/4.8.2-per-process.prom",
        {f"ml/chat-{x}": {"nvidia.com/gpu.shared": "1"} for x in "ab"},
        SLICED,
        IN_ML,
    ),
    "mig": Node(
        "dcgm/4.5-mig-mixed.prom",
        {
            "ml/mig-small": {"nvidia.com/mig-1g.5gb": "1"},
            "ml/mig-medium": {"nvidia.com/mig-2g.10gb": "1"},
            "ml/board-0": {"nvidia.com/gpu": "1"},
        },
        {"nvidia.com/mig.strategy": "mixed"},
        IN_ML,
    ),
    "pairs": Node(
        "dcgm/4.5-several-devices.prom",
        {"ml/split-pair-0": {"nvidia.com/gpu": "2"}, "ml/train-pair-0": {"nvidia.com/gpu": "2"}},
        {},
        TEAMS,
    ),
    "amd": Node(
        "amd/1.4-guest-prefix.prom",
        {"amd/train-0": {"amd.com/gpu": "1"}},
        {},
        (('namespace="ml"', 'namespace="amd"'),),
    ),
    "hami": Node(
        "hami/2.9.prom",
        {"hami/chat-0": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16384"}},
        {},
        (('namespace="ml"', 'namespace="hami"'),),
    ),
    "vllm": Node("servers/vllm-v1.prom", {"vllm/server-0": {}}),
}


def _pod(where: str, node: str, limits: dict[str, str], port: int | None) -> dict[str, Any]:
    namespace, _, name = where.partition("/")
    prefix = "gpu-metrics-adapter.io"
    asks = {f"{prefix}/scrape": "true", f"{prefix}/port": str(port)} if port else {}
    uid = f"6f1c2d3e-0000-4000-8000-00000000000{name[-1]}"
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
            page = own_page(node.page)
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
        "nlp",
        "gpu_utilization",
        "",
        {"tagger-84c5b7d9f-6kzrp": "68", "tagger-84c5b7d9f-tq9wm": "68"},
    ),
    "time-slicing: by sharing and attribution": Asked(
        "nlp",
        "gpu_utilization",
        "sharing=shared,attribution=copied",
        {"tagger-84c5b7d9f-6kzrp": "68", "tagger-84c5b7d9f-tq9wm": "68"},
    ),
    "time-slicing: nobody has it alone": Asked("nlp", "gpu_utilization", "sharing=exclusive", {}),
    "all of a namespace, each by its own mode": Asked(
        "ml",
        "gpu_utilization",
        "",
        {
            "chat-a": "64",
            "chat-b": "30",
            "mig-medium": "50",
            "mig-small": "40625m",
            "split-pair-0": "50",
            "train-pair-0": "50",
            "board-0": "93",
        },
    ),
    "per process: exact although shared": Asked(
        "ml",
        "gpu_utilization",
        "sharing=shared,attribution=exact",
        {"chat-a": "64", "chat-b": "30"},
    ),
    "MIG: one profile": Asked(
        "ml", "gpu_utilization", "mig_profile=1g.5gb", {"mig-small": "40625m"}
    ),
    "MIG: any profile": Asked(
        "ml", "gpu_utilization", "mig_profile", {"mig-medium": "50", "mig-small": "40625m"}
    ),
    "MIG: memory of the instance": Asked(
        "ml", "gpu_memory_used_bytes", "mig_profile=2g.10gb", {"mig-medium": "9328132096"}
    ),
    "MIG: no percent of an instance": Asked("ml", "DCGM_FI_DEV_GPU_UTIL", "mig_profile", {}),
    "by model, in a selector's words": Asked(
        "ml",
        "DCGM_FI_DEV_FB_USED",
        "model=NVIDIA-A100-SXM4-40GB",
        {
            "chat-a": "18432",
            "chat-b": "12032",
            "mig-medium": "8896",
            "mig-small": "4352",
            "board-0": "38912",
        },
    ),
    "by another model": Asked("ml", "DCGM_FI_DEV_FB_USED", "model=NVIDIA-H100-80GB-HBM3", {}),
    "one container of several": Asked(
        "ml", "gpu_utilization", "container=prefill", {"split-pair-0": "82"}
    ),
    "two containers": Asked(
        "ml", "gpu_utilization", "container in (prefill,decode)", {"split-pair-0": "50"}
    ),
    "the busiest device": Asked(
        "ml",
        "gpu_utilization_max",
        "!mig_profile,sharing=exclusive",
        {
            "split-pair-0": "82",
            "train-pair-0": "96",
            "board-0": "93",
        },
    ),
    "AMD": Asked("amd", "gpu_utilization", "", {"train-0": "83"}),
    "AMD: verbatim": Asked("amd", "gpu_gfx_activity", "", {"train-0": "83"}),
    "AMD: by model": Asked(
        "amd", "gpu_utilization", "model=AMD-Instinct-MI325X-VF", {"train-0": "83"}
    ),
    "HAMi": Asked("hami", "gpu_utilization", "attribution=exact", {"chat-0": "62"}),
    "HAMi: of its own limit": Asked("hami", "gpu_memory_utilization", "", {"chat-0": "62500m"}),
    "HAMi: its container": Asked(
        "hami", "gpu_memory_used_bytes", "container=server", {"chat-0": "10737418240"}
    ),
    "vLLM: a pod without a GPU": Asked("vllm", "inference_requests_waiting", "", {"server-0": "6"}),
    "vLLM: the cache": Asked("vllm", "inference_kv_cache_utilization", "", {"server-0": "62500m"}),
    "vLLM: verbatim": Asked("vllm", "vllm:num_requests_running", "", {"server-0": "14"}),
    "vLLM: has no utilisation": Asked("vllm", "gpu_utilization", "", {}),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_hpa_is_answered(asked: Asked, client: httpx.Client) -> None:
    path = PODS.format(asked.namespace, asked.metric)
    query = {"metricLabelSelector": asked.where} if asked.where else {}
    deadline = time.monotonic() + 20
    values: dict[str, str] = {}
    while time.monotonic() < deadline:
        answer = client.get(path, params=query)
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 200 and client.get("/readyz").status_code == 200:
            items = answer.json()["items"]
            values = {item["describedObject"]["name"]: item["value"] for item in items}
            if values == asked.says:
                break
        time.sleep(0.05)
    assert values == asked.says

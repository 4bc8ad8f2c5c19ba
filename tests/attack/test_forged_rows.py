"""Pages of tenants that speak about somebody else's pod and device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.adapter.serving import Exporter
from tests.attack.siege import Siege, tenant_pod

QUEUE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/p0/inference_requests_waiting"
MINE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/tenant/pods/gpu/DCGM_FI_DEV_GPU_UTIL"
CLAIMS = 1000
"""Claims of the victim's device on one page: every claim against every claim took 18 s."""


@contextmanager
def forgers(*pages: str) -> Iterator[list[int]]:
    """Serve the pages; gives their ports."""
    with ExitStack() as stack:
        ports = []
        for page in pages:
            exporter = Exporter()
            stack.callback(exporter.close)
            exporter.page = page.encode()
            ports.append(int(exporter.url.split(":")[2].split("/")[0]))
        yield ports


def exporter_pod(name: str, port: int, node: str) -> dict[str, Any]:
    """Return a tenant's pod that carries the labels of dcgm-exporter."""
    pod = tenant_pod(name, port)
    pod["metadata"] |= {"annotations": {}, "labels": {"app": "nvidia-dcgm-exporter"}}
    ports = [{"name": "metrics", "containerPort": port}]
    pod["spec"] = {"nodeName": node, "containers": [{"name": "c", "ports": ports}]}
    return pod


def gpu_pod(node: str) -> dict[str, Any]:
    """Return a tenant's pod that holds a GPU on a node."""
    pod = tenant_pod("gpu", 9)
    pod["metadata"]["annotations"] = {}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod["spec"] = {"nodeName": node, "containers": [{"name": "c", "resources": limits}]}
    return pod


def claim(container: str, pod: str, namespace: str) -> str:
    return (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-1",modelName="T4",container="{container}",'
        f'namespace="{namespace}",pod="{pod}"}} 1\n'
    )


FORGED = 'vllm:num_requests_waiting{pod="p0",namespace="ns"} 999\n'
FORGED += 'nv_gpu_utilization{pod="p0",namespace="ns",gpu_uuid="GPU-7"} 0\n'
FORGED += claim("c", "p0", "ns") + "".join(claim(f"c{n}", "gpu", "tenant") for n in range(CLAIMS))

LEFT_OUT = {
    "an exporter's labels": "server_row_of_an_exporter",
    "opted in": "device_row_of_a_server",
}
"""What the forged rows are counted as: the pages are read."""


@pytest.mark.parametrize("way", LEFT_OUT)
def test_rows_about_somebody_elses_pod_and_device_change_nothing(
    siege: Callable[..., Siege], way: str
) -> None:
    with forgers(FORGED, FORGED) as ports:
        if way == "opted in":
            pods = [tenant_pod(f"forger-{port}", port) for port in ports]
        else:
            pods = [exporter_pod(f"forger-{port}", port, "n2") for port in ports]
        attacked = siege(*pods, gpu_pod("n2"))
        attacked.observe(seconds=4)
        with attacked.serving.client() as client:
            queue, mine = client.get(QUEUE), client.get(MINE)
            counted = client.get("/metrics").raise_for_status().text
        attacked.verdict()

    left_out = rf'gma_rejects_total\{{reason="{LEFT_OUT[way]}"\}} [1-9]'
    assert re.search(left_out, counted), "the forged pages were never read"
    assert items(queue) == []
    if way == "opted in":
        assert items(mine) == []


def items(answer: httpx.Response) -> list[dict[str, Any]]:
    if answer.status_code == 404:
        return []
    found: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
    return found

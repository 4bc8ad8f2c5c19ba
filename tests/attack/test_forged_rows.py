"""Pages of tenants that speak about somebody else's pod and device."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
import yaml

from tests.adapter.serving import PAGE, POD, Exporter
from tests.attack.siege import VALUE, Siege, tenant_pod

QUEUE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/p0/inference_requests_waiting"
MINE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/tenant/pods/gpu/DCGM_FI_DEV_GPU_UTIL"
UTILIZATION = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/p0/gpu_utilization"
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


def holder(node: str) -> dict[str, Any]:
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
    "an exporter's labels": "server_sample_of_an_exporter",
    "opted in": "device_sample_of_a_server",
}
"""What the forged rows are counted as: the pages are read."""


@pytest.mark.parametrize("way", LEFT_OUT)
def test_samples_about_another_tenants_pod_and_device_change_nothing(
    siege: Callable[..., Siege], way: str
) -> None:
    with forgers(FORGED, FORGED) as ports:
        if way == "opted in":
            pods = [tenant_pod(f"forger-{port}", port) for port in ports]
        else:
            pods = [exporter_pod(f"forger-{port}", port, "n2") for port in ports]
        attacked = siege(*pods, holder("n2"))
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


THEIRS = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="T4",container="c",namespace='
FORGERIES = {
    "another value": THEIRS + '"ns",pod="p0"} 1\n',
    "another holder": THEIRS + '"tenant",pod="gpu"} 1\n',
    "another device": 'gpu_gfx_activity{gpu_id="9",pod="p0",namespace="ns",container="c"} 1\n',
}
DISCOVER = {"scrape": {"interval": 0.2, "inference": {"enabled": True}}}


def real_exporter(port: int, *, mounts: bool) -> dict[str, Any]:
    """Return the pod of the DaemonSet that scrapes the victim's node, as charts install it."""
    pod = exporter_pod("real", port, "n1")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "dcgm-exporter"}
    pod["metadata"] |= {
        "namespace": "gpu-operator",
        "creationTimestamp": "2026-01-02T00:00:00Z",
        "ownerReferences": [owner | {"uid": "d", "controller": True}],
    }
    if mounts:
        path = {"path": "/var/lib/kubelet/pod-resources"}
        pod["spec"]["volumes"] = [{"name": "pod-gpu-resources", "hostPath": path}]
    return pod


def forgers_on_the_victims_node(ports: list[int]) -> list[dict[str, Any]]:
    """Return pods with the labels of several rules, all older than the exporter."""
    labels: list[dict[str, str]] = [
        {"app": "nvidia-dcgm-exporter"},
        {"app.kubernetes.io/name": "dcgm-exporter"},
        {"app.kubernetes.io/name": "metrics-exporter", "daemonset-name": "amd"},
    ]
    pods = []
    for n, port in enumerate(ports):
        pod = exporter_pod(f"forger-{n}", port, "n1")
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        pod["metadata"]["labels"] = labels[n]
        pods.append(pod)
    return pods


@pytest.mark.parametrize(
    ("forgery", "mounts"), [*((forgery, True) for forgery in FORGERIES), ("another value", False)]
)
def test_an_exporters_labels_on_the_victims_own_node_change_nothing(
    siege: Callable[..., Siege], forgery: str, mounts: bool
) -> None:
    page = FORGERIES[forgery]
    with forgers(PAGE.format(value=VALUE), page, page, page) as (port, *ports):
        attackers = forgers_on_the_victims_node(ports)
        attacked = siege(
            real_exporter(port, mounts=mounts), *attackers, holder("n1"), source=DISCOVER
        )
        attacked.observe(seconds=3)
        with attacked.serving.client() as client:
            combined = items(client.get(UTILIZATION))
            counted = client.get("/metrics").raise_for_status().text
        attacked.verdict()
    assert [item["value"] for item in combined] == [VALUE]
    reason = "no_host_path" if mounts else "another_exporter_on_node"
    assert f'gma_unscrapable_pods_total{{reason="{reason}"}} 3.0' in counted


def test_no_pod_replaces_a_restarting_exporter(siege: Callable[..., Siege]) -> None:
    page = FORGERIES["another value"]
    with forgers(PAGE.format(value=VALUE), page, page, page) as (port, *ports):
        real, attackers = real_exporter(port, mounts=True), forgers_on_the_victims_node(ports)
        attacked = siege(real, *attackers, source=DISCOVER)
        file = attacked.lab.folder / "pods.yaml"
        with attacked.serving.client() as client:
            for pods, count in (([POD, *attackers], 0), ([POD, real, *attackers], 1)):
                replacement = file.with_suffix(".new")
                replacement.write_text(yaml.safe_dump_all(pods))
                replacement.replace(file)
                wait_for(client, f"gma_scrape_targets {count}.0")
                attacked.observe(seconds=2)
        assert attacked.verdict().answers


def wait_for(client: httpx.Client, line: str) -> None:
    deadline = time.monotonic() + 60
    while f"\n{line}\n" not in client.get("/metrics").raise_for_status().text:
        assert time.monotonic() < deadline, f"never: {line}"
        time.sleep(0.1)


def items(answer: httpx.Response) -> list[dict[str, Any]]:
    if answer.status_code == 404:
        return []
    values: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
    return values

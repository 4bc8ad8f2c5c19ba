"""The register of faults: what is done to the cluster of a site, and undone."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from tests.adapter.world import own_page
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import HPAS, Object
from tests.e2e.pagestand import made, patched, stand
from tests.e2e.site import Site
from tests.e2e.stage import autoscaler, deployment

CHAT = "chat"
THIRD = "gpu-c"
MAIN_HPA = f"{HPAS.format(ns=CHAT)}/inference"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{SERVICE}"
UNATTRIBUTED = "dcgm/3.1-mig-unattributed.prom"
WHOLE = "dcgm/4.7-eight-boards-cut.prom"
VLLM = "servers/vllm-v1.prom"


class Fault(NamedTuple):
    """A fault, and what is found while it lasts."""

    ids: frozenset[str]
    make: Callable[[Site], AbstractContextManager[None]]
    also: frozenset[str] = frozenset()
    """What may appear too, because a controller needs a moment to see the fault."""


FAULTS: dict[str, Fault] = {}


def fault(
    *ids: str, also: tuple[str, ...] = ()
) -> Callable[[Callable[[Site], Iterator[None]]], Callable[[Site], Iterator[None]]]:
    """Register a fault by the name of its function."""

    def register(make: Callable[[Site], Iterator[None]]) -> Callable[[Site], Iterator[None]]:
        manager = contextlib.contextmanager(make)
        FAULTS[make.__name__] = Fault(frozenset(ids), manager, frozenset(also))
        return make

    return register


@contextlib.contextmanager
def third_node(
    site: Site,
    gpus: int = 8,
    resource: str = "nvidia.com/gpu",
    ready: str = "True",
    labels: dict[str, str] | None = None,
) -> Iterator[None]:
    """A node beside those of the site."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": THIRD, "labels": labels or {}}}
    with made(site, node):
        amounts = {"cpu": "24", "memory": "220Gi", "pods": "110"}
        amounts |= {resource: str(gpus)} if gpus else {}
        row = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-02T03:04:05Z"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [row]}
        site.admin.patch(f"/api/v1/nodes/{THIRD}/status", {"status": status})
        yield


def exporter(on: str = THIRD, name: str = "third", **container: Any) -> Object:
    """A dcgm-exporter's pod."""
    interval = {"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}
    row = {
        "name": "exporter",
        "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.1-ubuntu22.04",
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "env": [interval, *container.pop("env", [])],
        **container,
    }
    meta = {"name": name, "namespace": "gpu-operator", "labels": {"app": "nvidia-dcgm-exporter"}}
    spec = {"nodeName": on, "containers": [row]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@contextlib.contextmanager
def third(site: Site, body: bytes | None, status: int = 200, **more: Any) -> Iterator[None]:
    """A third GPU node whose exporter answers with this."""
    with third_node(site), stand(site, exporter(), 9400, body, status, **more):
        yield


def real(name: str) -> bytes:
    """A page of an exporter, without the pods that it names."""
    return re.sub(r',(container|namespace|pod|pod_uid)="[^"]*"', "", own_page(name)).encode()


def without(page: bytes, series: str) -> bytes:
    """The page without the lines of a series."""
    return b"".join(line for line in page.splitlines(True) if series.encode() not in line)


def holder(name: str, on: str = THIRD, **spec: Any) -> Object:
    """A pod with a GPU."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    row = {"name": "main", "image": "none", "resources": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": CHAT},
        "spec": {"containers": [row], **({"nodeName": on} if on else {}), **spec},
    }


def zero(name: str) -> Object:
    """A Deployment with GPUs, at 0 replicas and with labels of its own."""
    workload = deployment(CHAT, 0)
    labels = {"app": name}
    workload["metadata"] |= {"name": name, "labels": labels}
    workload["spec"]["selector"] = {"matchLabels": labels}
    workload["spec"]["template"]["metadata"] = {"labels": labels}
    return workload


def scaler(called: str, **target: str) -> Object:
    """An HPA on GPU utilisation of a target of its own name."""
    hpa = autoscaler(CHAT, metric="gpu_utilization")
    hpa["metadata"]["name"] = called
    hpa["spec"]["scaleTargetRef"] |= {"name": called, **target}
    return hpa


@contextlib.contextmanager
def hpa_with(site: Site, path: str, **spec: Any) -> Iterator[None]:
    """An HPA with another spec."""
    before = site.admin.get(path)["spec"]
    back = {key: before.get(key) for key in spec}
    with patched(site, path, {"spec": spec}, {"spec": back}):
        yield


def pods_metric(name: str, target: str = "70", kind: str = "AverageValue") -> list[Object]:
    """The metrics of an HPA."""
    goal = {"type": kind, "averageValue": target}
    return [{"type": "Pods", "pods": {"metric": {"name": name}, "target": goal}}]


def metric_of(site: Site, path: str, name: str) -> AbstractContextManager[None]:
    """An HPA that asks for another metric."""
    return hpa_with(site, path, metrics=pods_metric(name))


def server(name: str = "vllm", **notes: str) -> Object:
    """A pod of an inference server, which an HPA's workload selects."""
    image = "docker.io/vllm/vllm-openai:v0.10.0"
    row = {"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8000}]}
    words = {f"gpu-metrics-adapter.io/{key}": value for key, value in notes.items()}
    meta = {"name": name, "namespace": CHAT, "labels": {"app": "idle"}, "annotations": words}
    spec = {"containers": [row], "nodeName": "gpu-a"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@contextlib.contextmanager
def configured(site: Site, text: str) -> Iterator[None]:
    """The adapter's ConfigMap with another content; the file itself is never read meanwhile."""
    before = site.admin.get(CONFIG)["data"]
    with patched(site, CONFIG, {"data": {"config.yaml": text}}, {"data": before}):
        yield

"""A control plane with fixed GPU nodes, and values that a test sets.

The lab covers the reaction of autoscalers to headroom. This stage covers the writes of the
controller, its user, and the objects that remain after it dies.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e import chart
from tests.e2e.apiservice import (
    CUSTOM,
    DNS,
    NAMESPACE,
    SERVICE,
    ensure_namespace,
    register,
    wait_available,
)
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object
from tests.e2e.controlplane import WORKLOADS, ControlPlane
from tests.e2e.kubelet import Kubelet
from tests.e2e.metricsapi import MetricsApi
from tests.e2e.process import Process, free_port, wait_until

CONTROLLERS = (
    # Without the HPA controller, workloads keep the replicas that a test sets.
    *(name for name in WORKLOADS if name != "horizontal-pod-autoscaler-controller"),
    "job-controller",
    "ttl-after-finished-controller",
)
ACCOUNT = f"{SERVICE}-nodepool"
METRIC = "gpu_utilization"
GPU = "nvidia.com/gpu"
NODES = ("gpu-a", "gpu-b", "gpu-c", "gpu-d")
LIFELINE = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/gpu-headroom-lifeline"
HEADROOM = "?labelSelector=gpu-metrics-adapter.io%2Fworkload-namespace%3D{ns}"
"""Query: headroom objects for a namespace's workloads."""


class Controller:
    """One replica of ``gpu-metrics-adapter nodepool``."""

    def __init__(self, folder: Path, name: str, kubeconfig: Path, **settings: Any) -> None:
        self.port = free_port()
        self.config = folder / f"{name}.yaml"
        nodepool = {
            "namespace": NAMESPACE,
            "host": "127.0.0.1",
            "port": self.port,
            "interval": 1,
            "apply": True,
            "lifeline": 60,
            "lease": {"duration": 4, "renew": 3, "retry": 1},
        } | settings
        # A test is over before ten minutes of demand are known.
        nodepool["limits"] = {"share": 0} | settings.get("limits", {})
        self.config.write_text(
            yaml.safe_dump(
                {
                    "cluster": {"kubeconfig": str(kubeconfig)},
                    "log": {"format": "json"},
                    "nodepool": nodepool,
                }
            )
        )
        command: list[str | Path] = [sys.executable, "-P", "-m", "adapter"]
        command += ["nodepool", "--config", self.config]
        self.process = Process(command, folder / f"{name}.log")

    def start(self) -> None:
        """Start it, and wait until it has read the cluster."""
        self.process.start()
        self.process.wait_ready(lambda: self.get("/readyz")[0] == 200)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop it; return the exit status."""
        return self.process.stop(how)

    def get(self, path: str) -> tuple[int, str]:
        """Send a request to its listener."""
        try:
            url = f"http://127.0.0.1:{self.port}{path}"
            answer = httpx.get(url, trust_env=False, timeout=60)  # on a busy machine
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.text

    def metric(self, series: str) -> float | None:
        """The value of a series on ``/metrics``; None if it is missing."""
        for line in self.get("/metrics")[1].splitlines():
            if line.rpartition(" ")[0] == series:
                return float(line.rpartition(" ")[2])
        return None


class NodepoolStage:
    """Use as a context manager. It stops everything that it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(folder, CONTROLLERS)
        self.admin = self.plane.admin
        self.api = MetricsApi(self.plane.ca.issue("metrics", server=True, dns=DNS))
        self._stack = ExitStack()

    def __enter__(self) -> NodepoolStage:
        with ExitStack() as stack:
            stack.enter_context(self.plane)
            self.api.start()
            stack.callback(self.api.stop)
            ensure_namespace(self.admin, NAMESPACE)
            # Headroom must work with the strictest level of its namespace.
            restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
            path = f"/api/v1/namespaces/{NAMESPACE}"
            self.admin.patch(path, {"metadata": {"labels": restricted}})
            self.kubelet = Kubelet(self.admin, NODES)
            stack.callback(self.kubelet.stop)
            for name in NODES:
                self._furnish(name)
            register(self.admin, self.api.port, self.plane.ca.cert.read_bytes(), CUSTOM[:1])
            wait_available(self.admin, CUSTOM[:1])
            for row in chart.render(
                {"nodepool": {"enabled": True, "apply": True}},
                only=("nodepool/rbac", "nodepool/priorityclass", "nodepool/policy"),
            ):
                self.admin.create(row)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kubeconfig(self) -> Path:
        """A kubeconfig for the controller's ServiceAccount of the chart."""
        token = self.admin.token(NAMESPACE, ACCOUNT)
        return self.plane.write_kubeconfig("nodepool", token=token)

    def workload(
        self, namespace: str, replicas: int, percent: float, high: int = 8, **hpa: str
    ) -> None:
        """A Deployment of GPU pods with its HPA and a utilisation for all pods."""
        ensure_namespace(self.admin, namespace)
        self.admin.create(_deployment(namespace, replicas))
        self.admin.create(_autoscaler(namespace, high, hpa))
        wait_until(lambda: len(self._own(namespace)) == replicas, "its pods run")
        self.load(namespace, percent)

    def load(self, namespace: str, percent: float) -> None:
        """Set the utilisation of all its pods."""
        values = dict.fromkeys(self._own(namespace), int(percent * 1000))
        self.api.values[namespace] = {METRIC: values}

    def placeholders(self, namespace: str) -> list[Object]:
        """The Deployments of placeholders for a namespace's workloads."""
        path = DEPLOYMENTS.format(ns=NAMESPACE) + HEADROOM.format(ns=namespace)
        deployments: list[Object] = self.admin.get(path)["items"]
        return deployments

    def wait_headroom(self, namespace: str, replicas: Sequence[int], seconds: float = 60) -> None:
        """Wait until the placeholders' Deployments have exactly these sizes."""

        def check() -> bool:
            sizes = [row["spec"]["replicas"] for row in self.placeholders(namespace)]
            return sorted(sizes) == sorted(replicas)

        wait_until(check, f"headroom of {namespace} is {list(replicas)}", seconds)

    def clear(self, namespace: str) -> None:
        """Delete what a test made in a namespace."""
        self.admin.delete(f"{HPAS.format(ns=namespace)}/inference")
        self.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/inference")
        self.admin.delete(LIFELINE)

    def _own(self, namespace: str) -> list[str]:
        running = self.kubelet.running()
        return [
            pod.name
            for pod in running
            if pod.namespace == namespace and ("app", "inference") in pod.labels
        ]

    def _furnish(self, name: str) -> None:
        self.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"agentpool": "gput4"}}})
        amounts = {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "4"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self.admin.patch(f"/api/v1/nodes/{name}/status", {"status": status})


def _deployment(namespace: str, replicas: int) -> Object:
    labels = {"app": "inference"}
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "1"}, "limits": {GPU: "1"}},
    }
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [container],
            "nodeSelector": {"agentpool": "gput4"},
            "tolerations": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def _autoscaler(namespace: str, high: int, annotations: dict[str, str]) -> Object:
    target = {"type": "AverageValue", "averageValue": "50"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "inference",
            "namespace": namespace,
            "annotations": annotations,
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"},
            "minReplicas": 1,
            "maxReplicas": high,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": METRIC}, "target": target}}],
        },
    }

"""The whole main job on one machine: control plane, simulated GPU nodes, the real adapter."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from tests.e2e import chart
from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace, register, wait_available
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object, Watch, condition
from tests.e2e.controlplane import WORKLOADS, ControlPlane
from tests.e2e.exporter import Exporter, Load
from tests.e2e.kubelet import Kubelet, RunningPod
from tests.e2e.process import wait_until

METRIC = "DCGM_FI_DEV_GPU_UTIL"
NODES = ("node-a", "node-b")
SCRAPE: dict[str, Any] = {
    "kind": "scrape",
    "scrape": {"interval": "500ms", "timeout": "400ms", "max_backoff": "1s"},
}
RIGHTS = {"externalMetrics": {"enabled": True}, "keda": {"scaledObjects": True}}
"""Chart values with which the adapter's account has all permissions."""


class Stage:
    """Use as a context manager. It stops everything that it started."""

    controllers: tuple[str, ...] = WORKLOADS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(
            folder,
            self.controllers,
            manager=(
                "--horizontal-pod-autoscaler-sync-period=1s",
                "--concurrent-horizontal-pod-autoscaler-syncs=10",
            ),
        )
        self.admin = self.plane.admin
        self.load = Load()
        self.exporters = {node: Exporter(node, self.load, self.pods) for node in NODES}
        self.sizes: dict[str, list[int]] = {}
        """Namespace -> all replicas of its workload so far, in order."""
        self._sizes_lock = threading.Lock()
        self._workloads: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.plane)
            self.kubelet = self._nodes(stack)
            stack.callback(self.kubelet.stop)
            watch = Watch(self.admin, "/apis/apps/v1/deployments", self._sized)
            stack.callback(watch.stop)
            ensure_namespace(self.admin, "gpu-operator")
            ensure_namespace(self.admin, NAMESPACE)
            for exporter in self.exporters.values():
                exporter.start()
                stack.callback(exporter.stop)
                self.admin.create(exporter_pod(exporter))
            for row in chart.render(RIGHTS, only=("serviceaccount", "rbac", "memory")):
                self.admin.create(row)
            external = {"enabled": True, "service": f"{NAMESPACE}/{SERVICE}"}
            self.adapter = Adapter(
                self.folder, "adapter", self.kubeconfig(), SCRAPE, external=external
            )
            stack.callback(self.adapter.stop)
            self.adapter.start()
            register(self.admin, self.adapter.port, self.adapter.ca.read_bytes())
            wait_available(self.admin)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _nodes(self, stack: ExitStack) -> Kubelet:
        """Create the nodes, and what runs pods on them."""
        return Kubelet(self.admin, NODES)

    def kubeconfig(self) -> Path:
        """Return a kubeconfig for the adapter's ServiceAccount."""
        token = self.admin.token(NAMESPACE, SERVICE)
        return self.plane.write_kubeconfig("adapter", token=token)

    def pods(self) -> list[RunningPod]:
        """Return the running pods."""
        return self.kubelet.running()

    def clear(self) -> None:
        """Delete the workloads, and wait until their GPUs are free."""
        while self._workloads:
            namespace = self._workloads.pop()
            self.admin.delete(f"{HPAS.format(ns=namespace)}/inference")
            self.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/inference")
        wait_until(lambda: not any(pod.gpus for pod in self.pods()), "every GPU is free")

    def workload(
        self, namespace: str, replicas: int, demand: float, node: str = "", **hpa: Any
    ) -> None:
        """Create a namespace with a Deployment, on ``node`` if given, and its HPA, under load."""
        self.load.set(namespace, demand, expected=replicas)
        self._workloads.append(namespace)
        ensure_namespace(self.admin, namespace)
        made = deployment(namespace, replicas)
        if node:
            made["spec"]["template"]["spec"]["nodeName"] = node
        self.admin.create(made)
        self.admin.create(autoscaler(namespace, **hpa))

    def hpa(self, namespace: str) -> Object:
        """Return the HPA of a workload."""
        hpa: Object = self.admin.get(f"{HPAS.format(ns=namespace)}/inference")
        return hpa

    def wait_active(
        self, namespace: str, status: str, reason: str = "", name: str = "inference"
    ) -> None:
        """Wait until the HPA's ScalingActive condition has this status (and reason)."""

        def check(obj: Object) -> bool:
            active = condition(obj, "ScalingActive")
            return active[0] == status and reason in ("", active[1])

        path = f"{HPAS.format(ns=namespace)}/{name}"
        self.admin.wait(path, check, f"{namespace}: ScalingActive is {status} {reason}")

    def wait_size(self, namespace: str, size: int) -> None:
        """Wait until this many pods of the workload run."""

        def check() -> bool:
            running = sum(pod.namespace == namespace for pod in self.pods())
            target = self.admin.get(f"{DEPLOYMENTS.format(ns=namespace)}/inference")
            return bool(running == size == target["spec"]["replicas"])

        wait_until(check, f"{namespace} has {size} pods; it had {self.sizes.get(namespace)}", 180)

    def wait_failures(self, namespace: str, more: int, reason: str = "FailedGetPodsMetric") -> None:
        """Wait until the HPA controller has failed to read its metric ``count`` more times.

        It writes 25 events about an object, two per failure, and then one in five minutes
        (client-go's spam filter). After that, the condition is used: it must stay false for the
        time of as many rounds, of a second each, on a slow machine.
        """

        def count() -> int:
            rows = self.admin.get(f"/api/v1/namespaces/{namespace}/events")["items"]
            return sum(row.get("count") or 1 for row in rows if row["reason"] == reason)

        def fails() -> bool:
            rows = self.admin.get(HPAS.format(ns=namespace))["items"]
            return any(condition(row, "ScalingActive") == ("False", reason) for row in rows)

        before, well = count(), time.monotonic()

        def check() -> bool:
            nonlocal well
            if not fails():
                well = time.monotonic()
            return count() >= before + more or time.monotonic() - well > 5 * more

        wait_until(check, f"{namespace}: {more} more failures")

    def values(
        self, namespace: str, metric: str = METRIC, metric_selector: str = ""
    ) -> dict[str, str]:
        """Request values through the API server: pod name -> quantity."""
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/%2A/{metric}"
        if metric_selector:
            path += f"?metricLabelSelector={quote(metric_selector)}"
        items = self.admin.get(path)["items"]
        return {item["describedObject"]["name"]: item["value"] for item in items}

    def tails(self) -> str:
        """Return the ends of all logs."""
        return f"{self.plane.tails()}\n--- adapter\n{self.adapter.process.tail()}"

    def _sized(self, kind: str, obj: Object) -> None:
        if obj["metadata"]["name"] != "inference":
            return
        namespace, size = obj["metadata"]["namespace"], obj["spec"]["replicas"]
        with self._sizes_lock:
            sizes = self.sizes.setdefault(namespace, [])
            if kind != "DELETED" and (not sizes or sizes[-1] != size):
                sizes.append(size)


def deployment(namespace: str, replicas: int) -> Object:
    """Return a Deployment whose pods hold a GPU each."""
    labels = {"app": "inference"}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "none", "resources": limits}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inference", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def autoscaler(
    namespace: str, low: int = 1, high: int = 6, metric: str = METRIC, target: str = "70"
) -> Object:
    """Return an HPA on GPU utilisation that scales in quickly."""
    source = {
        "metric": {"name": metric},
        "target": {"type": "AverageValue", "averageValue": target},
    }
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [{"type": "Pods", "pods": source}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3}},
        },
    }


def exporter_pod(exporter: Exporter) -> Object:
    """Return the exporter's pod, which is found by the labels of its chart."""
    port = {"name": "metrics", "containerPort": exporter.port}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"dcgm-exporter-{exporter.node}",
            "namespace": "gpu-operator",
            "labels": {"app.kubernetes.io/name": "dcgm-exporter"},
        },
        "spec": {
            "nodeName": exporter.node,
            "containers": [{"name": "exporter", "image": "none", "ports": [port]}],
        },
    }

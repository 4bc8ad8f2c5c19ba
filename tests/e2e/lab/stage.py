"""The main job in the lab: exporters on every node, `serve`, HPAs, and pods that had to wait."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.e2e import chart
from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace, register, wait_available
from tests.e2e.cluster import DEPLOYMENTS, HPAS, PODS, Object
from tests.e2e.exporter import Load
from tests.e2e.lab.fleet import Fleet
from tests.e2e.lab.lab import Lab, holder
from tests.e2e.nodepoolstage import ACCOUNT, Controller
from tests.e2e.process import wait_until
from tests.e2e.stage import SCRAPE

_KEPT = ("nodepool", "configmap.yaml")
"""Templates of the chart that the controller needs."""
HEADROOM = "gpu-metrics-adapter.io/headroom"
"""Annotation of an HPA: minimum headroom in pods."""


class LabStage:
    """Use as a context manager. It stops everything that it started.

    Args:
        boot: boot time of a node in seconds.
        sync: seconds between two syncs of the HPA controller.
    """

    def __init__(self, folder: Path, boot: int, sync: int = 1) -> None:
        self.folder = folder
        self.boot = boot
        self.lab = Lab(folder, boot, sync)
        self.admin = self.lab.admin
        self.load = Load()
        self.fleet = Fleet(self.admin, self.load)
        self._stack = ExitStack()

    def __enter__(self) -> LabStage:
        with ExitStack() as stack:
            stack.enter_context(self.lab)
            ensure_namespace(self.admin, NAMESPACE)
            self.fleet.start()
            stack.callback(self.fleet.stop)
            for row in chart.render(only=("serviceaccount", "rbac")):
                self.admin.create(row)
            self.install()
            token = self.admin.token(NAMESPACE, SERVICE)
            kubeconfig = self.lab.plane.write_kubeconfig("adapter", token=token)
            self.adapter = Adapter(self.folder, "adapter", kubeconfig, SCRAPE)
            stack.callback(self.adapter.stop)
            # Readiness needs values, and no node exists yet.
            self.adapter.process.start()
            self.adapter.process.wait_ready(self.adapter.ca.exists)
            register(self.admin, self.adapter.port, self.adapter.ca.read_bytes())
            wait_available(self.admin)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def install(self) -> None:
        """Install the chart's objects of `nodepool` as a release. No kubelet starts its pod."""
        folder = self.folder / "chart"
        if not folder.exists():
            shutil.copytree(chart.FOLDER, folder)
            for path in (folder / "templates").iterdir():
                if path.name not in _KEPT and not path.name.startswith("_"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        values = {"nodepool": {"enabled": True, "apply": True}}
        self._helm("install", SERVICE, folder, values=values)

    def uninstall(self) -> None:
        """Uninstall this release."""
        self._helm("uninstall", SERVICE)

    def _helm(self, *arguments: str | Path, values: Mapping[str, Any] | None = None) -> None:
        where = (f"--namespace={NAMESPACE}", f"--kubeconfig={self.lab.plane.kubeconfig}")
        done = chart.helm(*arguments, *where, values=values)
        assert done.returncode == 0, done.stderr

    def controller(self, name: str, **settings: Any) -> Controller:
        """`nodepool` as the chart's ServiceAccount, with short intervals."""
        token = self.admin.token(NAMESPACE, ACCOUNT)
        kubeconfig = self.lab.plane.write_kubeconfig(name, token=token)
        limits = {
            "boot_seconds": self.boot,
            "hold_seconds": 5,
            "decay_seconds": 5,
            "max_gpus_per_pool": 64,
        } | settings.pop("limits", {})
        return Controller(self.folder, name, kubeconfig, limits=limits, **settings)

    def workload(
        self,
        namespace: str,
        replicas: int,
        headroom: int = 0,
        most: int = 12,
        **behavior: Any,
    ) -> None:
        """A Deployment of GPU pods, and its HPA at 50 percent."""
        ensure_namespace(self.admin, namespace)
        self.admin.create(_deployment(namespace, replicas))
        self.admin.create(autoscaler(namespace, headroom, most, behavior))

    def clear(self, namespace: str) -> None:
        """Delete a workload."""
        self.admin.delete(f"{HPAS.format(ns=namespace)}/inference")
        self.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/inference")

    def scale(self, namespace: str, replicas: int) -> None:
        """Scale like `kubectl scale`."""
        path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"
        self.admin.patch(path, {"spec": {"replicas": replicas}})

    def wait_running(self, namespace: str, count: int, seconds: float = 120.0) -> None:
        """Wait until exactly ``count`` pods of a namespace's workload run."""
        wait_until(
            lambda: len(self.running(namespace)) == count,
            f"{count} pods of {namespace} run",
            seconds,
        )

    def running(self, namespace: str) -> list[str]:
        """Names of the running pods of a namespace's workload."""
        return [
            pod.name
            for pod in self.fleet.pods()
            if pod.namespace == namespace and ("app", "inference") in pod.labels
        ]

    def waited(self, namespace: str) -> set[str]:
        """Names of the pods whose node was created after them, however fast the machine is."""
        nodes = {node["metadata"]["name"]: _created(node) for node in self.lab.nodes()}
        pods = self.admin.get(PODS.format(ns=namespace))["items"]
        return {
            pod["metadata"]["name"]
            for pod in pods
            if nodes.get(pod["spec"].get("nodeName"), "") > _created(pod)
        }


def _created(obj: Object) -> str:
    """Return when the API server created an object, as text that sorts by time."""
    return str(obj["metadata"]["creationTimestamp"])


def _deployment(namespace: str, replicas: int) -> Object:
    labels = {"app": "inference"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": holder()},
        },
    }


def autoscaler(namespace: str, headroom: int, most: int, behavior: Object) -> Object:
    """Return an HPA at 50 percent."""
    target = {"type": "AverageValue", "averageValue": "50"}
    metric = {"name": "gpu_utilization"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "inference",
            "namespace": namespace,
            "annotations": {HEADROOM: str(headroom)},
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"},
            "minReplicas": 2,
            "maxReplicas": most,
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3}, **behavior},
        },
    }

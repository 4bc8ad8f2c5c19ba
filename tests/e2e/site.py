"""A whole cluster on one machine, for installations of the chart.

Pods of our image, and of prometheus-adapter's, are processes with their own addresses, accounts
and volumes. The API server reaches them through the EndpointSlices of the real controller. GPU
nodes and the pods on them are simulated.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.e2e import chart, programs
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, HPAS, PODS, Object
from tests.e2e.controlplane import SITE, ControlPlane, Listener
from tests.e2e.exporter import Exporter, Load
from tests.e2e.podrunner import PodRunner
from tests.e2e.podsandbox import host_address
from tests.e2e.privatenetwork import API_ADDRESS, SERVICE_SUBNET
from tests.e2e.process import FailedError, wait_until
from tests.e2e.sitekubelet import SiteKubelet

IMAGE = "registry.example/team/gpu-metrics-adapter"
"""The repository of our image."""
NODES = ("gpu-a", "gpu-b")
POOL = "gpua100"
"""Their label ``agentpool``."""
_EXPORTERS = "gpu-operator"
_MADE = (
    HPAS,
    DEPLOYMENTS,
    "/apis/batch/v1/namespaces/{ns}/cronjobs",
    "/apis/batch/v1/namespaces/{ns}/jobs",
    PODS,
    "/api/v1/namespaces/{ns}/services",
    "/api/v1/namespaces/{ns}/configmaps",
    "/api/v1/namespaces/{ns}/secrets",
)
"""Objects of tests in the default namespace."""
_KEPT = {"default", "kube-system", "kube-public", "kube-node-lease", _EXPORTERS}


class Site:
    """Use as a context manager. It stops everything that it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(
            folder,
            SITE,
            manager=(
                "--horizontal-pod-autoscaler-sync-period=1s",
                # Five minutes otherwise, for a manifest that names none.
                "--horizontal-pod-autoscaler-downscale-stabilization=5s",
            ),
            listener=Listener(API_ADDRESS, 443, SERVICE_SUBNET, pods=True),
        )
        self.admin = self.plane.admin
        self.kubeconfig = self.plane.kubeconfig
        self.load = Load()
        self.exporters: dict[str, Exporter] = {}
        """Node -> its exporter, which a test may stop or break."""
        self._stack = ExitStack()

    def __enter__(self) -> Site:
        with ExitStack() as stack:
            stack.enter_context(self.plane)
            self.kubelet = SiteKubelet(self.admin, NODES, self.folder / "pods")
            stack.callback(self.kubelet.stop)
            for node in NODES:
                # Admission adds it to a node that is not ready: no DaemonSet would run there.
                self.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})
            for node in NODES:
                self._furnish(node)
            ensure_namespace(self.admin, _EXPORTERS)
            for node in NODES:
                stack.callback(self._export(node).stop)
            for namespace in ("default", _EXPORTERS):
                account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
                self.admin.wait(account, bool, f"{namespace} has its account")
            for exporter in self.exporters.values():
                self.admin.create(_exporter_pod(exporter))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def helm(
        self, *arguments: str | Path, values: Mapping[str, Any] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run helm with this cluster. ``check`` raises its error."""
        done = chart.helm(*arguments, f"--kubeconfig={self.kubeconfig}", values=values)
        return self._checked(done, check)

    def kubectl(
        self, *arguments: str | Path, content: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl with this cluster and ``content`` as its input."""
        command = [programs.find(programs.KUBECTL), *arguments]
        done = subprocess.run(
            command,
            input=content,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return self._checked(done, check)

    def shell(self, command: str, folder: Path = programs.ROOT) -> str:
        """Run a shell command, in the repository's root by default; return its output."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return self._checked(done, True).stdout

    def pods(self, selector: str = "") -> list[PodRunner]:
        """Return the running and terminating pods that are processes, oldest first.

        Args:
            selector: comma-separated ``key=value``; all must match.
        """
        rows = [row.partition("=") for row in selector.split(",") if row]
        return [
            pod
            for pod in self.kubelet.ours()
            if all(pod.labels.get(key) == value for key, _, value in rows)
        ]

    def clear(self) -> None:
        """Delete everything that a test has created, and wait until it is deleted.

        Pods get a second to end: no client is left to drain for.
        """
        rows = json.loads(self.helm("list", "--all-namespaces", "--all", "--output=json").stdout)
        for row in rows:
            self.helm("uninstall", row["name"], f"--namespace={row['namespace']}")
        path = "/api/v1/namespaces"
        names = {row["metadata"]["name"] for row in self.admin.get(path)["items"]} - _KEPT
        for name in names:
            self.admin.delete(f"{path}/{name}")
        for kind in _MADE:
            self._empty(kind, "default")
        wait_until(self._bare, f"{names} and all of our pods are gone", 300, 0.5)
        for exporter in self.exporters.values():
            exporter.stop()
            exporter.start()

    def tails(self) -> str:
        """Return the ends of all logs."""
        logs = sorted((self.folder / "pods").glob("*.log"), key=lambda path: path.stat().st_mtime)
        parts = [f"--- {log.stem}\n{log.read_text()[-4000:]}" for log in logs[-6:]]
        return "\n".join([self.plane.tails(), *parts])

    def _empty(self, kind: str, namespace: str) -> None:
        """Delete all objects of a kind in a namespace, except the cluster's own."""
        path = kind.format(ns=namespace)
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "gracePeriodSeconds": 1,
        }
        # The Service of the API server, and the CA bundle of every namespace.
        own = ("kubernetes", "kube-root-ca.crt")
        which = "%2C".join(f"metadata.name%21%3D{name}" for name in own)
        self.admin.request("DELETE", f"{path}?fieldSelector={which}", options)

    def _bare(self) -> bool:
        left = {row["metadata"]["name"] for row in self.admin.get("/api/v1/namespaces")["items"]}
        running = {pod.namespace for pod in self.kubelet.running()} - {_EXPORTERS}
        # A ReplicaSet may create pods until the garbage collector deletes it.
        ours = {pod.namespace for pod in self.pods()}
        for namespace in running | ours:
            self._empty(PODS, namespace)
        return left <= _KEPT and not running and not ours

    def _furnish(self, node: str) -> None:
        """Make it a GPU node of AKS with a device plugin."""
        path = f"/api/v1/nodes/{node}"
        self.admin.patch(path, {"metadata": {"labels": {"agentpool": POOL}}})
        amounts = {"cpu": "24", "memory": "220Gi", "pods": "110", "nvidia.com/gpu": "8"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self.admin.patch(f"{path}/status", {"status": status})

    def _export(self, node: str) -> Exporter:
        address = self.kubelet.reserve(_EXPORTERS, f"dcgm-exporter-{node}")
        host_address(address)
        running = self.kubelet.running
        exporter = Exporter(node, self.load, running, host=address, port=9400)
        self.exporters[node] = exporter
        exporter.start()
        return exporter

    def _environment(self) -> dict[str, str]:
        folders = {str(programs.find(tool).parent) for tool in (programs.HELM, programs.KUBECTL)}
        path = os.pathsep.join([*sorted(folders), os.environ["PATH"]])
        return os.environ | chart.homes() | {"PATH": path, "KUBECONFIG": str(self.kubeconfig)}

    def _checked(
        self, done: subprocess.CompletedProcess[str], check: bool
    ) -> subprocess.CompletedProcess[str]:
        if check and done.returncode:
            output = done.stdout[-8000:] + done.stderr[-4000:]
            raise FailedError(f"{done.args} ended with {done.returncode}: {output}")
        return done


def _exporter_pod(exporter: Exporter) -> Object:
    """Return the pod of an exporter, which is found by the labels of its chart."""
    port = {"name": "metrics", "containerPort": exporter.port}
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.0"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"dcgm-exporter-{exporter.node}",
            "namespace": _EXPORTERS,
            "labels": {
                "app.kubernetes.io/name": "dcgm-exporter",
                "app.kubernetes.io/component": "dcgm-exporter",
            },
        },
        "spec": {
            "nodeName": exporter.node,
            "containers": [
                {
                    "name": "exporter",
                    "image": image,
                    "ports": [port],
                    "env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}],
                }
            ],
        },
    }

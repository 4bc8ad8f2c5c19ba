"""A dcgm-exporter on every node of the lab: a DaemonSet whose pods answer on loopback."""

from __future__ import annotations

import contextlib
import itertools
import threading

import httpx

from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import PODS, Cluster, Object, RefusedError, Watch
from tests.e2e.exporter import Exporter, Load
from tests.e2e.kubelet import RunningPod, running_pod

NAMESPACE = "gpu-operator"
LABELS = {"app.kubernetes.io/name": "dcgm-exporter"}
PORT = 9400


class Fleet:
    """Follows the lab's pods. Each exporter has its own address, from 127.0.1.1 on."""

    def __init__(self, admin: Cluster, load: Load) -> None:
        self._admin = admin
        self._load = load
        self._lock = threading.Lock()
        self._running: dict[str, RunningPod] = {}
        self._exporters: dict[str, Exporter] = {}
        numbers = itertools.count(256 + 1)
        self._addresses = (f"127.0.{number // 256}.{number % 256}" for number in numbers)

    def start(self) -> None:
        """Create the DaemonSet and follow."""
        ensure_namespace(self._admin, NAMESPACE)
        self._admin.create(_daemon_set())
        self._watch = Watch(self._admin, "/api/v1/pods", self._changed)

    def stop(self) -> None:
        """Stop the watch and every exporter."""
        self._watch.stop()
        for exporter in self._exporters.values():
            exporter.stop()

    def pods(self) -> list[RunningPod]:
        """Return the running pods, oldest first."""
        with self._lock:
            return list(self._running.values())

    def _changed(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or pod["status"].get("phase") != "Running":
            with self._lock:
                self._running.pop(uid, None)
            if kind == "DELETED" and uid in self._exporters:
                self._exporters.pop(uid).stop()
            return
        with self._lock:
            self._running.setdefault(uid, running_pod(pod))
        if LABELS.items() <= (pod["metadata"].get("labels") or {}).items():
            self._serve(pod)

    def _serve(self, pod: Object) -> None:
        meta = pod["metadata"]
        if meta["uid"] in self._exporters:
            return
        address = next(self._addresses)
        node = pod["spec"]["nodeName"]
        exporter = Exporter(node, self._load, self.pods, gpus=1, host=address, port=PORT)
        self._exporters[meta["uid"]] = exporter
        exporter.start()
        # The kubelet writes the address, and kwok's stages leave it out.
        with contextlib.suppress(RefusedError, httpx.TransportError):
            path = f"{PODS.format(ns=meta['namespace'])}/{meta['name']}/status"
            self._admin.patch(path, {"status": {"podIP": address, "podIPs": [{"ip": address}]}})


def _daemon_set() -> Object:
    port = {"name": "metrics", "containerPort": PORT}
    requests = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    container = {"name": "exporter", "image": "none", "ports": [port], "resources": requests}
    spec = {
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "dcgm-exporter", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": spec},
        },
    }

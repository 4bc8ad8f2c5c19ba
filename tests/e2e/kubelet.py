"""Scheduler and kubelet in one: pods get a node, run, become ready, and end when deleted."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Sequence
from typing import NamedTuple

import httpx

from adapter.pipeline.cluster.optin import PREFIX
from tests.e2e.cluster import PODS, Cluster, Object, RefusedError, Watch


class RunningPod(NamedTuple):
    """A pod that runs on a simulated node."""

    namespace: str
    name: str
    uid: str
    node: str
    gpus: int
    labels: tuple[tuple[str, str], ...]


class Kubelet:
    """Follows every pod of the cluster until stopped. It creates the nodes first."""

    def __init__(self, admin: Cluster, nodes: Sequence[str]) -> None:
        self._admin = admin
        self._nodes = itertools.cycle(nodes)
        self._lock = threading.Lock()
        self._running: dict[str, RunningPod] = {}
        self._addresses: dict[str, str] = {}
        for name in nodes:
            meta = {"name": name, "labels": {"gpu": "true"}}
            admin.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
        self._watch = Watch(admin, "/api/v1/pods", self._changed)

    def stop(self) -> None:
        """Stop following."""
        self._watch.stop()

    def running(self) -> list[RunningPod]:
        """Return the running pods, oldest first."""
        with self._lock:
            return list(self._running.values())

    def pod_at(self, address: str) -> RunningPod | None:
        """Return the running pod with an address of its own, or None."""
        with self._lock:
            return next(
                (pod for uid, pod in self._running.items() if self._addresses.get(uid) == address),
                None,
            )

    def _changed(self, kind: str, pod: Object) -> None:
        meta = pod["metadata"]
        if kind == "DELETED":
            with self._lock:
                self._running.pop(meta["uid"], None)
            return
        path = f"{PODS.format(ns=meta['namespace'])}/{meta['name']}"
        # A rejected write is repeated with the next change of the pod.
        with contextlib.suppress(RefusedError, httpx.TransportError):
            self._step(pod, path)

    def _step(self, pod: Object, path: str) -> None:
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        if "deletionTimestamp" in meta:
            with self._lock:
                self._running.pop(meta["uid"], None)
            self._admin.delete(path)
        elif not spec.get("nodeName"):
            target = {"kind": "Node", "name": _pinned(spec) or next(self._nodes)}
            name = {"name": meta["name"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": name, "target": target}
            self._admin.request("POST", f"{path}/binding", binding)
        elif status.get("phase") == "Pending":
            ready = {"type": "Ready", "status": "True"}
            running = {"phase": "Running", "podIP": self._address(pod), "conditions": [ready]}
            self._admin.patch(f"{path}/status", {"status": running})
        elif status.get("phase") == "Running":
            with self._lock:
                self._running[meta["uid"]] = running_pod(pod)

    def _address(self, pod: Object) -> str:
        """Return the address for the status of a pod: one of its own if it opts in."""
        if f"{PREFIX}scrape" not in pod["metadata"].get("annotations", {}):
            return "127.0.0.1"
        with self._lock:
            number = len(self._addresses)
            address = f"127.8.{number // 250}.{number % 250 + 1}"
            return self._addresses.setdefault(pod["metadata"]["uid"], address)


def _pinned(spec: Object) -> str:
    """Return the node for which a DaemonSet's controller created a pod, or nothing."""
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = [
        row for term in required.get("nodeSelectorTerms", ()) for row in term.get("matchFields", ())
    ]
    return str(fields[0]["values"][0]) if fields else ""


def running_pod(pod: Object) -> RunningPod:
    """Return the data of a pod with a node for the simulated devices."""
    meta, spec = pod["metadata"], pod["spec"]
    limits = [row.get("resources", {}).get("limits", {}) for row in spec["containers"]]
    gpus = sum(int(limit.get("nvidia.com/gpu", 0)) for limit in limits)
    labels = tuple(sorted((meta.get("labels") or {}).items()))
    return RunningPod(meta["namespace"], meta["name"], meta["uid"], spec["nodeName"], gpus, labels)

"""The HPA controller alone: every case in its own namespace, and a metrics API that a test sets.

Nothing follows the scale targets, so pods stay as the case has them.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from adapter.hpa import PodState, ResourceUsage
from tests.adapter.hpa.cases.case import Case, shifted, shifted_values
from tests.e2e.apiservice import (
    CUSTOM,
    DNS,
    EXTERNAL,
    NAMESPACE,
    ensure_namespace,
    register,
    wait_available,
)
from tests.e2e.cluster import DEPLOYMENTS, PODS, Cluster, Object, Watch
from tests.e2e.controlplane import ControlPlane
from tests.e2e.metricsapi import MetricsApi

RESOURCE = (("metrics.k8s.io", "v1beta1", 100),)
_SERVED = CUSTOM[:1] + EXTERNAL + RESOURCE


class Board:
    """What the watches have seen of every namespace's target and HPA."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.sizes: dict[str, list[int]] = defaultdict(list)
        self.status: dict[str, Object] = {}
        self.statuses: dict[str, list[Object]] = defaultdict(list)
        """Every status, in order."""

    def target(self, kind: str, obj: Object) -> None:
        """Take a change of a Deployment; its sizes form the trajectory."""
        namespace, size = obj["metadata"]["namespace"], obj["spec"]["replicas"]
        with self.changed:
            sizes = self.sizes[namespace]
            if kind != "DELETED" and (not sizes or sizes[-1] != size):
                sizes.append(size)
            self.changed.notify_all()

    def hpa(self, _: str, obj: Object) -> None:
        """Take a change of an HPA."""
        with self.changed:
            namespace, status = obj["metadata"]["namespace"], obj.get("status", {})
            if obj["metadata"]["name"] != "hpa":
                return
            if self.status.get(namespace) != status:
                self.statuses[namespace].append(status)
            self.status[namespace] = status
            self.changed.notify_all()


class HpaStage(NamedTuple):
    """The running parts."""

    plane: ControlPlane
    api: MetricsApi
    board: Board

    @property
    def admin(self) -> Cluster:
        """The cluster as its administrator."""
        return self.plane.admin

    def build(self, namespace: str, case: Case) -> None:
        """Create the scale target and the pods of a case."""
        ensure_namespace(self.admin, namespace)
        replicas = case.replicas if case.status_replicas is None else case.status_replicas
        self.admin.create(_deployment(namespace, case.replicas))
        path = f"{DEPLOYMENTS.format(ns=namespace)}/target/status"
        self.admin.patch(path, {"status": {"replicas": replicas}})
        requests = _requests(case)
        now = time.time()
        for pod in case.pods:
            self._pod(namespace, shifted(pod, now), requests.get(pod.name, ""))

    def feed(self, namespace: str, case: Case, phase: int = 0) -> None:
        """Let the metrics API answer with the values of a phase."""
        now = time.time()
        values = [shifted_values(answer, now, namespace) for answer in case.phases[phase]]
        self.api.values[namespace] = dict(zip(metric_names(case), values, strict=True))

    def _pod(self, namespace: str, pod: PodState, request: str) -> None:
        path = f"{PODS.format(ns=namespace)}/{pod.name}"
        # A finalizer keeps a deleted pod in sight.
        held = {"finalizers": ["test.example/held"]} if pod.deleting else {}
        meta = {"name": pod.name, "namespace": namespace, "labels": {"app": "target"}, **held}
        spec = _SPEC
        if request:
            resources = {"requests": {"cpu": request, "memory": request}}
            spec = {"containers": [_SPEC["containers"][0] | {"resources": resources}]}
        self.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        ready: Object = {"type": "Ready", "status": "True" if pod.ready else "False"}
        status: Object = {"phase": pod.phase, "conditions": [ready]}
        if pod.ready_since is not None:
            ready["lastTransitionTime"] = _timestamp(pod.ready_since)
        if pod.started is not None:
            status["startTime"] = _timestamp(pod.started)
        self.admin.patch(f"{path}/status", {"status": status})
        if pod.deleting:
            self.admin.delete(path)


_SPEC: Object = {"containers": [{"name": "main", "image": "none"}]}


def _requests(case: Case) -> dict[str, str]:
    """Pod name to its request, as the quantity of one container."""
    usages = [answer for answer in case.phases[0] if isinstance(answer, ResourceUsage)]
    return {name: f"{milli}m" for usage in usages for name, milli in usage.requests.items()}


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _deployment(namespace: str, replicas: int) -> Object:
    labels = {"app": "target"}
    template = {"metadata": {"labels": labels}, "spec": _SPEC}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "target", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def metric_names(case: Case) -> list[str]:
    """Return the name under which each metric of a case is asked for."""
    return [_name(metric) for metric in case.metrics]


def _name(metric: dict[str, Any]) -> str:
    source = metric[metric["type"][0].lower() + metric["type"][1:]]
    return str(source["name"] if "name" in source else source["metric"]["name"])


@contextmanager
def hpa_stage(folder: Path) -> Iterator[HpaStage]:
    """Run a control plane with the HPA controller alone, which syncs every second."""
    plane = ControlPlane(
        folder,
        controllers=("horizontal-pod-autoscaler-controller",),
        manager=(
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--concurrent-horizontal-pod-autoscaler-syncs=20",
        ),
        gates="HPAScaleToZero=true",
    )
    serving = plane.ca.issue("metrics-api", server=True, dns=DNS)
    api, board = MetricsApi(serving), Board()
    api.start()
    watches: list[Watch] = []
    try:
        with plane:
            ensure_namespace(plane.admin, NAMESPACE)
            register(plane.admin, api.port, plane.ca.pem, _SERVED)
            wait_available(plane.admin, _SERVED)
            watches.append(Watch(plane.admin, "/apis/apps/v1/deployments", board.target))
            watches.append(
                Watch(plane.admin, "/apis/autoscaling/v2/horizontalpodautoscalers", board.hpa)
            )
            yield HpaStage(plane, api, board)
            for watch in watches:
                watch.stop()
    finally:
        api.stop()

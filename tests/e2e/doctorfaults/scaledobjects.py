"""Faults of ScaledObjects (GMA427 to GMA429). KEDA's operator does not run: its part is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.e2e import crds
from tests.e2e.cluster import Object
from tests.e2e.doctorfaults.register import CHAT, fault, zero
from tests.e2e.pagestand import made
from tests.e2e.site import Site

NAME = "queue"
PATH = f"/apis/keda.sh/v1alpha1/namespaces/{CHAT}/scaledobjects/{NAME}"
READY = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": "is ready"}
OURS = {
    "scalerAddress": "gpu-metrics-adapter.gpu-metrics:6000",
    "metric": "gpu_utilization",
    "target": "70",
}


@contextlib.contextmanager
def scaled_object(
    site: Site, ready: Object, kind: str = "external", notes: Object | None = None, **trigger: str
) -> Iterator[None]:
    """A ScaledObject with one trigger, the HPA that KEDA makes for it unless it is not ready or is
    paused, and their target.
    """
    crds.install(site.admin, crds.KEDA)
    row = {"type": kind, "metadata": trigger if kind == "prometheus" else OURS | trigger}
    if kind == "prometheus":
        row["metricType"] = "Value"  # which fits the mean of the query
    spec: dict[str, Any] = {
        "scaleTargetRef": {"name": NAME},
        "minReplicaCount": 1,
        "triggers": [row],
    }
    meta = {"name": NAME, "namespace": CHAT, "annotations": notes or {}}
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": meta,
        "spec": spec,
    }
    with made(site, zero(NAME), scaled):
        uid = site.admin.patch(f"{PATH}/status", {"status": {"conditions": [ready]}})["metadata"]
        objects = [] if notes or ready["status"] != "True" else [_hpa(uid["uid"])]
        with made(site, *objects):
            yield


def _hpa(uid: str) -> Object:
    """The HPA as KEDA makes it."""
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": NAME, "uid": uid}
    labels = {"scaledobject.keda.sh/name": NAME}
    metric = {"name": "s0-gpu_utilization", "selector": {"matchLabels": labels}}
    target = {"type": "AverageValue", "averageValue": "70"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": f"keda-hpa-{NAME}",
            "namespace": CHAT,
            "labels": labels,
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "minReplicas": 1,
            "maxReplicas": 100,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
        },
    }


@fault("GMA427")
def a_scaledobject_that_is_not_ready(site: Site) -> Iterator[None]:
    why = {"reason": "ScaledObjectCheckFailed", "message": "Triggers defined in ScaledObject are"}
    with scaled_object(site, READY | {"status": "False"} | why):
        yield


@fault("GMA427")
def a_scaledobject_that_is_paused(site: Site) -> Iterator[None]:
    with scaled_object(site, READY, notes={"autoscaling.keda.sh/paused": "true"}):
        yield


@fault("GMA428", also=("GMA444",))
def a_trigger_with_the_port_of_the_metrics_api(site: Site) -> Iterator[None]:
    """The Service of the address has no port for KEDA at all."""
    address = "gpu-metrics-adapter.gpu-metrics:443"
    with scaled_object(site, READY, scalerAddress=address):
        yield


@fault("GMA429", also=("GMA444",))
def a_query_that_takes_no_answer_for_0(site: Site) -> Iterator[None]:
    query = "avg(DCGM_FI_DEV_GPU_UTIL)"
    server = "http://prometheus.monitoring:9090"
    with scaled_object(
        site, READY, "prometheus", serverAddress=server, query=query, threshold="70"
    ):
        yield

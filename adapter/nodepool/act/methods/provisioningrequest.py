"""A large increase at once: a ProvisioningRequest of the cluster-autoscaler (1.30.2 and later).

It is opt-in and for Jobs only: a request is immutable and used once, its reservation ends after
10 minutes, and an HPA adds its pods gradually. Karpenter does not implement it.
"""

from __future__ import annotations

from typing import Final

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.plan.order import Order

API: Final = "autoscaling.x-k8s.io/v1"
CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def wanted(order: Order, least: int | None) -> bool:
    """Return whether to use a request for an order: only for a large increase, for Jobs only."""
    jobs = all(workload.kind == "Job" for workload in order.workloads)
    return least is not None and jobs and order.replicas - order.was >= least


def manifests(
    order: Order, lifeline: Lifeline, image: str, step: int
) -> tuple[KubeObject, KubeObject]:
    """Return the PodTemplate and the ProvisioningRequest. ``step`` makes the name unique."""
    meta = headroomobjects.metadata(order, lifeline, None)
    meta["name"] = f"{meta['name']}-{step}"
    request: KubeObject = {
        "apiVersion": API,
        "kind": "ProvisioningRequest",
        "metadata": meta,
        "spec": {
            "provisioningClassName": CLASS,
            "podSets": [
                {"count": order.replicas - order.was, "podTemplateRef": {"name": meta["name"]}}
            ],
        },
    }
    return headroomobjects.pod_template(meta, headroomobjects.pause_pod(order, image)), request

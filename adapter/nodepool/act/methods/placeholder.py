"""Headroom as pause pods with a low priority. This method works in every cluster.

Pods of the workload preempt them immediately, and the autoscaler adds capacity for the preempted
pods. This requires a priority below the workload's and not below -10, the default of the
cluster-autoscaler's ``--expendable-pods-priority-cutoff``: for pods below that, it never scales
up, and it removes nodes that run only such pods.
"""

from __future__ import annotations

from typing import Final

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.model import names
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.priorityclasses import PriorityClass

CUTOFF: Final = -10


def refusal(name: str, priority_class: PriorityClass | None, shape: Shape) -> str:
    """Return why placeholders of this class cannot work, with the fix; empty if they can."""
    if priority_class is None:
        return (
            f"PriorityClass {name} does not exist: create it with value {CUTOFF} and "
            f"preemptionPolicy Never (the chart does)"
        )
    if priority_class.value < CUTOFF:
        return (
            f"PriorityClass {name} has value {priority_class.value}: the cluster-autoscaler "
            f"ignores pods below {CUTOFF} and removes their nodes; set the value to {CUTOFF}"
        )
    if priority_class.value >= shape.priority:
        return (
            f"PriorityClass {name} has value {priority_class.value}, not below the workload's "
            f"{shape.priority}: its pods could not preempt the placeholders; give the workload a "
            f"higher priority, or the class a value of {CUTOFF}"
        )
    if priority_class.preempts:
        return (
            f"PriorityClass {name} has preemptionPolicy PreemptLowerPriority: placeholders could "
            f"evict pods; set it to Never"
        )
    return ""


def manifest(order: Order, lifeline: Lifeline, image: str, priority_class: str) -> KubeObject:
    """Return the Deployment of placeholders.

    It has the shape's tolerations explicitly, because not every cluster has the admission plug-in
    ExtendedResourceToleration (AKS does not).
    """
    selector = {names.HEADROOM: headroomobjects.labels(order)[names.HEADROOM]}
    spec = headroomobjects.pause_pod(order, image) | {
        "priorityClassName": priority_class,
        "preemptionPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "enableServiceLinks": False,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": headroomobjects.metadata(order, lifeline, None),
        "spec": {
            "replicas": order.replicas,
            "revisionHistoryLimit": 0,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {
                    "labels": headroomobjects.labels(order),
                    # Without it, the autoscaler keeps an idle node that runs only placeholders.
                    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
                },
                "spec": spec,
            },
        },
    }

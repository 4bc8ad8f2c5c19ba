"""Headroom as pause pods of low priority. This method works in every cluster.

Pods of the workload preempt them at once, and the autoscaler makes room for the preempted
ones. It works only while their priority is below the workload's and not below -10, the
cluster-autoscaler's ``--expendable-pods-priority-cutoff``: it never scales up for pods
below that, and removes the node under them.
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


def refusal(name: str, found: PriorityClass | None, shape: Shape) -> str:
    """Why placeholders of this class would do harm or nothing, with the fix; empty if not."""
    if found is None:
        return (
            f"PriorityClass {name} is not there: create it with value {CUTOFF} and "
            f"preemptionPolicy Never (the chart does)"
        )
    if found.value < CUTOFF:
        return (
            f"PriorityClass {name} has value {found.value}: the cluster-autoscaler ignores pods "
            f"below {CUTOFF} and removes the node under them; give it {CUTOFF}"
        )
    if found.value >= shape.priority:
        return (
            f"PriorityClass {name} has value {found.value}, not below the workload's "
            f"{shape.priority}: its pods could not preempt the placeholders; give the workload a "
            f"higher priority, or the class a value of {CUTOFF}"
        )
    if found.preempts:
        return (
            f"PriorityClass {name} has preemptionPolicy PreemptLowerPriority: placeholders could "
            f"evict pods; give it Never"
        )
    return ""


def manifest(order: Order, lifeline: Lifeline, image: str, priority_class: str) -> KubeObject:
    """The Deployment of placeholders.

    Tolerations are the shape's own, explicitly: not every cluster has the admission plug-in
    ExtendedResourceToleration (AKS has not).
    """
    own = {names.HEADROOM: headroomobjects.labels(order)[names.HEADROOM]}
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
            "selector": {"matchLabels": own},
            "template": {
                "metadata": {
                    "labels": headroomobjects.labels(order),
                    # An idle node under placeholders alone would else be kept for them.
                    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
                },
                "spec": spec,
            },
        },
    }

"""Headroom as pause pods of low priority: every cluster has this way.

Pods of the workload preempt them at once, and the autoscaler makes room for the preempted
ones. It works only while their priority is below the workload's and not below -10, the
cluster-autoscaler's ``--expendable-pods-priority-cutoff``: it never scales up for pods
below that, and removes the node under them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from adapter.cluster.table import Table
from adapter.nodepool.lifeline import Lifeline
from adapter.nodepool.plan import Order
from adapter.nodepool.seen.meta import Meta
from adapter.nodepool.serverside import Object
from adapter.nodepool.shape import Shape
from adapter.nodepool.ways import headroomobjects, names

CUTOFF: Final = -10
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass."""

    name: str
    value: int
    preempts: bool
    default: bool
    """Of pods that name none."""

    @property
    def key(self) -> str:
        """The name."""
        return self.name


PriorityClasses = Table[str, PriorityClass]


class _Class(msgspec.Struct, rename="camel"):
    metadata: Meta
    value: int
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


_class = msgspec.json.Decoder(_Class)


def decode_class(raw: msgspec.Raw | bytes) -> PriorityClass:
    """A PriorityClass from its JSON; raises msgspec.DecodeError."""
    row = _class.decode(raw)
    preempts = row.preemption_policy != "Never"
    return PriorityClass(row.metadata.name, row.value, preempts, row.global_default)


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


def manifest(order: Order, lifeline: Lifeline, image: str, priority_class: str) -> Object:
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

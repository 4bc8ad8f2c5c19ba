"""Orders of a plan, and the objects that they become."""

from __future__ import annotations

from typing import Any

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.model import names
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.podspec import shape_of
from tests.adapter.nodepool.manifests import SPEC, T0

LIFELINE = Lifeline("gpu-metrics", "uid-lifeline", T0 + 900)
PROBE_JOB = Lifeline("gpu-metrics", "uid-probe", T0 + 1485, names.PROBE)
SHAPE = shape_of(SPEC | {"tolerations": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]})


def order(replicas: int = 2, was: int = 0, shape: Shape = SHAPE, **more: Any) -> Order:
    return Order(
        **{
            "namespace": "team",
            "shape": shape,
            "pool": "gput4",
            "replicas": replicas,
            "was": was,
            "pods": 2,
            "reckoned": 2,
            "needed_at": T0,
            "workloads": (WorkloadRef("team", "Deployment", "inference"),),
            "about": ("Deployment/inference",),
            "reasons": (Reason("need", "4 pods are needed now"),),
            **more,
        }
    )


def stored(shape: Shape = SHAPE, replicas: int = 2, **more: Any) -> dict[str, Any]:
    """A headroom object of any kind."""
    meta = headroomobjects.metadata(order(replicas, shape=shape, **more), LIFELINE, None)
    return {"metadata": meta, "spec": {"replicas": replicas}}

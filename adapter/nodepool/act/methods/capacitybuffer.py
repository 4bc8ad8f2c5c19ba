"""Headroom as a CapacityBuffer with its PodTemplate (``autoscaling.x-k8s.io``).

Only ``replicas`` is set: of replicas, percentage and limits the cluster-autoscaler takes the
smallest and Karpenter the largest.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.model import names
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.headroom import BUFFER_GROUP, HeadroomObject
from adapter.nodepool.seen.meta import ObjectCondition


def manifests(
    order: Order, version: str, lifeline: Lifeline, image: str, nudged_at: float | None
) -> tuple[KubeObject, KubeObject]:
    """The PodTemplate and the CapacityBuffer, in the order in which they are applied."""
    meta = headroomobjects.metadata(order, lifeline, nudged_at)
    template: KubeObject = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        # Of the lasting facts only: the template's own words would be a write each round.
        "metadata": meta | {"annotations": {}},
        "template": {
            "metadata": {"labels": headroomobjects.labels(order)},
            "spec": headroomobjects.pause_pod(order, image),
        },
    }
    return template, buffer(meta, version, order.replicas)


def buffer(meta: KubeObject, version: str, replicas: int) -> KubeObject:
    """A CapacityBuffer of the PodTemplate of the same name."""
    return {
        "apiVersion": f"{BUFFER_GROUP}/{version}",
        "kind": "CapacityBuffer",
        "metadata": meta,
        "spec": {"podTemplateRef": {"name": meta["name"]}, "replicas": replicas},
    }


def probe(
    namespace: str, version: str, lifeline: Lifeline, image: str
) -> tuple[KubeObject, KubeObject]:
    """A PodTemplate and a CapacityBuffer of 0 replicas: a controller that serves buffers sets
    its status."""
    meta: KubeObject = {
        "name": names.PROBE,
        "namespace": namespace,
        "labels": {
            "app.kubernetes.io/managed-by": names.MANAGER,
            names.HEADROOM: "probe",
        },
        "annotations": {names.WHY: "of no replicas: shows whether CapacityBuffers are served"},
        "ownerReferences": [lifeline.reference()],
    }
    template: KubeObject = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": meta,
        "template": {
            "metadata": {"labels": meta["labels"]},
            "spec": {
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "headroom",
                        "image": image,
                        "resources": {"requests": {"cpu": "1m"}},
                        "securityContext": headroomobjects.NOTHING_ALLOWED,
                    }
                ],
            },
        },
    }
    return template, buffer(meta, version, 0)


def served(conditions: Mapping[str, ObjectCondition]) -> bool:
    """Whether a controller has taken the buffer up."""
    ready = conditions.get("ReadyForProvisioning")
    return ready is not None and ready.status == "True"


def shortfall(found: HeadroomObject) -> str:
    """Why the autoscaler cannot have all that a buffer asks for; empty where it does not say so.

    Both autoscalers' conditions are as autoscaler-lab.md measured them: no condition says that
    capacity *is* there.
    """
    provisioning = found.conditions.get("Provisioning")
    if provisioning is not None and provisioning.status == "False":
        failed = provisioning.message.rpartition(",")[2].strip()
        if provisioning.reason == "RequiresNewCapacity" and failed not in ("", "0 failed"):
            return f"pool at its limit: {provisioning.reason}: {provisioning.message}"
    quotas = found.conditions.get("LimitedByQuotas")
    if quotas is not None and quotas.status == "True":
        return f"{quotas.reason}: {quotas.message}"
    ready = found.conditions.get("ReadyForProvisioning")
    if ready is not None and ready.status == "False":
        return f"not ready for provisioning: {ready.reason}: {ready.message}"
    return ""

"""Headroom as a CapacityBuffer with its PodTemplate (``autoscaling.x-k8s.io``).

Only ``replicas`` is set. If replicas, percentage and limits are all set, the cluster-autoscaler
uses the smallest and Karpenter the largest.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.model import names
from adapter.nodepool.model.names import BUFFER_GROUP
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.meta import ObjectCondition


def manifests(
    order: Order, version: str, lifeline: Lifeline, image: str, nudged_at: float | None
) -> tuple[KubeObject, KubeObject]:
    """Return the PodTemplate and the CapacityBuffer, in the order in which they are applied."""
    meta = headroomobjects.metadata(order, lifeline, nudged_at)
    # Only facts that rarely change: otherwise each round would write the template.
    template = headroomobjects.pod_template(
        meta | {"annotations": {}}, headroomobjects.pause_pod(order, image)
    )
    return template, buffer(meta, version, order.replicas)


def buffer(meta: KubeObject, version: str, replicas: int) -> KubeObject:
    """Return a CapacityBuffer for the PodTemplate of the same name."""
    return {
        "apiVersion": f"{BUFFER_GROUP}/{version}",
        "kind": "CapacityBuffer",
        "metadata": meta,
        "spec": {"podTemplateRef": {"name": meta["name"]}, "replicas": replicas},
    }


def probe(
    namespace: str, version: str, lifeline: Lifeline, image: str
) -> tuple[KubeObject, KubeObject]:
    """Return a PodTemplate and a CapacityBuffer with 0 replicas.

    A controller that implements buffers sets the status of the buffer.
    """
    meta: KubeObject = {
        "name": names.PROBE,
        "namespace": namespace,
        "labels": {
            "app.kubernetes.io/managed-by": names.MANAGER,
            names.HEADROOM: "probe",
        },
        "annotations": {
            names.WHY: "has 0 replicas; shows whether a controller implements CapacityBuffers"
        },
        "ownerReferences": [lifeline.reference()],
    }
    container = {
        "name": "headroom",
        "image": image,
        "resources": {"requests": {"cpu": "1m"}},
        "securityContext": headroomobjects.NOTHING_ALLOWED,
    }
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    return headroomobjects.pod_template(meta, spec), buffer(meta, version, 0)


def served(conditions: Mapping[str, ObjectCondition]) -> bool:
    """Return whether a controller has accepted the buffer."""
    ready = conditions.get("ReadyForProvisioning")
    return ready is not None and ready.status == "True"


def shortfall(found: HeadroomObject) -> str:
    """Return why the autoscaler cannot provide all of a buffer; empty if it reports no reason.

    The conditions are those that autoscaler-lab.md measured for both autoscalers. No condition
    reports that the capacity exists.
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

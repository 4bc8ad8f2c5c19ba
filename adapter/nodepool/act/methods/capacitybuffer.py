"""Headroom as a CapacityBuffer with its PodTemplate (``autoscaling.x-k8s.io``).

Only ``replicas`` is set. If replicas, percentage and limits are all set, the cluster-autoscaler
uses the smallest and Karpenter the largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.model import names
from adapter.nodepool.model.names import BUFFER_GROUP
from adapter.nodepool.plan.order import Order, Tie
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.pipeline.cluster.objects import SeenCondition

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_NODE: Final = "gpu-headroom-none"
"""The name of no node, while all nodes boot."""


def manifests(
    order: Order, version: str, lifeline: Lifeline, image: str, nudged_at: float | None
) -> tuple[KubeObject, KubeObject]:
    """Return the PodTemplate and the CapacityBuffer, in the order in which they are applied."""
    meta = headroomobjects.metadata(order, lifeline, nudged_at)
    # Only facts that rarely change: otherwise each round would write the template.
    spec = headroomobjects.pause_pod(order, image)
    if order.tie is not None:
        _tie(spec, order.tie)
    template = headroomobjects.pod_template(meta | {"annotations": {}}, spec)
    replicas = order.replicas if order.tie is None else order.tie.pods
    return template, buffer(meta, version, replicas)


def _tie(spec: KubeObject, tie: Tie) -> None:
    """Let a pod run only on, or only beside, some nodes, in addition to its own requirements."""
    # ``matchFields`` take one name each. Terms are alternatives; all fields of a term must match.
    rules = [
        {"key": "metadata.name", "operator": "In" if tie.only else "NotIn", "values": [name]}
        for name in tie.nodes or (_NO_NODE,)
    ]
    choices = [[rule] for rule in rules] if tie.only else [rules]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = affinity.get(_REQUIRED, {"nodeSelectorTerms": [{}]})["nodeSelectorTerms"]
    affinity[_REQUIRED] = {
        "nodeSelectorTerms": [
            term | {"matchFields": [*term.get("matchFields", ()), *choice]}
            for term in terms
            for choice in choices
        ]
    }


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


def is_accepted(conditions: Mapping[str, SeenCondition]) -> bool:
    """Return whether a controller has accepted the buffer."""
    ready = conditions.get("ReadyForProvisioning")
    return ready is not None and ready.status == "True"


def shortfall(capacity_buffer: HeadroomObject) -> str:
    """Return why the autoscaler cannot provide all of a buffer; empty if it reports no reason.

    The conditions are those that autoscaler-lab.md measured for both autoscalers. No condition
    reports that the capacity exists.
    """
    provisioning = capacity_buffer.conditions.get("Provisioning")
    if provisioning is not None and provisioning.status == "False":
        failed = provisioning.message.rpartition(",")[2].strip()
        if provisioning.reason == "RequiresNewCapacity" and failed not in ("", "0 failed"):
            return f"pool at its limit: {provisioning.reason}: {provisioning.message}"
    quotas = capacity_buffer.conditions.get("LimitedByQuotas")
    if quotas is not None and quotas.status == "True":
        return f"{quotas.reason}: {quotas.message}"
    ready = capacity_buffer.conditions.get("ReadyForProvisioning")
    if ready is not None and ready.status == "False":
        return f"not ready for provisioning: {ready.reason}: {ready.message}"
    return ""

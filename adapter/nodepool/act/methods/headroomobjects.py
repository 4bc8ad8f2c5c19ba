"""Name, labels and annotations of headroom objects, the same for every provisioning method."""

from __future__ import annotations

from typing import Final

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.serverside import KubeObject
from adapter.nodepool.model import names
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.shape import key
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.headroom import HeadroomObject, shape_text
from adapter.nodepool.seen.podspec import pod_spec
from apiservice.wire import instant

NOTHING_ALLOWED: Final[KubeObject] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""``securityContext`` of every container; the chart's admission policy requires it."""
_NOTE_EVERY = 60.0
"""Seconds between writes if only ``needed-at`` changes."""
_LONGEST = 1000
"""Maximum characters of an annotation for people."""


def name_of(order: Order) -> str:
    """Return the name of an order's objects."""
    return names.headroom_name(_key(order))


def _key(order: Order) -> str:
    return names.headroom_key(order.namespace, key(order.shape))


def metadata(order: Order, lifeline: Lifeline, nudged_at: float | None) -> KubeObject:
    """Return ``metadata`` of a headroom object. It is in the namespace of its lifeline."""
    annotations = {
        names.SHAPE: shape_text(order.shape),
        names.POOL: order.pool,
        names.PODS: str(order.reckoned),
        names.NEEDED_AT: instant.write(order.needed_at),
        names.WHY: order.why[:_LONGEST],
        names.WORKLOADS: ", ".join(order.about)[:_LONGEST],
    }
    if order.tie is not None:
        annotations[names.TIED] = str(order.tie)
        if order.tie.pods != order.replicas:
            annotations[names.REPLICAS] = str(order.replicas)
    if nudged_at is not None:
        annotations[names.NUDGED_AT] = instant.write(nudged_at)
    return {
        "name": name_of(order),
        "namespace": lifeline.namespace,
        "labels": labels(order),
        "annotations": annotations,
        "ownerReferences": [lifeline.reference()],
    }


def labels(order: Order) -> dict[str, str]:
    """Return the labels of a headroom object, of its pod template and of placeholder pods."""
    return {
        "app.kubernetes.io/managed-by": names.MANAGER,
        "app.kubernetes.io/component": "gpu-headroom",
        names.HEADROOM: _key(order),
        names.SERVES: order.namespace,
    }


def pod_template(metadata: KubeObject, spec: KubeObject) -> KubeObject:
    """Return a PodTemplate whose pods have its labels."""
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": metadata,
        "template": {"metadata": {"labels": metadata["labels"]}, "spec": spec},
    }


def pause_pod(order: Order, image: str) -> KubeObject:
    """Return the spec of a pause pod of the order's shape."""
    spec: KubeObject = pod_spec(order.shape)
    (container,) = spec["containers"]
    container["image"] = image
    container["securityContext"] = NOTHING_ALLOWED
    return spec


def worth_a_write(
    order: Order, current: HeadroomObject | None, method: ProvisioningMethod, lifeline: Lifeline
) -> bool:
    """Return whether the object differs from the order in more than texts."""
    if current is None or current.method is not method:
        return True
    tie = None if order.tie is None else (str(order.tie), order.tie.pods)
    return (
        order.nudge
        # Without its lifeline, the object would never be deleted.
        or lifeline.uid not in current.owners
        or current.replicas != order.replicas
        or current.pods != order.reckoned
        or current.pool != order.pool
        or current.tie != tie
        or abs(order.needed_at - current.needed_at) >= _NOTE_EVERY
    )

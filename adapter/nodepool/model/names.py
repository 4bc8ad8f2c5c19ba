"""Names, labels and annotations of the objects that this controller writes."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from adapter.pipeline.cluster import placeholder

HEADROOM: Final = placeholder.HEADROOM
"""Label of every headroom object and placeholder pod: :func:`headroom_key`."""
MANAGER: Final = "gpu-metrics-adapter-nodepool"
"""The field manager of every write."""

BUFFER_GROUP: Final = "autoscaling.x-k8s.io"
"""API group of CapacityBuffers."""
BUFFER_VERSIONS: Final = ("v1beta1", "v1alpha1")

SERVES: Final = "gpu-metrics-adapter.io/workload-namespace"
"""Label: the namespace of the workloads that the headroom is for."""
SHAPE: Final = "gpu-metrics-adapter.io/shape"
"""Annotation: the shape itself, as JSON."""
POOL: Final = "gpu-metrics-adapter.io/pool"
NEEDED_AT: Final = "gpu-metrics-adapter.io/needed-at"
"""Annotation: when a plan last needed at least this headroom; the hold starts then."""
PODS: Final = "gpu-metrics-adapter.io/pods"
"""Annotation: pods of the shape that the order assumed."""
WHY: Final = "gpu-metrics-adapter.io/why"
WORKLOADS: Final = "gpu-metrics-adapter.io/workloads"
NUDGED_AT: Final = "gpu-metrics-adapter.io/nudged-at"
"""Annotation that only changes the object: Karpenter then refills a consumed buffer immediately,
and otherwise at its resync every 30 s."""

FLOOR: Final = "gpu-metrics-adapter.io/headroom"
"""Annotation of an HPA: minimum headroom pods of its workload."""

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

LIFELINE: Final = "gpu-headroom-lifeline"
"""The Job that owns all headroom of its namespace."""
PROBE: Final = "gpu-headroom-probe"


def headroom_key(namespace: str, shape: str) -> str:
    """Return ten hexadecimal digits that identify a shape in a workload's namespace.

    Args:
        shape: the key from :func:`adapter.nodepool.model.shape.key`.
    """
    return sha256(f"{namespace}/{shape}".encode()).hexdigest()[:10]


def headroom_name(key: str) -> str:
    """Return the name of headroom objects. ``key`` is from :func:`headroom_key`."""
    return f"gpu-headroom-{key}"

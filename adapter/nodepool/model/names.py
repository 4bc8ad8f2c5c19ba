"""Names, labels and annotations of everything that this controller writes."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

MANAGER: Final = "gpu-metrics-adapter-nodepool"
"""The one field manager of every write."""

HEADROOM: Final = "gpu-metrics-adapter.io/headroom"
"""Label of every headroom object and placeholder pod: :func:`headroom_key`."""
SERVES: Final = "gpu-metrics-adapter.io/workload-namespace"
"""Label: the namespace of the workloads that the headroom is for."""
SHAPE: Final = "gpu-metrics-adapter.io/shape"
"""Annotation: the shape itself, as JSON."""
POOL: Final = "gpu-metrics-adapter.io/pool"
NEEDED_AT: Final = "gpu-metrics-adapter.io/needed-at"
"""Annotation: when a plan last wanted at least as much; the hold counts from it."""
PODS: Final = "gpu-metrics-adapter.io/pods"
"""Annotation: pods of the shape that the order reckoned with."""
WHY: Final = "gpu-metrics-adapter.io/why"
WORKLOADS: Final = "gpu-metrics-adapter.io/workloads"
NUDGED_AT: Final = "gpu-metrics-adapter.io/nudged-at"
"""Annotation without a meaning of its own: Karpenter refills a consumed buffer at once when the
object changes, else at its resync every 30 s."""

FLOOR: Final = "gpu-metrics-adapter.io/headroom"
"""Annotation of an HPA: fewest headroom pods of its workload."""

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

LIFELINE: Final = "gpu-headroom-lifeline"
"""The Job that owns all headroom of its namespace."""
PROBE: Final = "gpu-headroom-probe"


def headroom_key(namespace: str, shape: str) -> str:
    """Ten hexadecimal digits that stand for a shape of a workload's namespace.

    Args:
        shape: its key, as of :func:`adapter.nodepool.model.shape.key`.
    """
    return sha256(f"{namespace}/{shape}".encode()).hexdigest()[:10]


def headroom_name(key: str) -> str:
    """The name of headroom objects; ``key`` as of :func:`headroom_key`."""
    return f"gpu-headroom-{key}"

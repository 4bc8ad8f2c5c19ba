"""Placeholder pods: pods without work that hold room for others, which may preempt them.

nodepool's own, and those of overprovisioning: the cluster-autoscaler's FAQ ("How can I configure
overprovisioning with Cluster Autoscaler?") and the charts made of it, such as deliveryhero's
cluster-overprovisioner, run the pause image with a priority below 0. A GPU that only they hold is
free: it is neither idle nor part of a mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

HEADROOM: Final = "gpu-metrics-adapter.io/headroom"
"""Label of every headroom object and placeholder pod of nodepool."""
_PAUSE: Final = re.compile(r"(?:^|/)(?:mirrored-)?pause(?:-(?:amd64|arm64))?(?:[:@].*)?$")
"""The pause image, in every registry that mirrors it."""
_NAMES: Final = ("app.kubernetes.io/name", "app", "k8s-app", "run")
_OVERPROVISIONING: Final = re.compile(r"over-?provision", re.IGNORECASE)


def is_placeholder(labels: Mapping[str, str], images: Iterable[str], priority: int | None) -> bool:
    """Return whether a pod only holds room.

    A label is not enough: a tenant could hide idle GPUs with it.

    Args:
        labels: of the pod.
        images: of its containers, sidecars included.
        priority: the resolved one; None if it is not known.
    """
    every = list(images)
    if every and all(map(_PAUSE.search, every)):
        return True
    if priority is None or priority >= 0:
        return False
    return HEADROOM in labels or any(
        _OVERPROVISIONING.search(labels.get(name, "")) for name in _NAMES
    )


class MaybePlaceholder(Protocol):
    """A pod."""

    @property
    def placeholder(self) -> bool:
        """Whether it only holds room."""


P = TypeVar("P", bound=MaybePlaceholder)


def working_pods(pods: Sequence[P]) -> Sequence[P]:
    """Return the pods without the placeholders; all of them if there are only placeholders."""
    pods_at_work = [pod for pod in pods if not pod.placeholder]
    return pods_at_work if pods_at_work and len(pods_at_work) < len(pods) else pods

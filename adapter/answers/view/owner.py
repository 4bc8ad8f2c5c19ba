"""The workload above a pod, as far as the pod's own manifest shows it."""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.pipeline.cluster.lookup import workload_kind
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import Workload, workloads

_STATIC: Final = "Node"
"""Owner of a static pod, which is not a workload."""


class Above(NamedTuple):
    """The topmost workload that a pod is known to belong to."""

    api_version: str
    kind: str
    name: str


def topmost_workload(pod: Pod) -> Above | None:
    """Return the topmost workload of a pod; None for a bare pod."""
    above = scalable_workloads(pod)
    return Above(*workload_kind(above[-1].resource, pod), above[-1].name) if above else None


def scalable_workloads(pod: Pod) -> tuple[Workload, ...]:
    """Return every workload of a pod that an HPA may scale, the topmost last."""
    return () if pod.owner is None or pod.owner.kind == _STATIC else workloads(pod)

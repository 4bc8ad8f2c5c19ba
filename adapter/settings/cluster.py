"""The Kubernetes API."""

from __future__ import annotations

from pathlib import Path

from adapter.cluster.manifest import GPU_RESOURCES
from adapter.settings.types import Interval, Section


class ClusterSettings(Section):
    """The Kubernetes API that pods are watched from."""

    kubeconfig: Path | None = None
    """Kubeconfig file. None: in-cluster credentials, else ``KUBECONFIG``, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; None is its current one."""
    pods_file: Path | None = None
    """Pods from a file of manifests (YAML or JSON) instead of a cluster; reloaded on change."""
    services: bool = True
    """Watch Services, so that an Object metric may name one."""
    nodes: bool = True
    """Watch Nodes: their labels tell which of them share GPUs, what model those are where rows
    do not say, and which nodes a selector means."""
    gpu_resources: tuple[str, ...] = GPU_RESOURCES
    """Extended resources, as shell patterns, whose holders hold a GPU: rows of any other pod
    are left out. Pods with DRA claims always hold one."""
    stale_after: Interval = 300
    """Seconds without word from the API server after which readiness fails."""

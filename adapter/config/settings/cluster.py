"""Settings: access to the Kubernetes API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from adapter.config.settings.types import ADVANCED, Interval, Section
from adapter.pipeline.cluster.gpuresources import GPU_RESOURCES


class ClusterSettings(Section):
    """The Kubernetes API, from which the adapter watches pods, Services and nodes."""

    kubeconfig: Annotated[Path | None, ADVANCED] = None
    """Kubeconfig file. If not set, the in-cluster credentials, then ``KUBECONFIG``, then
    ``~/.kube/config``."""
    context: Annotated[str | None, ADVANCED] = None
    """Context of the kubeconfig. If not set, its current context."""
    pods_file: Annotated[Path | None, ADVANCED] = None
    """File of pod manifests (YAML or JSON) to use instead of a cluster."""
    services: Annotated[bool, ADVANCED] = True
    """Watch Services, so that an Object metric can name one."""
    nodes: Annotated[bool, ADVANCED] = True
    """Watch nodes, for the labels about sharing and the GPU model, and for selectors of nodes."""
    gpu_resources: tuple[str, ...] = GPU_RESOURCES
    """Extended resources that stand for a GPU, as shell patterns. Known other devices of these
    vendors, such as network cards, must be listed literally. A pod with a DRA claim or
    another resource counts as a GPU pod once a sample names it."""
    stale_after: Annotated[Interval, ADVANCED] = 300
    """Seconds without any message from the API server after which readiness fails."""

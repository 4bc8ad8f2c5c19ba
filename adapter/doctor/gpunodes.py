"""Which nodes have GPUs, by resource and by label."""

from __future__ import annotations

from adapter.cluster import nodelabels
from adapter.cluster.gpuresources import GpuResources
from adapter.cluster.objects import SeenNode


def gpus_of(node: SeenNode, resources: GpuResources) -> dict[str, int]:
    """Return the GPU resources that a node offers, without those that count parts of a GPU."""
    amounts = {
        name: int(count)
        for name, count in node.status.allocatable.items()
        if str(count).isdigit() and resources.is_device(name)
    }
    return resources.devices(amounts)


def labelled(node: SeenNode) -> bool:
    """Return whether a label says that the node has GPUs."""
    labels = node.metadata.labels
    facts = nodelabels.facts(labels)
    return bool(facts.vendor) or labels.get("nvidia.com/gpu.present") == "true"

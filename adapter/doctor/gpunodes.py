"""Which nodes have GPUs, by resource and by label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

from adapter.cluster import nodelabels
from adapter.doctor.objects import SeenNode

_DEVICE: Final = re.compile(r"gpumem|gpucores")


def gpus_of(node: SeenNode, patterns: Sequence[str]) -> dict[str, int]:
    """Return the GPU resources that a node offers, without those that count parts of a GPU."""
    counts = {
        name: int(count)
        for name, count in node.status.allocatable.items()
        if str(count).isdigit() and matches(name, patterns) and not _DEVICE.search(name)
    }
    return {name: count for name, count in counts.items() if count}


def matches(resource: str, patterns: Sequence[str]) -> bool:
    """Return whether a resource stands for a GPU."""
    return _matcher(tuple(patterns)).match(resource) is not None


def labelled(node: SeenNode) -> bool:
    """Return whether a label says that the node has GPUs."""
    labels = node.metadata.labels
    facts = nodelabels.facts(labels)
    return bool(facts.vendor) or labels.get("nvidia.com/gpu.present") == "true"


@lru_cache(8)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")

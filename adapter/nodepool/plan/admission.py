"""Decide whether a pod of a shape can run on a node: selector, affinity, taints, free resources.

The rules are the scheduler's NodeAffinity, TaintToleration and NodeResourcesFit
(``k8s.io/component-helpers/scheduling/corev1``). They do not cover DRA claims, whose devices are in
ResourceSlices, not in ``allocatable``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from adapter.cluster.nodeaffinity import affine
from adapter.cluster.taints import Taint, repels
from adapter.nodepool.model.capacity import PoolNode
from adapter.nodepool.model.shape import Amounts, Shape


def admits(
    shape: Shape, labels: Mapping[str, str], taints: Sequence[Taint], name: str = ""
) -> bool:
    """Return whether labels and taints of a node admit the shape, regardless of free resources.

    Args:
        name: name of the node, for ``matchFields``; empty for a node that does not exist yet.
    """
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    if shape.node_affinity and not affine(_terms(shape.node_affinity), labels, name):
        return False
    return not any(repels(taint, shape.tolerations) for taint in taints)


def fits(shape: Shape, node: PoolNode) -> bool:
    """Return whether a node admits the shape and has enough free resources."""
    free = room(node)
    return times(shape, free) > 0 and admits(shape, node.labels, node.taints, node.name)


def room(node: PoolNode) -> dict[str, int]:
    """Return the free resources of a node in thousandths; negative if it is overcommitted."""
    used = node.used
    return {name: milli - used.get(name, 0) for name, milli in node.allocatable.items()}


def times(shape: Shape, free: Amounts) -> int:
    """Return how many pods of a shape fit into free resources; a missing resource fits none."""
    return max(0, min(free.get(name, 0) // milli for name, milli in shape.requests))


@lru_cache(maxsize=1024)
def _terms(affinity: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(affinity)["nodeSelectorTerms"])

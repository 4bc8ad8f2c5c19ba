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
    if shape.node_affinity and not _affine(shape.node_affinity, labels, name):
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


def _affine(affinity: str, labels: Mapping[str, str], name: str) -> bool:
    """Return whether one of the terms matches. An empty term or an empty list matches no node."""
    fields = {"metadata.name": name}
    return any(
        term
        and all(matches(row, labels) for row in term.get("matchExpressions", ()))
        and all(matches(row, fields) for row in term.get("matchFields", ()))
        for term in _terms(affinity)
    )


@lru_cache(maxsize=1024)
def _terms(affinity: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(affinity)["nodeSelectorTerms"])


def matches(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether an expression matches. An unknown operator never matches."""
    value, values = labels.get(row["key"]), row.get("values", ())
    match row["operator"]:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Gt" | "Lt" as operator if value is not None and len(values) == 1:
            return _beyond(value, values[0], 1 if operator == "Gt" else -1)
    return False


def _beyond(value: str, bound: str, sign: int) -> bool:
    """Return whether a label is greater or less than a bound; False unless both are integers."""
    try:
        return (int(value) - int(bound)) * sign > 0
    except ValueError:
        return False

"""Node affinity: whether the labels of a node match the terms of a pod.

The rules are those of ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def matches_terms(terms: Iterable[Mapping[str, Any]], labels: Mapping[str, str], name: str) -> bool:
    """Return whether one of the terms matches. An empty term or an empty list matches no node.

    Args:
        terms: ``nodeSelectorTerms``.
        labels: of the node.
        name: of the node.
    """
    fields = {"metadata.name": name}
    return any(
        term
        and all(matches(row, labels) for row in term.get("matchExpressions", ()))
        and all(matches(row, fields) for row in term.get("matchFields", ()))
        for term in terms
    )


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
            return _is_beyond(value, values[0], 1 if operator == "Gt" else -1)
    return False


def _is_beyond(value: str, bound: str, sign: int) -> bool:
    """Return whether a label is greater or less than a bound; False unless both are integers."""
    try:
        return (int(value) - int(bound)) * sign > 0
    except ValueError:
        return False

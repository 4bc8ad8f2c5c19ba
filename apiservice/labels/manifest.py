"""Convert a LabelSelector of a manifest to the text for a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return the text in the format of ``metav1.FormatLabelSelector``; empty selects everything.

    Raises:
        ValueError: an operator is unknown.
    """
    if not selector:
        return ""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for row in selector.get("matchExpressions") or ():
        key, operator, values = row["key"], row["operator"], row.get("values") or ()
        if operator in _OPERATORS:
            parts.append(f"{key} {_OPERATORS[operator]} ({','.join(sorted(values))})")
        elif operator == "Exists":
            parts.append(key)
        elif operator == "DoesNotExist":
            parts.append(f"!{key}")
        else:
            raise ValueError(f"operator {operator!r} of a label selector is unknown")
    return ",".join(parts)

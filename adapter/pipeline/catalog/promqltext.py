"""Find common mistakes in a PromQL expression without an engine."""

from __future__ import annotations

import re
from typing import Final

_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_TEMPLATE: Final = re.compile(r"\{pods?\}|<<|>>|\{\{|\}\}|\$\{?[A-Za-z_]")
_TEXT: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_NUMBER: Final = re.compile(r"[-+]?[0-9.eE+]+")


def complaint(expression: str) -> str | None:
    """Return the mistake in an expression and its fix, or None if there is no obvious mistake."""
    if not expression.strip():
        return "is empty: write PromQL"
    bare = _TEXT.sub('""', expression)
    template = _TEMPLATE.search(expression)
    if template is not None:
        return (
            f"contains the template {template.group()!r}: one query runs for all pods, and its "
            "answer is joined by namespace and pod; e.g. sum by (namespace, pod) (my_queue)"
        )
    if re.search("[\"'`]", bare.replace('""', "")):
        return "has a quote that is not closed"
    if _NUMBER.fullmatch(bare.strip()):
        return "is a number: write an expression that gives a series per pod"
    return _unbalanced_bracket(bare)


def words(expression: str) -> frozenset[str]:
    """Return the names in an expression: of series, and also of labels and functions."""
    return frozenset(_NAME.findall(_TEXT.sub('""', expression)))


def _unbalanced_bracket(expression: str) -> str | None:
    opened: list[str] = []
    for sign in expression:
        if sign in _CLOSING.values():
            opened.append(sign)
        elif sign in _CLOSING and (not opened or opened.pop() != _CLOSING[sign]):
            return f"has a {sign} without its opening bracket"
    return f"has a {opened[-1]} that is not closed" if opened else None

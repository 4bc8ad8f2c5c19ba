"""Label matchers of PromQL from label selectors, as prometheus-adapter makes them.

A selector with one value of ``in`` becomes a regular expression, so that a request may contain
one. ``>`` and ``<`` have no form in PromQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from apiservice.errors import BadQuery
from apiservice.labels.requirement import ABSENT, EXISTS, Requirement

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.:]*[A-Za-z0-9])?")
_LONGEST_NAME: Final = 253
_PLAIN: Final = {"=": "=", "==": "=", "!=": "!=", "in": "=~", "notin": "!~"}
_SEVERAL: Final = {"=": "=~", "==": "=~", "in": "=~", "!=": "!~", "notin": "!~"}


def matcher(label: str, operator: str, value: str) -> str:
    """Return one matcher. The value is quoted."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{label}{operator}"{escaped}"'


def of_requirement(requirement: Requirement) -> tuple[str, str]:
    """Return a requirement as a matcher, and its values as one text.

    Raises:
        BadQuery: PromQL cannot express the requirement.
    """
    label, operator, values = requirement
    if operator in (">", "<"):
        raise BadQuery(f"{requirement}: Prometheus cannot compare label values with {operator}")
    if not _LABEL.fullmatch(label):
        raise BadQuery(f"{label}: is not the name of a Prometheus label")
    joined = "|".join(values)
    if operator in (EXISTS, ABSENT):
        return matcher(label, "=" if operator == ABSENT else "!=", ""), joined
    signs = _PLAIN if len(values) == 1 else _SEVERAL
    return matcher(label, signs[operator], joined), joined


def of_names(label: str, names: Sequence[str]) -> str:
    """Return the matcher for objects: an expression if there are several."""
    return matcher(label, "=" if len(names) == 1 else "=~", "|".join(names))


def valid_name(name: str) -> bool:
    """Return whether an object can have this name.

    Templates may place names into a query without quotes around them, so that a name from a
    request must not contain anything that ends a string.
    """
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None

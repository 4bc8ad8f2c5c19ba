"""Read ``resourceRules``: how the store's series give cpu and memory of containers and nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import yaml

from adapter.answers.rules.filenodes import (
    BadNode,
    Reader,
    entries,
    is_null,
    resources,
    text_of,
    to_field,
)
from apiservice.provider import GroupResource

_UNITS: Final = {
    "y": 365 * 86_400_000,
    "w": 7 * 86_400_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_DURATION: Final = re.compile("".join(rf"(?:(\d{{1,12}}){unit})?" for unit in _UNITS))
"""Prometheus' durations: each unit at most once, from the largest to the smallest."""


@dataclass(frozen=True, slots=True)
class ResourceText:
    """The rule of cpu or memory as the file has it."""

    name: str
    """Where it is in the file: ``resourceRules.cpu``."""
    line: int = 0
    container_query: str = ""
    node_query: str = ""
    overrides: tuple[tuple[str, GroupResource], ...] = ()
    template: str = ""
    namespaced: bool = True
    container_label: str = ""
    lines: dict[str, int] = field(default_factory=dict, compare=False, hash=False)
    """Key -> line."""


class ResourceTexts(NamedTuple):
    """``resourceRules`` as the file has them."""

    cpu: ResourceText
    memory: ResourceText
    window: int
    """Milliseconds."""


def read_resource_rules(node: yaml.Node) -> ResourceTexts:
    """Return the rules of a node.

    Raises:
        BadNode: they have a mistake.
    """
    texts = {name: ResourceText(f"resourceRules.{name}") for name in ("cpu", "memory")}
    window = 0
    for key, value in entries(node, _RESOURCE_RULES):
        if is_null(value):
            continue
        if key == "window":
            window = _window(value)
        else:
            texts[key] = _resource_text(texts[key].name, value)
    return ResourceTexts(texts["cpu"], texts["memory"], window)


def _resource_text(name: str, node: yaml.Node) -> ResourceText:
    lines: dict[str, int] = {}
    fields: dict[str, object] = {}
    for key, value in entries(node, _RESOURCE_RULE):
        lines[key] = value.start_mark.line + 1
        if not is_null(value):
            fields |= _RESOURCE_RULE[key](value)
    return ResourceText(name, node.start_mark.line + 1, lines=lines, **fields)  # type: ignore[arg-type]  # the keys are its fields


def _window(node: yaml.Node) -> int:
    text = text_of(node)
    duration = _DURATION.fullmatch(text) if text else None
    if duration is None and text != "0":
        raise BadNode(node, f"window: {text[:60]!r} is not a duration such as 5m")
    numbers = () if duration is None else duration.groups()
    return sum(
        int(number or 0) * unit for number, unit in zip(numbers, _UNITS.values(), strict=False)
    )


_RESOURCE_RULE: Final[dict[str, Reader]] = {
    "containerQuery": to_field("container_query"),
    "nodeQuery": to_field("node_query"),
    "resources": resources,
    "containerLabel": to_field("container_label"),
}
_RESOURCE_RULES: Final[dict[str, Reader]] = {
    name: to_field(name) for name in ("cpu", "memory", "window")
}

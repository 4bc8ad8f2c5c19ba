"""Read parts of prometheus-adapter's configuration file from YAML nodes, which know their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import yaml

from apiservice.provider import GroupResource

MAX_ENTRIES: Final = 256
"""Filters, or overrides, of one rule."""
Reader = Callable[[yaml.Node], dict[str, object]]
"""Returns fields of a rule from the value of one key."""


class BadNode(Exception):  # noqa: N818 - a mistake of the file
    """A node has a mistake; ``line`` is its line."""

    def __init__(self, node: yaml.Node, text: str) -> None:
        super().__init__(text)
        self.line = node.start_mark.line + 1


def entries(
    node: yaml.Node, allowed_keys: Mapping[str, Reader] | None
) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the keys and values of a mapping.

    Args:
        node: the mapping.
        allowed_keys: the keys that it may have; None for any.

    Raises:
        BadNode: the node is not a mapping, a key is unknown, or it is given twice.
    """
    if not isinstance(node, yaml.MappingNode):
        raise BadNode(node, "must be a mapping")
    seen_names: set[str] = set()
    for key, value in node.value:
        name = text_of(key)
        if allowed_keys is not None and name not in allowed_keys:
            raise BadNode(
                key, f"has an unknown key {name[:60]}; the keys are {', '.join(allowed_keys)}"
            )
        if name in seen_names:
            raise BadNode(key, f"gives {name[:60]} twice")
        seen_names.add(name)
        yield name, value


def is_null(node: yaml.Node) -> bool:
    """Return whether a key has no value."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def text_of(node: yaml.Node) -> str:
    """Return the text of a node.

    Raises:
        BadNode: it is a list or mapping.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise BadNode(node, "must be a text")
    return str(node.value)


def to_field(name: str) -> Reader:
    """Return what reads a text into a field."""
    return lambda node: {name: text_of(node)}


def _boolean(node: yaml.Node) -> dict[str, object]:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
        raise BadNode(node, "namespaced must be true or false")
    return {"namespaced": str(node.value).lower() in ("true", "yes", "on", "y")}


def resources(node: yaml.Node) -> dict[str, object]:
    """Read ``resources``: which label names which resource."""
    fields: dict[str, object] = {}
    for key, value in entries(node, _RESOURCES):
        if not is_null(value):
            fields |= _RESOURCES[key](value)
    return fields


def _overrides(node: yaml.Node) -> dict[str, object]:
    overrides: list[tuple[str, GroupResource]] = []
    if isinstance(node, yaml.MappingNode):
        check_count(node, "overrides")
    for label, value in entries(node, None):
        names = {"group": "", "resource": ""}
        for key, text in entries(value, _GROUP_RESOURCE):
            if not is_null(text):
                names[key] = text_of(text)
        if not names["resource"]:
            raise BadNode(value, f"the override of the label {label[:60]} names no resource")
        overrides.append((label, GroupResource(names["resource"], names["group"])))
    return {"overrides": tuple(overrides)}


def check_count(node: yaml.CollectionNode, key: str) -> None:
    """Limit the entries of a node."""
    if len(node.value) > MAX_ENTRIES:
        raise BadNode(node, f"{key} has {len(node.value)} entries; the most are {MAX_ENTRIES}")


_RESOURCES: Final = {
    "template": to_field("template"),
    "overrides": _overrides,
    "namespaced": _boolean,
}
_GROUP_RESOURCE: Final = {"group": to_field("group"), "resource": to_field("resource")}

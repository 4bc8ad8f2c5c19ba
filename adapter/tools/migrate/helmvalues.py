"""The values of prometheus-adapter's Helm chart: the configuration that the chart renders of them.

The chart (prometheus-community/helm-charts, ``charts/prometheus-adapter/templates/configmap.yaml``)
leaves out what is empty: ``resource: {}`` and ``existing: null`` are its defaults, and what
``helm get values -a`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from apiservice.runtime.yamltext import serialize
from apiservice.runtime.yamltypes import read_scalar

_LISTS: Final = {"custom": "rules", "external": "externalRules", "resource": "resourceRules"}
_KEYS: Final = frozenset({*_LISTS, "existing", "default"})
_MAP: Final = "tag:yaml.org,2002:map"
_LIST: Final = "tag:yaml.org,2002:seq"
_STEP: Final = re.compile(r"((?:[^.\\[\]]|\\.)+)|\[([0-9]{1,3})\]")
"""A key or a place in a list, within the name of a parameter."""
_NULL: Final = yaml.ScalarNode("tag:yaml.org,2002:null", "null")
_DEEPEST: Final = 20
"""Steps of the name of a parameter."""
_DEFAULTS: Final = (
    "the chart adds its default rules to these values: read the ConfigMap of the cluster or the "
    "output of helm template to see them, or set rules.default to false"
)


def mapping(node: Any) -> dict[str, Any]:
    """Return the keys of a node and their values; empty if it is not a mapping."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {scalar(key): value for key, value in node.value}


def scalar(node: Any) -> str:
    """Return the text of a node; empty for null, and if it is a mapping or a list."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return ""
    return str(node.value)


def is_values(node: Any) -> bool:
    """Return whether a mapping is the chart's values, which may be a part of another chart's."""
    return bool(mapping(mapping(node).get("rules")).keys() & _KEYS)


def existing_configmap(node: Any) -> str:
    """Return the ConfigMap that the values name for their rules; empty if they name none."""
    return scalar(mapping(mapping(node).get("rules")).get("existing"))


def has_rules(node: Any) -> bool:
    """Return whether the values have rules of their own."""
    return bool(_lists(node))


def render_configuration(node: Any) -> bytes:
    """Return the configuration that the chart renders of its values, without default rules."""
    made = yaml.MappingNode(
        _MAP,
        [(_text(target), value) for target, value in _lists(node).items()],
    )
    return serialize(made).encode()


def _lists(node: Any) -> dict[str, yaml.Node]:
    """Return the lists of the configuration that are not empty."""
    rules = mapping(mapping(node).get("rules"))
    lists = {target: rules.get(key) for key, target in _LISTS.items()}
    return {
        target: value
        for target, value in lists.items()
        if isinstance(value, yaml.CollectionNode) and value.value
    }


def notes(node: Any) -> tuple[str, ...]:
    """Return what the values leave open."""
    default = scalar(mapping(mapping(node).get("rules")).get("default")).lower()
    return () if default == "false" else (_DEFAULTS,)


def with_parameters(node: yaml.Node, parameters: Mapping[str, str]) -> yaml.Node:
    """Return values with single values over them, as Helm's ``--set`` does.

    Args:
        node: the values.
        parameters: such as ``rules.existing`` or ``extraArguments[0]``.
    """
    for name, value in parameters.items():
        steps = [key or int(place) for key, place in _STEP.findall(name)][:_DEEPEST]
        # A number or a boolean is one, as on Helm's command line.
        node = _set(node, steps, yaml.ScalarNode(read_scalar(value)[0], value))
    return node


def _set(node: yaml.Node | None, steps: Sequence[str | int], value: yaml.Node) -> yaml.Node:
    """Return a node with a value at a place, whose collections are made if they are missing."""
    if not steps:
        return value
    step, *rest = steps
    if isinstance(step, str):
        pair = (_text(step), _set(mapping(node).get(step), rest, value))
        over = yaml.MappingNode(_MAP, [pair])
        base = node if isinstance(node, yaml.MappingNode) else yaml.MappingNode(_MAP, [])
        return merge_values(base, over) or over
    entries = list(node.value) if isinstance(node, yaml.SequenceNode) else []
    entries += [_NULL] * (step + 1 - len(entries))
    entries[step] = _set(entries[step], rest, value)
    return yaml.SequenceNode(_LIST, entries)


def _text(value: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", value)


def merge_values(base: yaml.Node | None, over: yaml.Node | None) -> yaml.Node | None:
    """Return values with others over them, as Helm merges files: only mappings are merged."""
    if not isinstance(base, yaml.MappingNode) or not isinstance(over, yaml.MappingNode):
        return base if over is None else over
    below, above = mapping(base), mapping(over)
    names = {scalar(key): key for key, _ in (*base.value, *over.value)}
    pairs = [
        (key, merge_values(below.get(name), above.get(name)) if name in above else below[name])
        for name, key in names.items()
    ]
    return yaml.MappingNode(_MAP, pairs, base.start_mark, base.end_mark)

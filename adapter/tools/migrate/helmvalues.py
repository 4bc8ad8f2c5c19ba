"""The values of prometheus-adapter's Helm chart: the configuration that the chart renders of them.

The chart (prometheus-community/helm-charts, ``charts/prometheus-adapter/templates/configmap.yaml``)
leaves out what is empty: ``resource: {}`` and ``existing: null`` are its defaults, and what
``helm get values -a`` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

_LISTS: Final = {"custom": "rules", "external": "externalRules", "resource": "resourceRules"}
_KEYS: Final = frozenset({*_LISTS, "existing", "default"})
_MAP: Final = "tag:yaml.org,2002:map"
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
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.serialize(made, Dumper=dumper, width=10_000).encode()


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


def prometheus(node: Any, parameters: Mapping[str, str]) -> str:
    """Return the URL of Prometheus; empty if it is not known.

    Args:
        node: the values.
        parameters: single values that replace those of the node, such as ``prometheus.url``.
    """
    parts = {key: scalar(value) for key, value in mapping(mapping(node).get("prometheus")).items()}
    single = {name.rpartition("prometheus.")[2]: value for name, value in parameters.items()}
    parts |= {key: value for key, value in single.items() if key in ("url", "port", "path")}
    url, port = parts.get("url", ""), parts.get("port", "9090")
    if not url or "{{" in url:
        return ""
    return f"{url}:{port}{parts.get('path', '')}" if port not in ("", "0") else url


def with_parameters(node: yaml.Node, parameters: Mapping[str, str]) -> yaml.Node:
    """Return values with single values over them, as far as they are about the rules.

    Args:
        node: the values.
        parameters: such as ``rules.existing``, perhaps with the name of a subchart before it.
    """
    single = {f".{name}".rpartition(".rules.")[2]: value for name, value in parameters.items()}
    pairs = [(_text(key), _text(single[key])) for key in ("existing", "default") if key in single]
    over = yaml.MappingNode(_MAP, [(_text("rules"), yaml.MappingNode(_MAP, pairs))])
    return merge_values(node, over) or node if pairs else node


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

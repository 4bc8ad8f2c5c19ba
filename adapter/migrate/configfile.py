"""Find prometheus-adapter's configuration in its own file, a ConfigMap or Helm values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import click
import yaml

from adapter.client.errors import ClientError

MOST_BYTES: Final = 4 << 20
"""Bytes of a file that are read: several manifests, each at most 1 MiB."""
_LISTS: Final = frozenset({"rules", "externalRules", "resourceRules"})
_VALUES: Final = {"custom": "rules", "external": "externalRules", "resource": "resourceRules"}
_DEPTH: Final = 3


class Configuration(NamedTuple):
    """A configuration, and where it was found."""

    content: bytes
    origin: str
    """For messages."""
    lines: bool = True
    """Whether lines of the content are lines that a user can see."""
    prometheus: str = ""
    """URL of Prometheus; empty if it is not known."""
    notes: tuple[str, ...] = ()


def read_configuration(file: Path) -> Configuration:
    """Return the configuration in a file; ``-`` is standard input.

    Raises:
        ClientError: the file cannot be read, or has no configuration.
    """
    name = "standard input" if str(file) == "-" else str(file)
    try:
        with click.open_file(str(file), "rb") as opened:
            content = _bounded(opened)
    except OSError as error:
        raise ClientError(f"{name}: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise ClientError(f"{name}: larger than {MOST_BYTES} bytes; name a file with one ConfigMap")
    return find_configuration(content, name)


def _bounded(opened: IO[Any]) -> bytes:
    found: bytes = opened.read(MOST_BYTES + 1)
    return found


def find_configuration(content: bytes, origin: str) -> Configuration:
    """Return the configuration in YAML; raises ClientError."""
    try:
        text = content.decode("utf-8")
        roots = list(yaml.compose_all(text, yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise ClientError(f"{origin}: not YAML: {said}") from None
    found = [each for root in roots for each in _candidates(root, content, origin, 0)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(each.origin for each in found[:5])
        raise ClientError(
            f"{origin}: has several configurations ({several}): name one file for each"
        )
    raise ClientError(
        f"{origin}: has no configuration of prometheus-adapter: name a file with rules or "
        "externalRules, a ConfigMap with such a file, or the values of its Helm chart"
    )


def _candidates(root: Any, content: bytes, origin: str, depth: int) -> Iterator[Configuration]:
    keys = _mapping(root)
    if _scalar(keys.get("kind")) == "ConfigMap":
        yield _of_configmap(keys, origin)
    elif isinstance(items := keys.get("items"), yaml.SequenceNode) and depth < _DEPTH:
        for item in items.value:
            # Only the objects of a List; a document of its own would be found otherwise.
            if _scalar(_mapping(item).get("kind")) == "ConfigMap":
                yield from _candidates(item, content, origin, depth + 1)
    elif isinstance(keys.get("rules"), yaml.MappingNode):
        yield _of_values(keys, origin)
    elif keys.keys() & _LISTS:
        yield Configuration(content, origin)


def _of_configmap(keys: Mapping[str, yaml.Node], origin: str) -> Configuration:
    meta = _mapping(keys.get("metadata"))
    name = _scalar(meta.get("name")) or "without a name"
    data = {key: _scalar(node) for key, node in _mapping(keys.get("data")).items()}
    return of_data(data, f"{origin}: ConfigMap {name[:253]}")


def of_data(data: Mapping[str, str], origin: str, key: str = "") -> Configuration:
    """Return the configuration in the data of a ConfigMap; raises ClientError.

    Args:
        data: file name -> content.
        origin: for messages.
        key: the file that prometheus-adapter reads; empty if it is not known.
    """
    names = [key] if key else [name for name in data if name in ("config.yaml", "config.yml")]
    names = names or [name for name in data if _has_rules(data[name])]
    if len(names) == 1 and names[0] in data:
        return Configuration(data[names[0]].encode("utf-8", "replace"), f"{origin}, key {names[0]}")
    wanted = key or "config.yaml"
    known = ", ".join(sorted(data)[:20]) or "none"
    raise ClientError(f"{origin}: has no key {wanted} with the configuration; its keys are {known}")


def _has_rules(text: str) -> bool:
    try:
        return bool(_mapping(yaml.compose(text, yaml.SafeLoader)).keys() & _LISTS)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def _of_values(keys: Mapping[str, yaml.Node], origin: str) -> Configuration:
    """Render the rules of Helm values as the chart does, without its default rules."""
    rules = _mapping(keys["rules"])
    existing = _scalar(rules.get("existing"))
    if existing:
        raise ClientError(
            f"{origin}: the rules are in ConfigMap {existing[:253]}: name its manifest"
        )
    pairs = [
        (yaml.ScalarNode("tag:yaml.org,2002:str", target), rules[key])
        for key, target in _VALUES.items()
        if key in rules
    ]
    node = yaml.MappingNode("tag:yaml.org,2002:map", pairs)
    notes = []
    if _scalar(rules.get("default")).lower() != "false":
        notes.append(
            "the chart adds its default rules to these values: read the ConfigMap of the cluster "
            "to see them, or set rules.default to false"
        )
    content = yaml.serialize(node, Dumper=yaml.SafeDumper).encode()
    return Configuration(content, f"{origin}: Helm values", False, _prometheus(keys), tuple(notes))


def _prometheus(keys: Mapping[str, yaml.Node]) -> str:
    at = {key: _scalar(node) for key, node in _mapping(keys.get("prometheus")).items()}
    url = at.get("url", "")
    if not url or "{{" in url:
        return ""
    port = at.get("port", "9090")
    return f"{url}:{port}{at.get('path', '')}" if port not in ("", "0", "null") else url


def _mapping(node: Any) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {_scalar(key): value for key, value in node.value}


def _scalar(node: Any) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""

"""Search manifests for prometheus-adapter's configuration, at any place where somebody keeps it.

It is a file of its own, or the chart's values; as a mapping, or as a text within another document.
So what is searched for is their form, not the kind of the object that has them: ConfigMaps and
Secrets, Flux' HelmRelease, Argo CD's Application and ApplicationSet, HelmChart of k3s, a helmfile,
and the values of a chart that has prometheus-adapter as a dependency.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from adapter.tools.client.errors import ClientError
from adapter.tools.migrate import helmvalues
from adapter.tools.migrate.configplaces import At, FoundConfig
from adapter.tools.migrate.helmvalues import mapping, scalar
from adapter.tools.migrate.peerpods import PeerPods, read_pods
from apiservice.runtime.yamltext import YamlError, nodes, value_of

_LISTS: Final = frozenset({"rules", "externalRules", "resourceRules"})
_QUERIES: Final = frozenset({"seriesQuery", "metricsQuery"})
_OF_SERVER: Final = frozenset({"metadata", "status"})
"""Parts of an object that describe it: an annotation may have an older copy of it."""
_FILE_PATHS: Final = (("config.yaml",), ("config.yml",))
"""Ends of the paths to a file: keys of a ConfigMap that prometheus-adapter's manifests use."""
_TEXTS: Final = 2
"""Texts within each other: the values within a manifest within a ConfigMap."""
_DEEPEST: Final = 20
"""Keys above a configuration."""


class Search:
    """One search.

    Args:
        roots: the documents.
        text: they are read from.
    """

    def __init__(self, roots: Sequence[yaml.Node], text: str) -> None:
        self._text = text
        self._alone = len(roots) == 1
        self._objects = [node for root in roots for node in _objects(root)]
        self._layers: set[int] = set()
        """Objects whose values are a part of a HelmRelease's."""
        self.unread: list[str] = []
        """What should have a configuration, and why it has none."""
        self._pods = [pods for node in self._objects if (pods := _read_pods(node)) is not None]

    def pieces(self) -> list[FoundConfig]:
        """Return the configurations, without those that another one replaces."""
        releases = [piece for node in self._objects for piece in self._release(node)]
        pieces = [
            piece
            for node in self._objects
            if id(node) not in self._layers
            for piece in self._object(node)
        ]
        chosen = _choose_pieces([*releases, *pieces])
        if not chosen:
            self.unread += [
                f"{pods.place} reads ConfigMap {name}, which this file does not have: add its "
                "manifest"
                for pods in self._pods
                if (name := _configmap_of(pods))
            ]
        return chosen

    def pods_of(self, piece: FoundConfig) -> PeerPods | None:
        """Return the pods that read a configuration; None if no manifest shows which do."""
        readers = [pods for pods in self._pods if _configmap_of(pods) == _name(piece)]
        pods = readers or self._pods
        return pods[0] if len(pods) == 1 else None

    def _object(self, node: yaml.Node) -> list[FoundConfig]:
        keys = mapping(node)
        if _kind(keys) == "HelmRelease" and "valuesFrom" in mapping(keys.get("spec")):
            return []  # see _release
        whole = self._text if self._alone and not _kind(keys) else None
        pieces = list(self._walk(node, At(_owner(keys)), whole))
        files = [piece for piece in pieces if piece.path[-1:] in _FILE_PATHS]
        return files if len(files) == 1 and _kind(keys) == "ConfigMap" else pieces

    def _walk(self, node: yaml.Node, at: At, text: str | None) -> Iterator[FoundConfig]:
        """Yield the configurations of a node; ``text`` is what the node is the whole of."""
        keys = mapping(node)
        may_be_file = text is not None and (not at.texts or at.path[-1:] in _FILE_PATHS)
        file = _has_rules(keys) or (may_be_file and _is_file(keys))
        if helmvalues.is_values(node) or file:
            values = isinstance(keys.get("rules"), yaml.MappingNode)
            node = helmvalues.with_parameters(node, at.parameters) if values else node
            yield FoundConfig(at.owner, at.path, node, text, values, node if values else None)
        elif len(at.path) <= _DEEPEST:
            for part, place, whole in self._parts(node, at):
                yield from self._walk(part, place, whole)

    def _parts(self, node: yaml.Node, at: At) -> Iterator[tuple[yaml.Node, At, str | None]]:
        if isinstance(node, yaml.SequenceNode):
            for place, part in enumerate(node.value):
                yield part, at.under(str(place)), None
        elif isinstance(node, yaml.ScalarNode):
            yield from self._of_text(str(node.value), at)
        else:
            keys = mapping(node)
            at = at.with_parameters(_parameters(keys.get("parameters")))
            skipped = _OF_SERVER if _kind(keys) else frozenset()
            if mapping(keys.get("valuesObject")):
                skipped = skipped | {"values"}  # Argo CD: valuesObject replaces it
            for key in (key for key in keys if key not in skipped):
                secret = _kind(keys) == "Secret" and key == "data"
                yield _decode_secret(keys[key]) if secret else keys[key], at.under(key), None

    def _of_text(self, text: str, at: At) -> Iterator[tuple[yaml.Node, At, str | None]]:
        """Yield the documents of a text that may have a configuration."""
        if at.texts >= _TEXTS or "\n" not in text.strip() or "ules" not in text:
            return
        try:
            roots = nodes(text)
        except YamlError as error:
            place = FoundConfig(
                at.owner, at.path, yaml.ScalarNode("", text), None, values=False
            ).place
            self.unread.append(f"{place}: not YAML: {error}")
            return
        for root in roots:
            yield root, at._replace(texts=at.texts + 1), text if len(roots) == 1 else None

    def _release(self, node: yaml.Node) -> Iterator[FoundConfig]:
        """Yield the values of a HelmRelease of Flux that takes some of them from elsewhere."""
        keys = mapping(node)
        spec = mapping(keys.get("spec"))
        sources = spec.get("valuesFrom")
        if _kind(keys) != "HelmRelease" or not isinstance(sources, yaml.SequenceNode):
            return
        values: yaml.Node | None = None
        missing = []
        for source in map(mapping, sources.value):
            kind, name = scalar(source.get("kind")), scalar(source.get("name"))
            layer = self._layer(kind, name, scalar(source.get("valuesKey")) or "values.yaml")
            if layer is None or scalar(source.get("targetPath")):
                missing.append(f"{kind} {name}")
            else:
                values = helmvalues.merge_values(values, layer)
        values = helmvalues.merge_values(values, spec.get("values"))
        notes = tuple(
            f"valuesFrom takes values from {reference}, which this file does not have: add its "
            "manifest"
            for reference in missing
        )
        place = At(_owner(keys), ("spec", "values"))
        for piece in self._walk(values or yaml.MappingNode("", []), place, None):
            yield piece._replace(notes=notes)
        self.unread += [f"{_owner(keys)}: {note}" for note in notes]

    def _layer(self, kind: str, name: str, key: str) -> yaml.Node | None:
        for node in self._objects:
            keys = mapping(node)
            if (_kind(keys), scalar(mapping(keys.get("metadata")).get("name"))) != (kind, name):
                continue
            data = keys.get("data")
            texts = mapping(_decode_secret(data) if kind == "Secret" and data is not None else data)
            texts |= mapping(keys.get("stringData"))
            try:
                roots = nodes(scalar(texts.get(key)))
            except YamlError:
                return None
            self._layers.add(id(node))
            return roots[0] if roots else yaml.MappingNode("", [])
        return None


def _is_file(keys: Mapping[str, yaml.Node]) -> bool:
    """Return whether a file is a configuration, perhaps one without rules."""
    return bool(keys.keys() & _LISTS) and "kind" not in keys


def _has_rules(keys: Mapping[str, yaml.Node]) -> bool:
    """Return whether a mapping has rules of prometheus-adapter, not those of anything else."""
    lists = [keys[name] for name in ("rules", "externalRules") if name in keys]
    rows = [row for rules in lists if isinstance(rules, yaml.SequenceNode) for row in rules.value]
    resource = mapping(keys.get("resourceRules")).keys() & {"cpu", "memory"}
    return any(mapping(row).keys() & _QUERIES for row in rows) or bool(resource)


def _objects(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yield a document, or the objects of one that is a List."""
    keys = mapping(root)
    items = keys.get("items")
    if _kind(keys).endswith("List") and isinstance(items, yaml.SequenceNode):
        yield from items.value
    else:
        yield root


def _read_pods(node: yaml.Node) -> PeerPods | None:
    """Return how prometheus-adapter runs by an object; None if it is not a Deployment of it."""
    if _kind(mapping(node)) != "Deployment":
        return None
    try:
        return read_pods(value_of(node))
    except YamlError:
        return None


def _configmap_of(pods: PeerPods) -> str:
    """Return the name of the ConfigMap that pods read; empty if they read none."""
    try:
        return pods.configmap()[0][:253]
    except ClientError:
        return ""


def _kind(keys: Mapping[str, yaml.Node]) -> str:
    return scalar(keys.get("kind"))


def _owner(keys: Mapping[str, yaml.Node]) -> str:
    if not _kind(keys):
        return ""
    meta = mapping(keys.get("metadata"))
    name = "/".join(filter(None, (scalar(meta.get("namespace")), scalar(meta.get("name")))))
    return f"{_kind(keys)[:63]} {name[:253] or 'without a name'}"


def _parameters(node: Any) -> dict[str, str]:
    """Return single values, as Argo CD's ``parameters`` and Helm's ``--set`` give them."""
    rows = node.value if isinstance(node, yaml.SequenceNode) else ()
    pairs = [(mapping(row).get("name"), mapping(row).get("value")) for row in rows]
    return {scalar(name): scalar(value) for name, value in pairs if scalar(name)}


def _decode_secret(node: Any) -> yaml.MappingNode:
    """Return the data of a Secret as texts."""
    pairs = []
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        try:
            text = base64.b64decode(scalar(value), validate=True).decode()
        except (binascii.Error, ValueError):
            continue
        pairs.append((key, yaml.ScalarNode("tag:yaml.org,2002:str", text, value.start_mark)))
    return yaml.MappingNode("tag:yaml.org,2002:map", pairs)


def _choose_pieces(pieces: Sequence[FoundConfig]) -> list[FoundConfig]:
    """Leave out values whose rules another piece has, and those without rules beside others."""
    names = {_name(piece) for piece in pieces if not piece.values}
    elsewhere = [piece for piece in pieces if piece.values and _named_configmap(piece) in names]
    left = [piece for piece in pieces if piece not in elsewhere]
    for piece in elsewhere:
        left = [
            row._replace(values=False, chart=piece.chart)
            if _name(row) == _named_configmap(piece) and not row.values
            else row
            for row in left
        ]
    full = [piece for piece in left if not piece.values or helmvalues.has_rules(piece.node)]
    return full or left


def _name(piece: FoundConfig) -> str:
    return piece.owner.rpartition("/")[2].rpartition(" ")[2]


def _named_configmap(piece: FoundConfig) -> str:
    return helmvalues.existing_configmap(piece.node)

"""Read prometheus-adapter's configuration from a file in any form, or from a ConfigMap's data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import click

from adapter.tools.client.errors import ClientError
from adapter.tools.migrate import helmvalues
from adapter.tools.migrate.chartdeployment import render_deployment
from adapter.tools.migrate.configplaces import FoundConfig, places
from adapter.tools.migrate.configsearch import Search
from adapter.tools.migrate.peerpods import PeerPods, read_pods
from apiservice.runtime.yamltext import YamlError, nodes, serialize

MOST_BYTES: Final = 4 << 20
"""Bytes of a file that are read: several manifests, each at most 1 MiB."""


class Configuration(NamedTuple):
    """A configuration, and where it was found."""

    content: bytes
    origin: str
    """For messages."""
    lines: bool = True
    """Whether lines of the content are lines that a user can see."""
    pods: PeerPods | None = None
    """How prometheus-adapter runs; None if that is not known, or not from here."""
    notes: tuple[str, ...] = ()


def read_configuration(file: Path) -> Configuration:
    """Return the configuration in a file; ``-`` is standard input.

    Raises:
        ClientError: the file cannot be read, or has no configuration.
    """
    name = "standard input" if str(file) == "-" else str(file)
    try:
        with click.open_file(str(file), "rb") as opened:
            content = _read_bounded(opened)
    except OSError as error:
        raise ClientError(f"{name}: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise ClientError(f"{name}: larger than {MOST_BYTES} bytes; name a file with one ConfigMap")
    return find_configuration(content, name)


def _read_bounded(opened: IO[Any]) -> bytes:
    content: bytes = opened.read(MOST_BYTES + 1)
    return content


def find_configuration(content: bytes, origin: str) -> Configuration:
    """Return the configuration in YAML; raises ClientError."""
    try:
        text = content.decode("utf-8")
        roots = nodes(text)
    except (YamlError, ValueError) as error:
        raise ClientError(f"{origin}: not YAML: {error}") from None
    search = Search(roots, text)
    pieces = search.pieces()
    # An anchor may repeat values within one document.
    repeated = {(piece.owner, _content(piece)) for piece in pieces if piece.values}
    if len(pieces) == 1 or (len(repeated) == 1 and all(piece.values for piece in pieces)):
        return _configuration_of_piece(pieces[-1], search, origin)
    if pieces:
        raise ClientError(
            f"{origin}: has several configurations ({places(pieces[:5])}): keep one of them in the "
            "file"
        )
    why = f" ({'; '.join(search.unread[:3])})" if search.unread else ""
    raise ClientError(
        f"{origin}: has no configuration of prometheus-adapter{why}: name a file with rules or "
        "externalRules, the values of its Helm chart, or a manifest with one of them, such as a "
        "ConfigMap, HelmRelease or Application"
    )


def _configuration_of_piece(piece: FoundConfig, search: Search, origin: str) -> Configuration:
    where = f"{origin}: {piece.place}" if piece.place else origin
    pods = _pods(piece, search, where)
    if not piece.values:
        return Configuration(_content(piece), where, piece.text is not None, pods, piece.notes)
    configmap = helmvalues.existing_configmap(piece.node)
    if configmap:
        raise ClientError(
            f"{where}: the rules are in ConfigMap {configmap[:253]}: add its manifest to the file, "
            "or name it instead"
        )
    notes = (*piece.notes, *helmvalues.notes(piece.node))
    return Configuration(_content(piece), f"{where}: Helm values", False, pods, notes)


def _pods(piece: FoundConfig, search: Search, where: str) -> PeerPods | None:
    """Return how prometheus-adapter runs, by the chart's values or by its Deployment."""
    if piece.chart is None:
        return search.pods_of(piece)
    try:
        return read_pods(render_deployment(piece.chart))
    except YamlError as error:
        raise ClientError(f"{where}: the values cannot be read: {error}") from None


def _content(piece: FoundConfig) -> bytes:
    """Return the configuration file."""
    if piece.values:
        return helmvalues.render_configuration(piece.node)
    text = piece.text or serialize(piece.node)
    return text.encode("utf-8", "replace")


def configuration_of_data(data: Mapping[str, str], origin: str, key: str) -> Configuration:
    """Return the file of a ConfigMap that prometheus-adapter reads; raises ClientError.

    Args:
        data: file name -> content.
        origin: for messages.
        key: the name of the file.
    """
    if key in data:
        return Configuration(data[key].encode("utf-8", "replace"), f"{origin}, key {key}")
    keys = ", ".join(sorted(data)[:20]) or "none"
    raise ClientError(f"{origin}: has no key {key} with the configuration; its keys are {keys}")

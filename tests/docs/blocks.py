"""What a fenced block is, and so how it is checked. The rules for writers of documents:

Every fence has an info string: ``yaml``, ``sh``, ``console``, ``json``, ``promql``, ``text``
or ``mermaid``. The last two are pictures made of letters; nobody checks them.

``yaml`` is, by its first line or by a comment on the line above the fence:

=====================================  ==================================================
each document has apiVersion and kind  a manifest: server-side dry run, strict; if all are of kinds
                                       in tests/docs/fieldpaths, their fields are compared with it
``# values.yaml``                      values of our chart: `helm template`, `config` loaded
``# config.yaml``                      settings: loaded as the program loads them
``# prometheus.yml``, ``# rules.yml``  promtool
``# kustomization.yaml``               `kubectl kustomize` beside the rendered chart
``<!-- in: Kind.path -->``             a part of a manifest, laid over a whole one of that kind
``<!-- foreign: NAME -->``             another program's file: parsed, and listed as unverified
=====================================  ==================================================

``sh`` holds commands; ``console`` commands after ``$ `` with what they say. A command is checked
by the program that it calls: ours, make, kubectl and helm for real. Those of other programs are
listed as unverified. See tests/docs/commands.py for what of the shell may be used.
"""

from __future__ import annotations

import functools
import re
from enum import Enum
from typing import Any

import yaml

from tests.docs import fieldpaths
from tests.docs.pages import Block

LANGUAGES = frozenset({"yaml", "sh", "console", "json", "promql", "text", "mermaid"})


class Kind(Enum):
    """What a ``yaml`` block holds."""

    MANIFEST = "manifest"
    LISTED = "manifest of a kind whose fields are listed"
    PART = "part of a manifest"
    VALUES = "# values.yaml"
    SETTINGS = "# config.yaml"
    PROMETHEUS = "# prometheus.yml"
    RULES = "# rules.yml"
    KUSTOMIZATION = "# kustomization.yaml"
    FOREIGN = "another program's file"


_FIRST = {kind.value: kind for kind in Kind if kind.value.startswith("#")}
_NAMED = re.compile(r"# [\w.]+")
_MORE = re.compile(r"(?:^|[\s,{:\[])(?:…|\.\.\.)(?:$|[\s,}\]])", re.MULTILINE)


@functools.cache
def kind(block: Block) -> Kind:
    """What a ``yaml`` block is.

    Raises:
        ValueError: it is nothing of the above; the text says what is missing.
    """
    if block.comment.startswith("in: "):
        return Kind.PART
    if block.comment.startswith("foreign: "):
        return Kind.FOREIGN
    first = _NAMED.match(block.text)
    if first and first[0] in _FIRST:
        return _FIRST[first[0]]
    contents = documents(block)
    if contents and all(_named_kind(one) in fieldpaths.listed() for one in contents):
        return Kind.LISTED
    if contents and all("apiVersion" in one and "kind" in one for one in contents):
        return Kind.MANIFEST
    raise ValueError(
        f"{block.place}: what is this? Begin it with {', '.join(_FIRST)}, put `<!-- in: Kind.path "
        "-->` or `<!-- foreign: NAME -->` above it, or give each document apiVersion and kind"
    )


def _named_kind(document: Any) -> tuple[Any, Any]:
    named = document if isinstance(document, dict) else {}
    return named.get("apiVersion"), named.get("kind")


def documents(block: Block) -> list[Any]:
    """The YAML documents of a block.

    Raises:
        ValueError: an ellipsis stands where a value should, or it is not YAML of mappings.
    """
    if _MORE.search(block.text):
        raise ValueError(f"{block.place}: write out what the ellipsis stands for")
    try:
        read = yaml.load_all(block.text, yaml.CSafeLoader)  # as SafeLoader, and much faster
        contents = [one for one in read if one is not None]
    except yaml.YAMLError as error:
        raise ValueError(f"{block.place}: {error}") from None
    if not all(isinstance(one, dict | list) for one in contents):
        raise ValueError(f"{block.place}: holds no mapping")
    return contents

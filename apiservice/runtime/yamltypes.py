"""What scalars of YAML are, text, number, boolean or null, as kubectl and Helm read them.

Both read with go-yaml v2 (``sigs.k8s.io/yaml``), to which ``08`` and ``1e3`` are numbers, ``1:30``
and ``=`` texts, and ``y`` is true. PyYAML reads each of these otherwise. Tags that go-yaml does not
know change nothing: the value is a text, list or mapping.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = f"{_TAG}merge"
_TEXT: Final = f"{_TAG}str"
_NULL: Final = f"{_TAG}null"
_BOOLEAN: Final = f"{_TAG}bool"
_WHOLE: Final = f"{_TAG}int"
_FRACTION: Final = f"{_TAG}float"
_BINARY: Final = f"{_TAG}binary"
_COLLECTIONS: Final = tuple(f"{_TAG}{name}" for name in ("map", "seq", "set", "omap", "pairs"))
TAGS: Final = frozenset(
    (MERGE, _TEXT, _NULL, _BOOLEAN, _WHOLE, _FRACTION, _BINARY, f"{_TAG}timestamp", *_COLLECTIONS)
)
"""Tags of YAML itself."""


def _spell(*words: str) -> list[str]:
    """Return words in the three spellings that count: ``no``, ``No`` and ``NO``."""
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(_spell("y", "yes", "true", "on"), (_BOOLEAN, True)),
    **dict.fromkeys(_spell("n", "no", "false", "off"), (_BOOLEAN, False)),
    **dict.fromkeys(("", "~", *_spell("null")), (_NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (_FRACTION, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF"), (_FRACTION, math.inf)),
    **dict.fromkeys(("+.inf", "+.Inf", "+.INF"), (_FRACTION, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (_FRACTION, -math.inf)),
    "<<": (MERGE, "<<"),
}
"""Texts that are something else -> its tag and value."""
_NUMBER: Final = re.compile(r"[-+0-9]|\.[0-9]")
"""The begin of a number."""
_DIGITS: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)"
    r"|(?P<d>0|[1-9][0-9]*))"
)
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}
_DECIMAL: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 64) - 1
_MOST_DIGITS: Final = 20
"""Digits of the largest whole number; Python refuses to read thousands of them."""


def read_scalar(text: str) -> tuple[str, Any]:
    """Return the tag and the value of a scalar without quotes."""
    word = _WORDS.get(text)
    if word is not None:
        return word
    number = _read_number(text) if _NUMBER.match(text) else None
    if number is None:
        return _TEXT, text
    return _WHOLE if isinstance(number, int) else _FRACTION, number


def _read_number(text: str) -> int | float | None:
    plain = text.replace("_", "")
    match = _DIGITS.fullmatch(plain)
    base = match.lastgroup if match else None
    if match and base and not (base == "d" and len(match["d"]) > _MOST_DIGITS):
        whole = int(match["sign"] + match[base], _BASES[base])
        if _LEAST <= whole <= _MOST:
            return whole
    if not _DECIMAL.fullmatch(plain):
        return None
    # Digits that are too many for a whole number are a fraction; beyond that, a text.
    fraction = float(plain)
    return None if math.isinf(fraction) else fraction


class _Resolver:
    """Gives nodes the tags of kubectl."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        """Return the tag of a node that has none."""
        if kind is yaml.ScalarNode and implicit[0]:
            return read_scalar(value)[0]
        return super().resolve(kind, value, implicit)  # type: ignore[misc]  # of PyYAML's class


_FastLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FastDumper: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Loader(_Resolver, _FastLoader):  # type: ignore[misc]  # the base may be libyaml's
    """Reads values as kubectl does. Times stay the texts that they are."""


def _construct_plain(loader: Loader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_yaml_seq(node)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_yaml_map(node)
    return node.value


def _construct_typed(loader: Loader, node: yaml.Node) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        return _construct_plain(loader, node)
    tag, value = read_scalar(node.value)
    if tag == node.tag:
        return value
    if (tag, node.tag) == (_WHOLE, _FRACTION):
        return float(value)
    raise _tag_error(node)


def _construct_binary(loader: Loader, node: yaml.Node) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        return _construct_plain(loader, node)
    try:
        return base64.b64decode("".join(node.value.split()), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise _tag_error(node) from None


def _tag_error(node: yaml.Node) -> yaml.MarkedYAMLError:
    why = "a tag such as !!int does not fit its value"
    return yaml.constructor.ConstructorError(None, None, why, node.start_mark)


Loader.yaml_constructors = {
    **dict.fromkeys((_NULL, _BOOLEAN, _WHOLE, _FRACTION), _construct_typed),
    _BINARY: _construct_binary,
    None: _construct_plain,
}


_PYYAML: Final[Any] = yaml.resolver.Resolver()


class _Writing(_Resolver):
    """Writes in quotes what any reader of YAML may take for something else."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        if tag != _TEXT or not implicit[0]:
            return tag
        return _PYYAML.resolve(kind, value, implicit)


class Dumper(_Writing, yaml.SafeDumper):
    """Writes values so that kubectl reads the same."""


class NodeDumper(_Writing, _FastDumper):  # type: ignore[misc]  # as above
    """Writes nodes, quickly."""

"""Reads the documentation of the chart's values: the comment above each key of values.yaml.

An empty comment line ends the description; an example may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_KEY = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?: (?P<default>.*))?$")
_STEP = 2


class Value(NamedTuple):
    """One key of values.yaml."""

    path: tuple[str, ...]
    default: str
    """As written in values.yaml."""
    meaning: str

    @property
    def key(self) -> str:
        """Its name with its sections."""
        return ".".join(self.path)


def read(text: str) -> Iterator[Value]:
    """Yield every key with a value, in order.

    Raises:
        ValueError: a line is not a key, a comment or empty, or a key has no comment.
    """
    path: list[str] = []
    comment: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
            continue
        if not line.strip():
            comment = []
            continue
        match = _KEY.match(line)
        if match is None:
            raise ValueError(
                f"values.yaml:{number}: write one key per line, with its value on that line"
            )
        path[len(match["indent"]) // _STEP :] = [match["key"]]
        if match["default"] is not None:
            if not comment:
                raise ValueError(f"values.yaml:{number}: {'.'.join(path)} has no comment above it")
            yield Value(tuple(path), match["default"], _meaning(comment))
        comment = []


def _meaning(comment: list[str]) -> str:
    end = comment.index("") if "" in comment else len(comment)
    return " ".join(comment[:end])


def type_of(path: tuple[str, ...], schema: Mapping[str, Any]) -> str:
    """Return the type of a value in a few words.

    Raises:
        KeyError: the key is not in the schema.
    """
    row: Mapping[str, Any] = schema
    for name in path:
        row = resolve_reference(row, schema)["properties"][name]
    return _words(resolve_reference(row, schema), schema)


def _words(row: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in row:
        return ", ".join(str(choice) for choice in row["enum"])
    if "anyOf" in row:
        words = [_words(resolve_reference(choice, schema), schema) for choice in row["anyOf"]]
        return " or ".join(dict.fromkeys(words))
    if row["type"] == "array":
        inner = _words(resolve_reference(row["items"], schema), schema) if "items" in row else "any"
        return f"list of {inner}"
    return {"object": "mapping", "boolean": "true or false"}.get(row["type"], str(row["type"]))


def resolve_reference(row: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of the schema that a ``$ref`` refers to, or the part itself."""
    if "$ref" not in row:
        return row
    name = row["$ref"].rpartition("/")[2]
    part: Mapping[str, Any] = schema["definitions"][name]
    return part

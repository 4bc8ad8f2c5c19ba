"""Reads a settings file: YAML in which no key is given twice and which is not empty.

PyYAML keeps the last of two equal keys without a word, so one ``source:`` pasted below another
would drop the first. An empty file is what an editor or a copy leaves for a moment while it
writes, so it must not stand for the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

_MAX_BYTES: Final = 1 << 20
"""etcd refuses a ConfigMap above this size, too."""
_QUOTED = re.compile(r"'(?!<)[^']{3,}'")
"""What a YAML error repeats of the file; the parser's own terms stand in angle brackets."""


class ConfigFileError(Exception):
    """The file cannot be used; the text says what is wrong and how to fix it."""


def read(file: Path) -> dict[str, Any]:
    """Return the sections of a settings file.

    Raises:
        ConfigFileError: the file cannot be read, is too large, is not YAML, gives a key twice,
            is empty, or holds something else than a mapping.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ConfigFileError(
                f"is larger than {_MAX_BYTES} bytes; it cannot be a settings file"
            )
        content = yaml.load(data.decode("utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        fix = "correct the path given with --config or GMA_CONFIG"
        raise ConfigFileError(f"cannot be read ({error.strerror}); {fix}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigFileError(f"is not YAML: {_described(error)}") from None
    if content is None:
        raise ConfigFileError(
            "is empty; write at least one section, such as 'source:', or {} for the defaults"
        )
    if not isinstance(content, dict):
        raise ConfigFileError("must be a mapping of sections, such as 'source:'")
    return content


class _Loader(yaml.SafeLoader):
    """A SafeLoader that refuses a key that a mapping gives twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            line = key.start_mark.line + 1
            if key.value in first:
                raise ConfigFileError(
                    f"gives {key.value[:60]} twice, on lines {first[key.value]} and {line}; "
                    "merge the two"
                )
            first[key.value] = line
        return super().construct_mapping(node, deep)


def _described(error: Exception) -> str:
    """Return what is wrong and where, without the line itself: it may hold a password."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return _QUOTED.sub("'…'", re.sub(r"\s+", " ", str(error)))
    said = _QUOTED.sub("'…'", ": ".join(filter(None, (error.context, error.problem))))
    mark = error.problem_mark or error.context_mark
    return f"{said} (line {mark.line + 1}, column {mark.column + 1})" if mark else said

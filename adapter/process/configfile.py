"""Reading of a settings file: YAML that gives no key twice and is not empty.

PyYAML silently keeps the last of two equal keys, so that one ``source:`` pasted below another would
drop the first. An editor or a copy leaves an empty file for a short time while it writes, so an
empty file must not mean the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

_MAX_BYTES: Final = 1 << 20
"""etcd also rejects a ConfigMap above this size."""
_QUOTED = re.compile(r"'(?!<)[^']{3,}'")
"""The part of a YAML error that repeats the file; the parser's own terms are in angle brackets."""


class ConfigFileError(Exception):
    """The file cannot be used; the text says what is wrong and how to fix it."""


def read(file: Path) -> dict[str, Any]:
    """Return the sections of a settings file.

    Raises:
        ConfigFileError: the file cannot be read, is too large, is not YAML, gives a key twice,
            is empty, or contains something other than a mapping.
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
    """A SafeLoader that rejects a key that a mapping gives twice."""

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
    """Return what is wrong and where, without the line itself: it may contain a password."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return _QUOTED.sub("'…'", re.sub(r"\s+", " ", str(error)))
    said = _QUOTED.sub("'…'", ": ".join(filter(None, (error.context, error.problem))))
    mark = error.problem_mark or error.context_mark
    return f"{said} (line {mark.line + 1}, column {mark.column + 1})" if mark else said

"""Reading of a settings file: YAML that gives no key twice and is not empty.

PyYAML silently keeps the last of two equal keys, so that one ``source:`` pasted below another would
drop the first. An editor or a copy leaves an empty file for a short time while it writes, so an
empty file must not mean the defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from apiservice.runtime.yamltext import YamlError, document

_MAX_BYTES: Final = 1 << 20
"""etcd also rejects a ConfigMap above this size."""


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
        content = document(data, strict=True)
    except OSError as error:
        fix = "correct the path given with --config or GMA_CONFIG"
        raise ConfigFileError(f"cannot be read ({error.strerror}); {fix}") from None
    except YamlError as error:
        raise ConfigFileError(f"is not YAML: {error}") from None
    if content is None:
        raise ConfigFileError(
            "is empty; write at least one section, such as 'source:', or {} for the defaults"
        )
    if not isinstance(content, dict):
        raise ConfigFileError("must be a mapping of sections, such as 'source:'")
    return content

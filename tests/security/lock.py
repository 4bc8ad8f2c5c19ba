"""What a lock file pins."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ROW: Final = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==([^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


class Locked(NamedTuple):
    """One distribution."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read(text: str) -> dict[str, Locked]:
    """Return the lines of a lock, by name.

    Raises:
        ValueError: a hash precedes the first line.
    """
    locked: dict[str, Locked] = {}
    name = ""
    for line in text.splitlines():
        if row := _ROW.match(line):
            name = row[1]
            locked[name] = Locked(name, row[2], ())
        for digest in _HASH.findall(line):
            if not name:
                raise ValueError(f"a hash without a distribution: {line.strip()}")
            locked[name] = locked[name]._replace(hashes=(*locked[name].hashes, digest))
    return locked

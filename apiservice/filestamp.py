"""Noticing that files changed, whichever way they were replaced.

Kubernetes swaps a symlinked folder when a Secret or ConfigMap changes, cert-manager and
people write in place or rename: the stamp follows links and covers all of these. Polling
is used because no notification works on every volume type.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""Inode, size, mtime and ctime of each file; None for one that cannot be read."""


def stamp(paths: Iterable[Path]) -> Stamp:
    """The files' stamp as of now; two equal stamps mean equal files."""
    return tuple(_one(path) for path in paths)


def _one(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

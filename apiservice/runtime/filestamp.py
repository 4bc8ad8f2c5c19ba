"""Detection of changed files, however they were replaced.

Kubernetes swaps a symlinked folder when a Secret or ConfigMap changes; cert-manager and people
write in place or rename. The stamp follows links and covers all of these. Files are polled because
no notification works on every volume type.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""Inode, size, mtime and ctime of each file; None for one that cannot be read."""


def stamp(paths: Iterable[Path]) -> Stamp:
    """Return the files' current stamp. Equal stamps mean equal files."""
    return tuple(_one(path) for path in paths)


class Changes:
    """Reports a change of files once they have looked the same in two consecutive checks.

    A writer that does not rename leaves an empty or half-written file for a short time, which must
    not be read.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._last: Stamp | None = None
        self._taken: Stamp | None = None

    def take(self, *, at_once: bool = False) -> bool:
        """Return whether the files differ from when this last returned True.

        The first check that finds the files unchanged since the previous one counts as a change.

        Args:
            at_once: do not wait for a second check.
        """
        file_stamp = stamp(self._paths)
        settled, self._last = at_once or file_stamp == self._last, file_stamp
        if not settled or file_stamp == self._taken:
            return False
        self._taken = file_stamp
        return True


def _one(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

"""The commit that is released."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple, Self

from release.version import ReleaseError


class Source(NamedTuple):
    """A checkout."""

    root: Path
    commit: str
    time: int
    """Of the commit, in seconds since the epoch: the time of every file of the release."""
    changed: bool
    """Tracked files differ from the commit."""

    @classmethod
    def of(cls, root: Path) -> Self:
        """Read it with git.

        Raises:
            ReleaseError: the folder is no checkout.
        """
        commit = _git(root, "rev-parse", "HEAD")
        time = int(_git(root, "show", "--no-patch", "--format=%ct", "HEAD"))
        changed = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
        return cls(root, commit, time, changed)

    @property
    def dirty(self) -> str:
        """For the first line of the output."""
        return ", with uncommitted changes" if self.changed else ""

    def require_tag(self, tag: str | None, version: str) -> None:
        """Check that this commit, unchanged, is the one of the tag.

        Raises:
            ReleaseError: it is not.
        """
        if tag != f"v{version}":
            raise ReleaseError(f"the tag must be v{version}, not {tag}: pass --tag v{version}")
        if self.changed:
            raise ReleaseError("files differ from the commit: commit them, or pass --dry-run")
        if tag not in _git(self.root, "tag", "--points-at", "HEAD").split():
            raise ReleaseError(f"commit {self.commit} does not have the tag {tag}: check it out")


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise ReleaseError("git is not on the PATH: install it") from None
    except subprocess.CalledProcessError as error:
        raise ReleaseError(f"git {arguments[0]} failed: {error.stderr.strip()}") from None
    return done.stdout.strip()

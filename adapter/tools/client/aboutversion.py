"""What `version` prints: the adapter, its commit if known, Python, and the libraries."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from adapter import __version__
from adapter.pipeline.sources.login.extras import DISTRIBUTION, installer, libraries

_ROOT: Final = Path(__file__).parents[3]
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")


def lines() -> Iterator[str]:
    """Yield the lines. Nothing is asked but this installation."""
    yield f"{DISTRIBUTION}, version {__version__}"
    yield f"commit: {commit() or 'unknown'}"
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield from _libraries()


def commit(root: Path = _ROOT) -> str:
    """Return the commit of a clone, or of an installation from git; empty if it is not known."""
    place = root / ".git"
    if place.exists():
        return _of_clone(place)
    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        origin = json.loads(text or "{}")
        return str(origin.get("vcs_info", {}).get("commit_id", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return ""


def _of_clone(place: Path) -> str:
    """Return the commit of a clone, from the files of git.

    Args:
        place: ``.git``, which is a file in a work tree of its own.
    """
    try:
        if place.is_file():
            place = place.parent / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        if head.startswith("ref: "):
            head = _of_branch(place, head.removeprefix("ref: "))
    except (OSError, ValueError):
        return ""
    return head if _COMMIT.fullmatch(head) else ""


def _of_branch(place: Path, branch: str) -> str:
    shared = place / "commondir"
    common = place / shared.read_text(encoding="utf-8").strip() if shared.is_file() else place
    loose = common / branch
    if loose.is_file():
        return loose.read_text(encoding="utf-8").strip()
    packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((row.split()[0] for row in packed if row.endswith(f" {branch}")), "")


def _libraries() -> Iterator[str]:
    """Yield each library that the adapter requires, with its version or how to install it."""
    try:
        required = {library.name: library.requirement for library in libraries()}
    except metadata.PackageNotFoundError:
        yield "libraries: unknown, because the adapter is not installed as a package"
        return
    for name, requirement in sorted(required.items(), key=lambda item: item[0].lower()):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} is not installed: {installer()} '{requirement}'"

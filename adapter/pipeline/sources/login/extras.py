"""The libraries that the adapter requires, from the metadata of its installation."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Final, NamedTuple

DISTRIBUTION: Final = "gpu-metrics-adapter"
_REQUIREMENT: Final = re.compile(
    r"(?P<text>(?P<name>[A-Za-z0-9._-]+)[^;]*?)\s*(?:;(?P<marker>.*))?"
)
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


class Library(NamedTuple):
    """A library that the adapter requires."""

    name: str
    requirement: str
    """As ``pip install`` takes it: ``azure-identity>=1.25``."""
    extra: str
    """The extra that has it; empty if every installation has it."""


def libraries() -> list[Library]:
    """Return what the installation requires, in the order of ``pyproject.toml``.

    Raises:
        importlib.metadata.PackageNotFoundError: the adapter is not installed as a package.
    """
    required = []
    for row in metadata.requires(DISTRIBUTION) or []:
        requirement = _REQUIREMENT.fullmatch(row.strip())
        if requirement is not None:
            extra = _EXTRA.search(requirement["marker"] or "")
            required.append(
                Library(requirement["name"], requirement["text"], extra[1] if extra else "")
            )
    return required


def command_to_install(extra: str) -> str:
    """Return the command that installs the libraries of an extra.

    It names the libraries and not the adapter, which may come from a clone, an image or a file.
    """
    try:
        wanted = [library.requirement for library in libraries() if library.extra == extra]
    except metadata.PackageNotFoundError:
        wanted = []
    return f"{installer()} " + " ".join(f"'{package}'" for package in wanted or [f".[{extra}]"])


def installer() -> str:
    """Return the command that installs libraries for the Python of this process.

    `uv tool` and `pipx` make an environment of their own, which `pip install` would not find, and
    that of `uv` has no pip.
    """
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python}"
    return f"{python} -m pip install"

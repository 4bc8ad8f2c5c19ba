"""A base image that stands in for python:X.Y-slim-SUITE on a machine without image registries.

It is Debian's own Python of that suite, moved to where the official image has Python: in
/usr/local, with pip in its site-packages, a bundled wheel of it, and no bytecode.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.e2e import programs

_RECIPE = 1
"""Raised when the packages or steps below change, so that no older tree is taken for it."""
_PACKAGES = "python3,python3-venv,ca-certificates"
_LEFT_OUT = ("doc", "info", "locale", "man")
_REFERENCE = re.compile(
    r"^ARG PYTHON=(?P<name>python:(?P<version>3\.\d+)\S*-slim-(?P<suite>[a-z]+))(@|$)", re.MULTILINE
)
_STEPS = """\
FROM scratch
ADD {archive} /
RUN python={python} lib=/usr/local/lib/{python} \\
 && rm -rf "$lib" && mv "/usr/lib/$python" "$lib" && mv "/usr/bin/$python" /usr/local/bin/ \\
 && for name in python python3; do ln -s "$python" "/usr/local/bin/$name"; done \\
 && mv /usr/share/python-wheels "$lib/ensurepip/_bundled" \\
 && ln -s "$lib/ensurepip/_bundled" /usr/share/python-wheels \\
 && python -m zipfile -e "$lib"/ensurepip/_bundled/pip-*.whl "$lib/site-packages" \\
 && touch /usr/local/bin/pip /usr/local/bin/pip3 \\
 && find /usr -name __pycache__ -prune -exec rm -rf {{}} +
CMD ["python3"]
"""


class NoBaseError(Exception):
    """The stand-in cannot be made here; the text says why."""


class Base(NamedTuple):
    """What the Dockerfile builds on."""

    name: str
    """As the Dockerfile has it, such as ``python:3.13-slim-trixie``."""
    python: str
    """Such as ``python3.13``."""
    suite: str
    """Of Debian, such as ``trixie``."""


def of(dockerfile: str) -> Base:
    """What a Dockerfile builds on, by its text.

    Raises:
        NoBaseError: its base is no slim Python.
    """
    found = _REFERENCE.search(dockerfile)
    if found is None:
        raise NoBaseError("the Dockerfile's ARG PYTHON names no python:…-slim-… image")
    return Base(found["name"], f"python{found['version']}", found["suite"])


def context(base: Base, cache: Path) -> Path:
    """A folder with a Dockerfile that makes the stand-in, filled once.

    Raises:
        NoBaseError: this is no Debian, or its packages cannot be had.
    """
    folder = cache / f"base-{base.python}-{base.suite}-{_RECIPE}"
    if folder.exists():
        return folder
    partial = folder.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    leave_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    archive = partial / "debian.tar"
    program = str(programs.find(programs.MMDEBSTRAP))
    # With apt, as the official image: libraries of its are others' too.
    tree = [program, "--quiet", "--variant=apt", f"--include={_PACKAGES}"]
    done = subprocess.run(
        [*tree, *leave_out, base.suite, str(archive), _mirror()],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NoBaseError(f"mmdebstrap {base.suite} failed:\n{done.stderr[-2000:]}")
    text = _STEPS.format(archive=archive.name, python=base.python)
    (partial / "Dockerfile").write_text(text)
    partial.rename(folder)
    return folder


def _mirror() -> str:
    """The mirror that this machine installs from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    done = subprocess.run(
        [*command, "Created-By: Packages", "Origin: Debian", "Component: main"],
        capture_output=True,
        text=True,
        check=False,
    )
    # Each suite is told; those of security have no whole system.
    mirrors = [line for line in done.stdout.splitlines() if "security" not in line]
    if not mirrors:
        raise NoBaseError("apt-get knows no mirror of Debian here (run apt-get update)")
    return mirrors[0]

"""A substitute for python:X.Y-slim-SUITE on a machine without image registries.

It is Debian's Python of that suite in the place of the official image: in /usr/local, with pip in
its site-packages, a bundled wheel of pip, and no bytecode.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.e2e import programs

_RECIPE = 1
"""Increase it when the packages or steps below change, so that no older tree is used."""
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
    """The substitute cannot be created here; the text has the reason."""


class Base(NamedTuple):
    """The base image of the Dockerfile."""

    name: str
    """As the Dockerfile has it, such as ``python:3.13-slim-trixie``."""
    python: str
    """Such as ``python3.13``."""
    suite: str
    """Of Debian, such as ``trixie``."""


def of(dockerfile: str) -> Base:
    """Return the base image of a Dockerfile.

    Raises:
        NoBaseError: its base is not a slim Python image.
    """
    reference = _REFERENCE.search(dockerfile)
    if reference is None:
        raise NoBaseError("the Dockerfile's ARG PYTHON names no python:…-slim-… image")
    return Base(reference["name"], f"python{reference['version']}", reference["suite"])


def context(base: Base, cache: Path) -> Path:
    """Return a folder with a Dockerfile for the substitute, created once.

    Raises:
        NoBaseError: this is not Debian, or its packages are not available.
    """
    folder = cache / f"base-{base.python}-{base.suite}-{_RECIPE}"
    if folder.exists():
        return folder
    partial = folder.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    leave_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    archive = partial / "debian.tar"
    program = str(programs.find(programs.MMDEBSTRAP))
    # With apt, like the official image: other packages use its libraries too.
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
    """The mirror of this machine."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    done = subprocess.run(
        [*command, "Created-By: Packages", "Origin: Debian", "Component: main"],
        capture_output=True,
        text=True,
        check=False,
    )
    # Each suite is named; those of security do not contain a whole system.
    mirrors = [line for line in done.stdout.splitlines() if "security" not in line]
    if not mirrors:
        raise NoBaseError("apt-get knows no mirror of Debian here (run apt-get update)")
    return mirrors[0]

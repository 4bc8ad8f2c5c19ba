"""What a test may need beside Python: programs and folders, and the command that brings each.

A test says what it needs with a marker, ``@needs(PROMETHEUS)``; where that is missing, the test is
skipped with a reason that names the command. Nothing else skips a test: ``test_needs.py`` holds
this list to the code.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
UNPACKED: Final = ROOT / ".cache" / "debian"
"""Debian's packages, unpacked without root by ``python -m tests.engines``."""
SHARED: Final = "GPU_METRICS_SHARED_DATA"


@dataclass(frozen=True, slots=True)
class Need:
    """A program, a folder or a property of the machine.

    Args:
        name: what is missing, in the summary.
        command: brings it, or runs the tests that need it.
        look: what is there; None if it is missing.
    """

    name: str
    command: str
    look: Callable[[], object | None]

    def missing(self) -> str | None:
        """Return the reason to skip a test; None if the need is met."""
        return None if self.look() else f"{self.name} is missing: {self.command}"


@dataclass(frozen=True, slots=True)
class Program(Need):
    """A program on the PATH, or below ``.cache``."""

    def path(self) -> str:
        """Return the program's path.

        Raises:
            AssertionError: it is missing; the test lacks the marker.
        """
        path = self.look()
        assert path, f"{self.name} is missing: mark the test with needs({self.name})"
        return str(path)


def _program(name: str, command: str) -> Program:
    return Program(name, command, functools.partial(find, name))


@functools.cache
def find(name: str) -> str | None:
    """Return the path of a program: from PATH, else from the unpacked packages."""
    return shutil.which(name) or shutil.which(name, path=UNPACKED / "bin")


def folder(name: str) -> Path | None:
    """Return a folder of the data beside the checkout, or None if it is not there."""
    shared = Path(os.environ.get(SHARED, ROOT.parent / "shared/data")) / name
    return shared if shared.is_dir() else None


def _folder(title: str, name: str) -> Need:
    command = f"{SHARED}=FOLDER make test"
    return Need(title, command, functools.partial(folder, name))


_FETCH = "python3 -m tests.engines (needs apt-get and a network), or install {}"
PROMETHEUS: Final = _program("prometheus", _FETCH.format("Prometheus"))
PROMTOOL: Final = _program("promtool", _FETCH.format("Prometheus"))
VICTORIAMETRICS: Final = _program("victoria-metrics", _FETCH.format("VictoriaMetrics"))
BASH: Final = _program("bash", "install bash")
CURL: Final = _program("curl", "install curl")
CAPTURED_PAGES: Final = _folder("the folder of captured pages", "exposition")
TRACES: Final = _folder("the folder of recorded traces", "traces")
DUAL_STACK: Final = Need(
    "a socket for IPv4 and IPv6", "run on a machine with IPv6", socket.has_dualstack_ipv6
)
NOT_ROOT: Final = Need(
    "a user who is not root", "run make test as such a user", lambda: os.geteuid() != 0
)


def needs(*what: Need) -> pytest.MarkDecorator:
    """Mark a test, a parameter or (as ``pytestmark``) a module with what it needs."""
    return pytest.mark.needs(*what)

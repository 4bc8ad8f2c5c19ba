"""What a test may need beside Python: programs and folders, and the command that brings each.

A test says what it needs with a marker, ``@needs(PROMETHEUS)``, a fixture with
``@needed_by_fixture(PROMETHEUS)``. Where that is missing, the test is skipped with a reason that
names the command. Nothing else skips a test: ``test_needs.py`` holds this list to the code.
"""

from __future__ import annotations

import functools
import os
import platform
import resource
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.browser import axe
from tests.e2e import privatenetwork

_Fixture = TypeVar("_Fixture", bound=Callable[..., object])

ROOT: Final = Path(__file__).parents[1]
UNPACKED: Final = ROOT / ".cache" / "debian"
"""Debian's packages, unpacked without root by ``python -m tests.engines``."""
_FOLDERS: Final = (UNPACKED / "bin", ROOT / ".cache" / "bin")
"""Where programs are beside PATH: unpacked packages, and what `make e2e` built."""
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
        return None if self.look() else f"without {self.name}: {self.command}"


@dataclass(frozen=True, slots=True)
class Program(Need):
    """A program on the PATH, or below ``.cache``."""

    def path(self) -> str:
        """Return the program's path.

        Raises:
            AssertionError: the test lacks the marker: it would fail without the program.
        """
        assert self in _marked, f"mark this test with needs(), of {self.name}"
        return str(self.look())


def _program(name: str, command: str) -> Program:
    return Program(name, command, functools.partial(find, name))


@functools.cache
def find(name: str) -> str | None:
    """Return the path of a program: from PATH, else from below ``.cache``."""
    return next(filter(None, (shutil.which(name, path=path) for path in (None, *_FOLDERS))), None)


def folder(name: str) -> Path | None:
    """Return a folder of the data beside the checkout, or None if it is not there."""
    shared = Path(os.environ.get(SHARED, ROOT.parent / "shared/data")) / name
    return shared if shared.is_dir() else None


def _folder(title: str, name: str) -> Need:
    command = f"{SHARED}=FOLDER make test"
    return Need(title, command, functools.partial(folder, name))


def _many_files() -> bool:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return most == resource.RLIM_INFINITY or most >= 5_000


_FETCH = "make test with apt-get and a network, or with {} installed"
PROMETHEUS: Final = _program("prometheus", _FETCH.format("Prometheus"))
PROMTOOL: Final = _program("promtool", _FETCH.format("Prometheus"))
VICTORIAMETRICS: Final = _program("victoria-metrics", _FETCH.format("VictoriaMetrics"))
BASH: Final = _program("bash", "install bash")
NODE: Final = _program("node", "install Node.js")
CURL: Final = _program("curl", "install curl")
CHROMIUM: Final = _program("chromium", "install chromium")
CHROMEDRIVER: Final = _program("chromedriver", "install chromium-driver")
KUBE_APISERVER: Final = _program("kube-apiserver", "make e2e")
ETCD: Final = _program("etcd", "make e2e")
THANOS: Final = _program("thanos", "make e2e-stores")
AXE: Final = Need("axe-core", "python -m tests.browser.axe", axe.usable)
OWN_NETWORK: Final = Need("a network of its own", "make e2e", privatenetwork.inside)
CAPTURED_PAGES: Final = _folder("captured pages", "exposition")
WILD: Final = _folder("cases after public reports", "wild")
TRACES: Final = _folder("recorded traces", "traces")
GLIBC: Final = Need("glibc", "run on a system of it", lambda: platform.libc_ver()[0] == "glibc")
LINUX: Final = Need("Linux", "run there", lambda: sys.platform == "linux")
DUAL_STACK: Final = Need("IPv6", "run on a machine with IPv6", socket.has_dualstack_ipv6)
OPEN_FILES: Final = Need("a limit of 5,000 open files", "raise ulimit -Hn", _many_files)
NOT_ROOT: Final = Need(
    "a user who is not root", "make test as such a user", lambda: os.geteuid() != 0
)


_marked: set[Need] = set()
"""What the running test says that it needs."""


def needs(*what: Need) -> pytest.MarkDecorator:
    """Mark a test, a parameter or (as ``pytestmark``) a module with what it needs."""
    return pytest.mark.needs(*what)


def needed_by_fixture(*what: Need) -> Callable[[_Fixture], _Fixture]:
    """Say, below ``@pytest.fixture``, what every test of a fixture needs."""

    def keep(function: _Fixture) -> _Fixture:
        function.__dict__["needs"] = what
        return function

    return keep


def marked(item: pytest.Item) -> set[Need]:
    """Return what a test needs."""
    return {need for marker in item.iter_markers("needs") for need in marker.args}


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of fixtures that need something; skip each whose needs are not met."""
    for item in items:
        if isinstance(item, pytest.Function):
            for definitions in item._fixtureinfo.name2fixturedefs.values():
                if what := definitions[-1].func.__dict__.get("needs"):
                    item.add_marker(needs(*what))
        if reasons := sorted(filter(None, (need.missing() for need in marked(item)))):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


def run(item: pytest.Item) -> None:
    """Let the programs be used that the test to be run is marked with."""
    _marked.clear()
    _marked.update(marked(item))


def use(*what: Need) -> None:
    """Let a program outside of the tests use what it needs.

    Raises:
        AssertionError: it is not there.
    """
    missing = [reason for need in what if (reason := need.missing())]
    assert not missing, "; ".join(missing)
    _marked.update(what)


def summary(reasons: Iterable[str]) -> list[str]:
    """Say in two lines how many tests were skipped, why, and which commands run them."""
    counts = Counter(reasons)
    if not counts:
        return []
    why = ", ".join(f"{count} {reason.partition(':')[0]}" for reason, count in counts.items())
    commands = dict.fromkeys(reason.partition(": ")[2] or "see above" for reason in counts)
    skipped = "1 test was" if counts.total() == 1 else f"{counts.total()} tests were"
    return [f"{skipped} skipped: {why}", f"to run more: {'; '.join(commands)}"]


def unexpected(reasons: Iterable[str], lacking: Iterable[str]) -> list[str]:
    """Return the reasons of skips other than the named needs."""
    expected = tuple(f"without {name}: " for name in lacking)
    return sorted({reason for reason in reasons if not reason.startswith(expected)})

"""Debian's packages, unpacked below ``.cache`` without root. Nothing is installed.

Only for programs that run from where they are unpacked: those that Go links, and their C libraries.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNPACKED = ROOT / ".cache" / "debian"
SECONDS = 180
"""What one package may take, its download included."""


class NoPackageError(Exception):
    """A package cannot be had; the message is one line."""


def unpack(package: str, programs: Sequence[str]) -> Path:
    """Download a package, put its programs into ``UNPACKED/bin``, and return that folder.

    Raises:
        NoPackageError: apt-get or dpkg-deb is missing, or they fail.
    """
    bin_folder = UNPACKED / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    with _locked(UNPACKED), tempfile.TemporaryDirectory(dir=UNPACKED) as name:
        if all((bin_folder / program).exists() for program in programs):
            return bin_folder
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise NoPackageError(f"{package}: {tool} is not on the PATH")
        scratch = Path(name)
        _download(package, scratch)
        (archive,) = scratch.glob("*.deb")
        _run("dpkg-deb", "--extract", str(archive), str(scratch))
        for program in programs:
            # Renamed, so that an interrupted run leaves no part of a program.
            (scratch / "usr/bin" / program).replace(bin_folder / program)
    return bin_folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(package: str, scratch: Path) -> None:
    """Download with the system's package lists, else with lists of our own, which need no root."""
    try:
        _run("apt-get", *_OPTIONS, "download", package, folder=scratch)
    except NoPackageError:
        own = _own_lists(UNPACKED)
        # Otherwise it succeeds without the lists that a busy network has kept from it.
        update = ("apt-get", *_OPTIONS, *own, "--error-on=any", "update")
        try:
            _run(*update)
        except NoPackageError:
            _run(*update)
        _run("apt-get", *_OPTIONS, *own, "download", package, folder=scratch)


_OPTIONS = (
    "--quiet=2",
    # A network that drops packets must not hold up the tests.
    *("-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15"),
    *("-o", "Acquire::Retries=1"),
    # As root, apt would download as another user, who may not write here.
    *("-o", "APT::Sandbox::User="),
)


def _own_lists(folder: Path) -> Sequence[str]:
    lists, cache = folder / "lists", folder / "cache"
    for made in (lists / "partial", cache / "archives/partial"):
        made.mkdir(parents=True, exist_ok=True)
    return ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}")


def _run(*command: str, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPackageError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise NoPackageError(f"{command[0]}: {lines[-1] if lines else done.returncode}")

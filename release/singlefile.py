"""The command as one file: a zip with every library, which a Python on the user's PATH runs.

Libraries with compiled parts cannot be imported from a zip. So the file unpacks itself once, into
the user's cache, and runs from there. It has the compiled parts for each supported Python of one
platform; those of the other versions stay packed.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adapter import __version__
from release.version import ROOT, ReleaseError

NAME: Final = "gpu-metrics-adapter"
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
_GLIBC: Final = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
PLATFORMS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("linux", "amd64"): tuple(f"{kind}_x86_64" for kind in _GLIBC),
    ("linux", "arm64"): tuple(f"{kind}_aarch64" for kind in _GLIBC),
    ("darwin", "arm64"): ("macosx_14_0_arm64", "macosx_14_0_universal2"),
}
"""System and architecture as krew names them -> tags of wheels."""
_STUB: Final = Path(__file__).with_name("unpack.py")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same commit gives the same bytes."""
_SHEBANG: Final = b"#!/usr/bin/env python3\n"
_LEFT_OUT: Final = re.compile(r"(?:^|/)(?:__pycache__|tests?)/|\.py[ci]$|\.pyx$|\.[ch]$")


def archives(folder: Path, wheel: Path) -> list[tuple[tuple[str, str], Path]]:
    """Write an archive with the file for each platform; return them with their platforms.

    Raises:
        ReleaseError: a library has no wheel for a platform.
    """
    written = []
    for platform, tags in PLATFORMS.items():
        with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(PYTHONS)) as pool:
            # At the same time: each is a process that computes for twenty seconds.
            folders = [Path(name) / python for python in PYTHONS]
            sites = list(pool.map(_downloaded, folders, PYTHONS, repeat(tags)))
            executable = single_file(wheel, sites)
        path = folder / f"{NAME}-{__version__}-{'-'.join(platform)}.tar.gz"
        archive(path, executable)
        written.append((platform, path))
    return written


def single_file(wheel: Path, sites: Iterable[Path]) -> bytes:
    """Return the file: a program of Python.

    Args:
        wheel: of this project.
        sites: folders with installed libraries, of one platform, for several versions of Python.
    """
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(wheel) as own:
        files.update((name, own.read(name)) for name in own.namelist())
    for site in sites:
        for name in needed(site):
            for path in metadata.Distribution.at(site / name).files or ():
                text = path.as_posix()
                if not (text.startswith("..") or _LEFT_OUT.search(text)):
                    files[text] = (site / text).read_bytes()
    packed = BytesIO()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(name.encode() + b"\0" + content)
    stub = _STUB.read_text(encoding="utf-8").replace("@BUILD@", digest.hexdigest()[:16])
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for name, content in (("__main__.py", stub.encode()), *sorted(files.items())):
            entry = name if name == "__main__.py" else f"site/{name}"
            file.writestr(zipfile.ZipInfo(entry, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return _SHEBANG + packed.getvalue()


def needed(site: Path) -> list[str]:
    """Return the metadata folders of the libraries that the command needs without its extras.

    Raises:
        ReleaseError: one is missing.
    """
    installed = {
        canonicalize_name(str(library.metadata["Name"])): library
        for library in metadata.distributions(path=[str(site)])
    }
    waiting = [Requirement(row) for row in _declared()]
    folders: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        extras = ("", *requirement.extras)
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in installed:
            raise ReleaseError(f"{requirement.name} is not in {site}: run make lock")
        if name in folders and not requirement.extras:
            continue
        folders[name] = _folder(installed[name])
        for row in installed[name].requires or ():
            inner = Requirement(row)
            marker = inner.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                waiting.append(inner)
    return sorted(folders.values())


def _folder(library: metadata.Distribution) -> str:
    """Return the name of a library's metadata folder, which is among its own files."""
    for path in library.files or ():
        if path.name == "METADATA" and path.parent.name.endswith(".dist-info"):
            return path.parent.name
    raise ReleaseError(f"{library.metadata['Name']} names none of its files")


def _declared() -> list[str]:
    """Return the requirements of pyproject.toml, without the extras."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(content["project"]["dependencies"])


def archive(path: Path, executable: bytes) -> None:
    """Write a tar.gz with the file and the licence; the same content gives the same bytes."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        for name, content, mode in (
            (NAME, executable, 0o755),
            ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            file.addfile(entry, BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=1, mtime=0))


def _downloaded(folder: Path, python: str, tags: Iterable[str]) -> Path:
    abi = f"cp{python.replace('.', '')}"
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-compile", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--target", str(folder), "--python-version", python, "--implementation", "cp"),
        *("--abi", abi, "--abi", "abi3", "--abi", "none"),
        *(word for tag in tags for word in ("--platform", tag)),
        *("--requirement", str(ROOT / "requirements.lock")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"no wheels for Python {python}: {done.stderr.strip()[-1000:]}")
    return folder

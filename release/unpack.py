"""Unpack the libraries of this file once, and run the command.

It is the `__main__.py` of :mod:`release.singlefile`, and an old Python must be able to read it.
"""

import os
import re
import runpy
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

BUILD = "@BUILD@"
NAME = "gpu-metrics-adapter"
TAG = "".join(map(str, sys.version_info[:2]))


def fail(text: str) -> None:
    """End with one line."""
    sys.exit(f"{NAME}: {text}")


def cache() -> Path:
    """Return the folder of the unpacked files: of this build and this Python."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / NAME / f"{BUILD}-cp{TAG}"


def make_private(folder: Path) -> None:
    """Create the folder, unless it exists; end with one line if others can change what runs."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, link = folder.stat(), folder.lstat()
    except OSError as error:
        fail(f"cannot unpack: {error}; set XDG_CACHE_HOME to another folder")
    if {status.st_uid, link.st_uid} != {os.geteuid()}:
        fail(f"{folder} belongs to another user: set XDG_CACHE_HOME to a folder of your own")
    if status.st_mode & 0o022:
        fail(f"others may write to {folder}, and it has programs that you run: remove it")


def unpack(target: Path) -> None:
    """Unpack into a folder beside the target, and give it its name when it is whole."""
    try:
        folder = Path(tempfile.mkdtemp(dir=target.parent))
    except OSError as error:
        fail(f"cannot unpack: {error}; set XDG_CACHE_HOME to another folder")
    try:
        take_out(folder)
        (folder / "site").rename(target)
    except OSError as error:
        if not target.is_dir():  # another process may have been faster
            fail(f"cannot unpack: {error}; set XDG_CACHE_HOME to another folder")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def take_out(folder: Path) -> None:
    """Unpack what this Python can read."""
    other = re.compile(rf"\.cpython-(?!{TAG}-)\d+-")
    with zipfile.ZipFile(Path(sys.argv[0]).resolve()) as file:
        names = [name for name in file.namelist() if name.startswith("site/")]
        if not any(f".cpython-{TAG}-" in name for name in names):
            fail(f"this file has no libraries for {sys.executable}, Python {TAG[0]}.{TAG[1:]}")
        file.extractall(folder, [name for name in names if not other.search(name)])


def main() -> None:
    """Run the command line."""
    if sys.version_info < (3, 11):  # noqa: UP036 - any python3 of the user may run it
        fail(f"needs Python 3.11 or later, and python3 is {sys.version.split()[0]}")
    target = cache()
    make_private(target.parent)
    if not target.is_dir():
        unpack(target)
    # Not PYTHONPATH: credential plugins that are Python programs would get these libraries. The
    # demo, which starts this command, gives its path to it (adapter.demo.child).
    sys.path.insert(0, str(target))
    runpy.run_module("adapter", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

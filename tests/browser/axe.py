"""axe-core, the checker of accessibility, pinned by its digest. Tests run without a network.

``python -m tests.browser.axe`` downloads it before, with npm. It is not part of the package.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "4.14.1"
_FILE: Final = ROOT / ".cache" / "browser" / f"axe-{VERSION}.min.js"
_SHA256: Final = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"


class AxeMissingError(Exception):
    """axe-core is not on this machine, or is not the pinned one."""


def source() -> str:
    """Return the script; raises AxeMissingError."""
    if not _FILE.exists():
        raise AxeMissingError(
            f"{_FILE} is missing: run `python -m tests.browser.axe` where there is a network"
        )
    text = _FILE.read_bytes()
    if hashlib.sha256(text).hexdigest() != _SHA256:
        raise AxeMissingError(f"{_FILE} is not axe-core {VERSION}: delete it and download it again")
    return text.decode()


def usable() -> bool:
    """Return whether it is on this machine, and the pinned one."""
    try:
        return bool(source())
    except AxeMissingError:
        return False


def main() -> int:
    """Download axe-core, if it is missing."""
    try:
        if not _FILE.exists():
            _download()
        source()
    except AxeMissingError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _download() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise AxeMissingError("axe-core is downloaded with npm: install Node.js")
    _FILE.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [npm, "pack", "--silent", f"axe-core@{VERSION}", "--pack-destination", _FILE.parent],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise AxeMissingError(f"npm pack axe-core failed:\n{done.stderr[-2000:]}")
    packed = _FILE.parent / f"axe-core-{VERSION}.tgz"
    with tarfile.open(packed) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None, "the package has no axe.min.js"
        _FILE.write_bytes(member.read())
    packed.unlink()


if __name__ == "__main__":
    sys.exit(main())

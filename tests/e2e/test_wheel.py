"""The wheel has the same bytes, independent of place, time and user of the build."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.dockerfile import ROOT, sources

pytestmark = pytest.mark.e2e

BUILD = ("pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")


def built(folder: Path, umask: int, age: int, environment: dict[str, str]) -> str:
    """Digest of the wheel of a copy whose files have these permissions and this time."""
    for path in sources():
        copy = folder / "src" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
        copy.chmod(0o777 & ~umask)
        os.utime(copy, (age, age))
    subprocess.run(
        [sys.executable, "-m", *BUILD, "--wheel-dir", folder / "dist", "."],
        cwd=folder / "src",
        env=os.environ | environment | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        umask=umask,
        check=True,
        capture_output=True,
    )
    (wheel,) = (folder / "dist").iterdir()
    return f"{wheel.name} {hashlib.sha256(wheel.read_bytes()).hexdigest()}"


def test_two_builds_are_equal_in_another_folder_at_another_time_for_another_user(
    tmp_path: Path,
) -> None:
    one = built(tmp_path / "one", 0o022, 1_700_000_000, {"PYTHONHASHSEED": "1", "TZ": "UTC"})
    other = built(
        tmp_path / "deeper" / "other",
        0o077,
        1_500_000_000,
        {"PYTHONHASHSEED": "2", "TZ": "Asia/Kolkata", "LC_ALL": "C", "HOME": str(tmp_path)},
    )
    assert one == other

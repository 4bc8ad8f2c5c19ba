"""What ``doctor`` computes grows with the cluster, and not with its square."""

from __future__ import annotations

import os
import pstats
import subprocess
import sys
from pathlib import Path

from load.pki import issue
from load.start import kubeconfig, stand_in

SIZES = (400, 800, 1600)
"""GPU pods, each twice as many as before."""


def test_a_cluster_of_twice_the_size_takes_twice_the_calls(tmp_path: Path) -> None:
    first, second, third = (calls(size, tmp_path / str(size)) for size in SIZES)
    # Calls that grow with the square are four times as many, and the others cancel out.
    assert (third - second) / (second - first) < 2.3


def calls(size: int, folder: Path) -> int:
    """Return how many functions a run calls in a cluster without faults of its own."""
    folder.mkdir()
    pki = issue(folder)
    with stand_in(pki, size, size, folder, None, "--whole") as api:
        profile = folder / "profile"
        command = (sys.executable, "-m", "cProfile", "-o", profile, "-m", "adapter", "doctor")
        done = subprocess.run(
            command,
            env=os.environ | {"KUBECONFIG": str(kubeconfig(api, folder))},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    total: int = pstats.Stats(str(profile)).total_calls  # type: ignore[attr-defined]  # not in typeshed
    return total

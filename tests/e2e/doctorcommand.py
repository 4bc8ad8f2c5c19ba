"""``doctor`` as a process of its own, and what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e import programs


def doctor(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "adapter", "doctor", *arguments],
        cwd=programs.ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def checked(kubeconfig: Path, *arguments: str) -> dict[str, Any]:
    """Return what it finds, as JSON."""
    done = doctor("-o", "json", "--kubeconfig", kubeconfig, *arguments)
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == report["status"]
    return report


def found_by(report: dict[str, Any]) -> dict[str, list[str]]:
    """Return id -> messages."""
    return {
        row["id"]: [finding["message"] for finding in row["findings"]]
        for row in report["checks"]
        if row.get("findings")
    }

"""Go modules with required files, such as the definitions of other projects' kinds.

Tests run without a network. ``python -m tests.e2e.modules`` downloads the modules before.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.e2e import toolchain
from tests.e2e.programs import ROOT, ProgramMissingError

_PROGRAMS = Path("tests/e2e/programs")


class Module(NamedTuple):
    """A module, with the version in one of our go.mod files."""

    path: str
    pinned: Path
    """Folder of that go.mod, relative to the repository."""


CERT_MANAGER = Module("github.com/cert-manager/cert-manager", _PROGRAMS / "crds")
KARPENTER = Module("sigs.k8s.io/karpenter", _PROGRAMS / "karpenter")
KEDA = Module("github.com/kedacore/keda/v2", _PROGRAMS / "keda")
PROMETHEUS_OPERATOR = Module(
    "github.com/prometheus-operator/prometheus-operator", _PROGRAMS / "crds"
)
ALL = (CERT_MANAGER, KARPENTER, KEDA, PROMETHEUS_OPERATOR)


def folder(module: Module) -> Path:
    """Return the folder of a module.

    Raises:
        ProgramMissingError: Go or the module is not available.
    """
    try:
        go = toolchain.go(module.pinned)
    except toolchain.NoGoError as error:
        raise ProgramMissingError(f"the files of {module.path} are read with Go: {error}") from None
    done = subprocess.run(
        [go, "mod", "download", "-json", module.path],
        cwd=ROOT / module.pinned,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ProgramMissingError(
            f"go mod download {module.path} failed; run `python -m tests.e2e.modules` where "
            f"there is a network:\n{done.stderr[-2000:]}"
        )
    return Path(json.loads(done.stdout)["Dir"])


def main() -> int:
    """Download every module, and print the progress."""
    try:
        for module in ALL:
            print(f"{module.path}: {folder(module)}", file=sys.stderr, flush=True)
    except ProgramMissingError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

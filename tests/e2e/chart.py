"""The Helm chart: rendered, or handed to the real ``helm``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import Object

FOLDER = programs.ROOT / "charts" / "gpu-metrics-adapter"
_HOME = programs.ROOT / ".cache" / "helm"


def helm(
    *arguments: str | Path, values: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm, with these values if any, and with nothing of the user's own configuration."""
    given = [] if values is None else ["--values=-"]
    folders = {f"HELM_{kind}_HOME": str(_HOME / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [programs.find(programs.HELM), *arguments, *given],
        input=json.dumps(values),
        env=os.environ | folders,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def render(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = SERVICE,
    namespace: str = NAMESPACE,
    only: Sequence[str] = (),
) -> list[Object]:
    """Return the chart's objects; ``only`` names templates, such as ``rbac``."""
    shown = [f"--show-only=templates/{name}.yaml" for name in only]
    done = helm(
        "template", release, FOLDER, f"--namespace={namespace}", *shown, values=values or {}
    )
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj is not None]

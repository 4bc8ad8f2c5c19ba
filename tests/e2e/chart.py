"""The Helm chart: rendered, or used with the real ``helm``."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import Object

FOLDER = programs.ROOT / "charts" / "gpu-metrics-adapter"
POLICY_API = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
"""APIs that Kubernetes serves since 1.30, which helm does not assume by default."""
RIGHTS = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
_HOME = programs.ROOT / ".cache" / "helm"


def helm(
    *arguments: str | Path, values: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm with these values, if any, and without the user's configuration."""
    options = [] if values is None else ["--values=-"]
    return subprocess.run(
        [programs.find(programs.HELM), *arguments, *options],
        input=json.dumps(values),
        env=os.environ | homes(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def homes() -> dict[str, str]:
    """Return an environment in which helm finds no configuration of the user."""
    return {f"HELM_{kind}_HOME": str(_HOME / kind) for kind in ("CACHE", "CONFIG", "DATA")}


def render(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = SERVICE,
    namespace: str = NAMESPACE,
    only: Sequence[str] = (),
) -> list[Object]:
    """Return the chart's objects; ``only`` names templates, such as ``rbac``."""
    text = _rendered(json.dumps(values or {}), release, namespace, tuple(only))
    read = yaml.load_all(text, yaml.CSafeLoader)  # as SafeLoader, and ten times as fast
    return [obj for obj in read if obj is not None]


@functools.cache
def _rendered(values: str, release: str, namespace: str, only: tuple[str, ...]) -> str:
    shown = [f"--show-only=templates/{name}.yaml" for name in only]
    where = (f"--namespace={namespace}", f"--api-versions={POLICY_API}")
    done = helm("template", release, FOLDER, *where, *shown, values=json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def one(objects: list[Object], kind: str, name: str = "") -> Any:
    """Return the only object of a kind (and name)."""
    (only,) = (
        obj for obj in objects if obj["kind"] == kind and name in ("", obj["metadata"]["name"])
    )
    return only


def pod_of(values: Mapping[str, Any], template: str = "deployment") -> Any:
    """Return the pod template of a Deployment with these values."""
    return one(render(values, only=[template]), "Deployment")["spec"]["template"]


def pods(objects: list[Object]) -> Iterator[Object]:
    """Yield every pod template: those of Deployments, Jobs and CronJobs."""
    for obj in objects:
        if obj["kind"] in ("Deployment", "Job"):
            yield obj["spec"]["template"]
        if obj["kind"] == "CronJob":
            yield obj["spec"]["jobTemplate"]["spec"]["template"]

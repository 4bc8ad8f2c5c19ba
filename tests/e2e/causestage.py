"""The stage with the real scheduler and quotas, and pods whose kubelet reports what a test says.

A pod's annotation ``test.example/status`` is its status, as the kubelet would write it: no
container runs here. Nodes beside those of the exporters have labels, taints and GPUs of their own.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e import programs
from tests.e2e.cluster import DEPLOYMENTS, PODS, Object
from tests.e2e.controlplane import WORKLOADS
from tests.e2e.kubelet import Kubelet, running_pod
from tests.e2e.printedcommands import run_printed
from tests.e2e.scheduler import scheduler
from tests.e2e.stage import NODES, Stage, autoscaler, deployment

STATUS: Final = "test.example/status"
GPU: Final = "nvidia.com/gpu"
_FIX: Final = re.compile(r"^\s*fix: (.*)$", re.MULTILINE)


class StatusKubelet(Kubelet):
    """Runs pods that the real scheduler has bound, with the status of their annotation."""

    def _step(self, pod: Object, path: str) -> None:
        meta, status = pod["metadata"], pod["status"]
        if "deletionTimestamp" in meta:
            with self._lock:
                self._running.pop(meta["uid"], None)
            self._admin.delete(path)
            return
        if not pod["spec"].get("nodeName"):
            return
        given = (meta.get("annotations") or {}).get(STATUS)
        if given is not None:
            self._admin.patch(f"{path}/status", {"status": json.loads(given)})
        elif status.get("phase") == "Pending":
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": ago(0)}
            row = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [ready]}
            self._admin.patch(f"{path}/status", {"status": row})
        elif status.get("phase") == "Running":
            with self._lock:
                self._running[meta["uid"]] = running_pod(pod)


class CauseStage(Stage):
    """The stage of the faults."""

    controllers = (*WORKLOADS, "statefulset-controller", "resourcequota-controller")

    def _nodes(self, stack: ExitStack) -> Kubelet:
        process = scheduler(self.plane, self.folder)
        process.start()
        stack.callback(process.stop)
        kubelet = StatusKubelet(self.admin, NODES)
        for name in NODES:
            self.furnish(name, 8)
        return kubelet

    def furnish(
        self, name: str, offers: int, has: int = 8, taints: list[dict[str, str]] | None = None
    ) -> None:
        """Make a Ready node of it; admission has tainted it because it was not Ready."""
        path = f"/api/v1/nodes/{name}"
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": ago(0)}
        status = {
            "capacity": amounts | {GPU: str(has)},
            "allocatable": amounts | {GPU: str(offers)},
            "conditions": [ready],
        }
        self.admin.patch(f"{path}/status", {"status": status})
        self.admin.patch(path, {"spec": {"taints": taints}})

    def node(
        self,
        name: str,
        offers: int,
        has: int = 8,
        labels: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Create a node whose label ``pool`` is its name."""
        meta = {"name": name, "labels": {"pool": name, **(labels or {})}}
        self.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
        self.furnish(name, offers, has, **more)

    def target(
        self,
        namespace: str,
        replicas: int = 1,
        *,
        status: Mapping[str, Any] | None = None,
        pod: Mapping[str, Any] | None = None,
        image: str = "",
        **spec: Any,
    ) -> Object:
        """Return a Deployment whose pods have this status."""
        made = deployment(namespace, replicas)
        template = made["spec"]["template"]
        if status is not None:
            template["metadata"]["annotations"] = {STATUS: json.dumps(status)}
        if image:
            template["spec"]["containers"][0]["image"] = image
        # Only the nodes of the exporters have this label.
        template["spec"] |= {"nodeSelector": {"gpu": "true"}, **(pod or {})}
        made["spec"] |= spec
        return made

    def scaled(self, namespace: str, **hpa: Any) -> Object:
        """Return an HPA that asks for the adapter's values."""
        return autoscaler(namespace, metric="gpu_utilization", **hpa)

    def command(self, *arguments: str) -> Printed:
        """Run the adapter's command on this cluster."""
        done = subprocess.run(
            [sys.executable, "-m", "adapter", *arguments, "--kubeconfig", self.plane.kubeconfig],
            cwd=programs.ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Printed(done.returncode, done.stdout + done.stderr)

    def explain(self, namespace: str, name: str = "inference") -> Printed:
        """Explain an HPA."""
        return self.command("explain", "hpa", name, "-n", namespace)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a printed command."""
        kubectl = shlex.quote(str(programs.find(programs.KUBECTL)))
        script = f'kubectl() {{ {kubectl} --kubeconfig={self.plane.kubeconfig} "$@"; }}; {command}'
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def size(self, namespace: str, name: str = "inference") -> int:
        """Return the replicas that a Deployment should have."""
        workload = self.admin.get(f"{DEPLOYMENTS.format(ns=namespace)}/{name}")
        return int(workload["spec"]["replicas"])

    def pods_of(self, namespace: str) -> list[Object]:
        """Return the pods of a namespace."""
        rows: list[Object] = self.admin.get(PODS.format(ns=namespace))["items"]
        return rows


class Printed(NamedTuple):
    """What a command printed."""

    code: int
    output: str

    @property
    def line(self) -> str:
        """The output as one line, for words that are wrapped."""
        return " ".join(self.output.split())

    @property
    def fixes(self) -> list[str]:
        """The printed fixes."""
        return _FIX.findall(self.output)


def ago(seconds: float) -> str:
    """A time before now, in RFC 3339."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Fault(NamedTuple):
    """One fault of a cluster."""

    namespace: str
    build: Callable[[CauseStage, str], None]
    words: tuple[str, ...]
    """What `explain hpa` says of it."""
    check: str
    """The check of `doctor` that finds it; empty if only `explain` can see it."""
    cured: bool = False
    """The printed command removes the fault on this stage."""


FAULTS: dict[str, Fault] = {}


def fault(
    *words: str, check: str = "", cured: bool = False
) -> Callable[[Callable[[CauseStage, str], None]], Callable[[CauseStage, str], None]]:
    """Register a fault by the name of its function; it is built in a namespace of its own."""

    def register(
        build: Callable[[CauseStage, str], None],
    ) -> Callable[[CauseStage, str], None]:
        name = build.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, build, words, check, cured)
        return build

    return register


def tried(stage: CauseStage, command: str) -> subprocess.CompletedProcess[str] | None:
    """Run a printed command without its effect; None for one that cannot be tried.

    No kubelet answers here for logs, nobody types into an editor, and no network leads out.
    """
    absent = (" logs ", " edit ", "https://")
    if not command.startswith(("kubectl", "echo")) or any(part in command for part in absent):
        return None
    return run_printed(Path(stage.plane.kubeconfig), command)


__all__ = ["FAULTS", "STATUS", "CauseStage", "Fault", "Printed", "ago", "fault", "tried"]

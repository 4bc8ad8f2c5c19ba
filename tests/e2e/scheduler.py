"""The real kube-scheduler as a plain process."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.e2e import programs
from tests.e2e.controlplane import ControlPlane
from tests.e2e.process import Process, free_port


def scheduler(plane: ControlPlane, folder: Path) -> Process:
    """Return the process, which has not started."""
    pair = plane.user("system:kube-scheduler")
    kubeconfig = plane.write_kubeconfig("kube-scheduler", pair=pair)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        # Its back-off of up to 10 s would extend every boot.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }
    path = folder / "kube-scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    return Process(
        [
            programs.find(programs.KUBE_SCHEDULER),
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
        ],
        folder / "kube-scheduler.log",
    )

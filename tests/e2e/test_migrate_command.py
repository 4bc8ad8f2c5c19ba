"""The files of `migrate prometheus-adapter` move APIServices on a real API server, and back."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from apiservice.tls.authority import new_authority
from tests.adapter.tools.migrate import peercluster
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace
from tests.e2e.cluster import Object
from tests.e2e.controlplane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAMES = ("v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")


class Cluster(NamedTuple):
    """An API server with the objects of prometheus-adapter's chart."""

    plane: ControlPlane
    folder: Path

    def migrate(self, *arguments: str | Path) -> str:
        """Run the command; return its output."""
        command: list[str | Path] = [sys.executable, "-P", "-m", "adapter"]
        command += ["migrate", "prometheus-adapter", "--kubeconfig", self.plane.kubeconfig]
        return self._run(*command, *arguments)

    def replace(self, file: Path) -> str:
        """Apply a file as the printed steps do."""
        kubectl = programs.find(programs.KUBECTL)
        return self._run(kubectl, "--kubeconfig", self.plane.kubeconfig, "replace", "-f", file)

    def specs(self) -> list[Object]:
        """The APIServices."""
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        return [self.plane.admin.get(f"{path}/{name}")["spec"] for name in NAMES]

    @staticmethod
    def _run(*command: str | Path) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Without the stage, whose own APIServices have these names."""
    folder = tmp_path_factory.mktemp("migrate")
    with ControlPlane(folder, controllers=("namespace-controller",)) as plane:
        admin = plane.admin
        for namespace in ("monitoring", NAMESPACE):
            ensure_namespace(admin, namespace)
        deployment = peercluster.deployment()
        deployment["spec"]["selector"] = {"matchLabels": peercluster.LABELS}
        admin.create({"apiVersion": "apps/v1", "kind": "Deployment", **deployment})
        meta = {"name": "prometheus-adapter", "namespace": "monitoring"}
        rules = {"config.yaml": peercluster.RULES}
        admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": rules})
        spec = {"selector": peercluster.LABELS, "ports": [{"port": 443}]}
        admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
        for name in NAMES:
            apiservice = peercluster.apiservice(name)
            kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
            labels = {"name": name, "labels": peercluster.LABELS}
            admin.create({**kind, "metadata": labels, "spec": apiservice["spec"]})
        yield Cluster(plane, folder)


def test_the_files_move_the_apis_and_move_them_back(cluster: Cluster) -> None:
    before = cluster.specs()
    ca = cluster.folder / "own-ca.crt"
    ca.write_bytes(new_authority(time.time(), 5).certificate_pem)
    theirs, ours = cluster.folder / "theirs.yaml", cluster.folder / "ours.yaml"
    theirs.write_text(cluster.migrate("-o", "apiservices-before"))
    ours.write_text(cluster.migrate("-o", "apiservices", "--ca", ca))
    report = cluster.migrate()
    assert "kubectl replace -f ours.yaml" in report
    assert "kubectl replace -f theirs.yaml" in report

    assert cluster.replace(ours).count(" replaced") == len(NAMES)
    for spec in cluster.specs():
        service = spec["service"]
        assert (service["namespace"], service["name"]) == (NAMESPACE, SERVICE)
        assert spec["caBundle"]
        assert "insecureSkipTLSVerify" not in spec

    assert cluster.replace(theirs).count(" replaced") == len(NAMES)
    assert cluster.specs() == before

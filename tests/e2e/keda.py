"""KEDA's own operator and metrics server, as processes on the test control plane."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import modules, programs
from tests.e2e.apiservice import EXTERNAL, ensure_namespace, wait_available
from tests.e2e.certificates import Authority
from tests.e2e.cluster import Object
from tests.e2e.controlplane import ControlPlane
from tests.e2e.process import Process, free_port
from tests.e2e.serverside import apply

NAMESPACE = "keda"
SERVICE = "keda-metrics-apiserver"
SCALED = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects"


class Keda:
    """
    Use as a context manager, any number of times on one control plane.

    Its objects in the cluster are kept, except the APIService and the Service.
    """

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="keda-", dir=folder))
        self._plane = plane
        self.ca = Authority(self.folder, "keda-ca")
        self.port = free_port()
        service = free_port()
        # As administrator of the cluster: KEDA is the peer here, and which rights its own chart
        # gives it is not what is tested. The adapter has its own, from our chart's RBAC.
        environment = {
            "KUBECONFIG": str(plane.kubeconfig),
            "WATCH_NAMESPACE": "",
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
        }
        self._health = free_port()
        self.operator = Process(
            [
                programs.find(programs.KEDA_OPERATOR),
                f"--cert-dir={self._certificates('operator', server=True)}",
                f"--metrics-service-bind-address=127.0.0.1:{service}",
                f"--health-probe-bind-address=127.0.0.1:{self._health}",
                "--metrics-bind-address=0",
                "--enable-prometheus-metrics=false",
                "--zap-log-level=info",
                "--zap-encoder=console",
            ],
            self.folder / "keda-operator.log",
            environment,
        )
        serving = self.ca.issue(
            "metrics", server=True, dns=(f"{SERVICE}.{NAMESPACE}.svc",), file="metrics-serving"
        )
        config = plane.kubeconfig
        self.server = Process(
            [
                programs.find(programs.KEDA_METRICS_SERVER),
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--port={free_port()}",
                f"--cert-dir={self._certificates('metrics', server=False)}",
                f"--tls-cert-file={serving.cert}",
                f"--tls-private-key-file={serving.key}",
                f"--metrics-service-address=localhost:{service}",
                f"--lister-kubeconfig={config}",
                f"--authentication-kubeconfig={config}",
                f"--authorization-kubeconfig={config}",
            ],
            self.folder / "keda-metrics-server.log",
            environment,
        )

    def __enter__(self) -> Keda:
        admin = self._plane.admin
        with ExitStack() as stack:
            stack.callback(self.stop)
            for path in sorted(_crds().glob("keda.sh_*.yaml")) + sorted(
                _crds().glob("eventing.keda.sh_*.yaml")
            ):
                crd = yaml.safe_load(path.read_text())
                apply(admin, crd, "")
                name = crd["metadata"]["name"]
                where = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
                admin.wait(where, _established, f"{name} is established")
            ensure_namespace(admin, NAMESPACE)
            self.operator.start()
            self.operator.wait_ready(lambda: _listens(self._health))
            self.server.start()
            self.server.wait_ready(lambda: _listens(self.port))
            self._register()
            wait_available(admin, EXTERNAL)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop both processes and release the external metrics API."""
        self._plane.admin.delete(f"{_APISERVICES}/v1beta1.external.metrics.k8s.io")
        self._plane.admin.delete(f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}")
        for process in (self.server, self.operator):
            process.stop()

    def tails(self) -> str:
        """Return the ends of both logs."""
        parts = (self.operator, self.server)
        return "\n".join(f"--- {part.log.stem}\n{part.tail()}" for part in parts)

    def _certificates(self, name: str, *, server: bool) -> Path:
        """Create a folder for KEDA: the operator is the server, the metrics server its client."""
        folder = self.folder / f"{name}-certs"
        folder.mkdir()
        pair = self.ca.issue(f"keda-{name}", server=server)
        (folder / "ca.crt").write_bytes(self.ca.pem)
        pair.cert.rename(folder / "tls.crt")
        pair.key.rename(folder / "tls.key")
        return folder

    def _register(self) -> None:
        admin = self._plane.admin
        meta = {"name": SERVICE, "namespace": NAMESPACE}
        spec: Object = {"type": "ExternalName", "externalName": "localhost"}
        admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
        admin.create(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
                "spec": {
                    "group": "external.metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": meta | {"port": self.port},
                    "insecureSkipTLSVerify": True,
                },
            }
        )


_APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def scaled_object(
    namespace: str, triggers: Sequence[Mapping[str, Any]], low: int = 0, high: int = 6, **more: Any
) -> Object:
    """Return a ScaledObject of the Deployment ``inference`` with short delays."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 2}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"name": "inference"},
            "pollingInterval": 1,
            "cooldownPeriod": 3,
            "minReplicaCount": low,
            "maxReplicaCount": high,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}},
            "triggers": list(triggers),
            **more,
        },
    }


def trigger(address: str, *, kind: str = "external", **metadata: str) -> Object:
    """Return a trigger that uses the adapter."""
    return {"type": kind, "metadata": {"scalerAddress": address, **metadata}}


def _crds() -> Path:
    return modules.folder(modules.KEDA) / "config" / "crd" / "bases"


def _established(crd: Object) -> bool:
    rows = crd.get("status", {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in rows)


def _listens(port: int) -> bool:
    socket.create_connection(("127.0.0.1", port), 5).close()
    return True

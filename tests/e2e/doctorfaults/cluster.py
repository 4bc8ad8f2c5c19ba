"""Faults of the cluster and its metrics APIs (GMA001 to GMA013)."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.certificates import Authority
from tests.e2e.cluster import Object, condition
from tests.e2e.doctorfaults.register import (
    MAIN_HPA,
    UNATTRIBUTED,
    exporter,
    fault,
    real,
    third_node,
)
from tests.e2e.pagestand import made, patched, stand
from tests.e2e.site import Site

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@fault("GMA012")
def a_node_without_a_device_plugin(site: Site) -> Iterator[None]:
    with third_node(site, gpus=0, labels={"nvidia.com/gpu.present": "true"}):
        yield


@fault("GMA013")
def a_node_that_is_not_ready(site: Site) -> Iterator[None]:
    with third_node(site, ready="False"), stand(site, exporter(), 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA011")
def a_node_whose_clock_is_ahead(site: Site) -> Iterator[None]:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "gpu-a", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "gpu-a", "renewTime": ahead},
    }
    with made(site, lease):
        yield


def apiservice(service: str, ca: bytes = b"", port: int = 443) -> Object:
    """The APIService of external metrics, for a Service of the adapter's namespace."""
    spec: Object = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": NAMESPACE, "name": service, "port": port},
    }
    trust = {"caBundle": base64.b64encode(ca).decode()} if ca else {"insecureSkipTLSVerify": True}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": spec | trust,
    }


def wait_unavailable(site: Site, name: str, words: str = "") -> None:
    """Wait until the API server has noticed."""

    def check(obj: Object) -> bool:
        rows = obj.get("status", {}).get("conditions") or ()
        return any(row["status"] == "False" and words in row["message"] for row in rows)

    site.admin.wait(f"{APISERVICES}/{name}", check, f"{name} is unavailable: {words}")


@fault("GMA006")
def an_apiservice_without_endpoints(site: Site) -> Iterator[None]:
    with made(site, apiservice("keda-operator-metrics-apiserver")):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io")
        yield


@fault("GMA007")
def an_apiservice_with_another_ca(site: Site) -> Iterator[None]:
    ca = Authority(site.folder, "other-ca").cert.read_bytes()
    with made(site, apiservice(SERVICE, ca)):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io", "x509")
        yield


@fault("GMA008")
def an_apiservice_behind_a_closed_port(site: Site) -> Iterator[None]:
    labels = {"app.kubernetes.io/name": SERVICE}
    ports = [{"port": 443, "targetPort": 9999}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "closed", "namespace": NAMESPACE},
        "spec": {"selector": labels, "ports": ports},
    }
    with made(site, service, apiservice("closed")):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io", "refused")
        yield


@contextlib.contextmanager
def removed(site: Site, path: str) -> Iterator[None]:
    """Without an object, which is created again in the end."""
    before = site.admin.get(path)
    meta = before["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        meta.pop(key, None)
    before.pop("status", None)
    site.admin.delete(path)
    try:
        yield
    finally:
        site.admin.create(before)


@fault("GMA004")
def an_apiservice_that_is_missing(site: Site) -> Iterator[None]:
    with removed(site, f"{APISERVICES}/v1beta1.custom.metrics.k8s.io"):
        yield


@fault("GMA005", also=("GMA006",))
def an_apiservice_that_belongs_to_another(site: Site) -> Iterator[None]:
    path = f"{APISERVICES}/v1beta1.custom.metrics.k8s.io"
    theirs = {"namespace": "monitoring", "name": "prometheus-adapter"}
    ours = site.admin.get(path)["spec"]["service"]
    with patched(site, path, {"spec": {"service": theirs}}, {"spec": {"service": ours}}):
        yield
    site.admin.wait(path, lambda obj: condition(obj, "Available")[0] == "True", "it is available")


@fault("GMA009", also=("GMA410",))
def an_hpa_controller_without_its_rights(site: Site) -> Iterator[None]:
    with removed(site, f"{BINDINGS}/system:controller:horizontal-pod-autoscaler"):
        yield
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )


@fault("GMA010")
def an_adapter_without_its_rights(site: Site) -> Iterator[None]:
    with removed(site, f"{BINDINGS}/{SERVICE}"):
        yield

"""Faults around the node-pool controller (GMA601 to GMA606)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import Object
from tests.e2e.doctorfaults.register import fault, scaler, zero
from tests.e2e.pagestand import made
from tests.e2e.site import Site
from tests.e2e.stage import deployment


def nodepool(site: Site, config: str = "") -> list[Object]:
    """The Deployment of nodepool without pods, its ConfigMap and its PriorityClass."""
    labels = {"app.kubernetes.io/name": f"{SERVICE}-nodepool"}
    controller = deployment(NAMESPACE, 0)
    controller["metadata"] |= {"name": "nodepool", "labels": labels}
    volume = {"name": "config", "configMap": {"name": "nodepool"}}
    controller["spec"]["template"]["spec"]["volumes"] = [volume]
    del site
    return [
        controller,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "nodepool", "namespace": NAMESPACE},
            "data": {"config.yaml": config},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "gpu-metrics-adapter-headroom"},
            "value": -10,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
            "data": {"status": "autoscalerStatus: Running\n"},
        },
    ]


@fault("GMA601")
def no_node_autoscaler(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site)[:-1]):
        yield


@fault("GMA602")
def no_capacity_buffers(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site, "nodepool: {provisioning_method: buffer}\n")):
        yield


@fault("GMA603")
def no_priority_class(site: Site) -> Iterator[None]:
    deployed, config, _, status = nodepool(site)
    with made(site, deployed, config, status):
        yield


@fault("GMA604")
def a_quota_that_is_used_up(site: Site) -> Iterator[None]:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": "9"}},
    }
    with made(site, *nodepool(site), quota):
        path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/small/status"
        full = {"hard": {"pods": "9"}, "used": {"pods": "9"}}
        site.admin.patch(path, {"status": full})
        yield


@fault("GMA605")
def caps_that_forbid_headroom(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site, "nodepool: {limits: {max_pods: 0}}\n")):
        yield


@fault("GMA605", "GMA606")
def pods_that_no_node_holds(site: Site) -> Iterator[None]:
    wide = zero("wide")
    limits = {"limits": {"nvidia.com/gpu": "16"}}
    wide["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    with made(site, *nodepool(site), wide, scaler("wide")):
        yield

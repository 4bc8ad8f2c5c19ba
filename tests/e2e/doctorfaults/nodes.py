"""Faults of nodes, of shared GPUs and of requests for GPUs (GMA015, GMA016, GMA201 to GMA205)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.e2e.cluster import PODS, Object
from tests.e2e.doctorfaults.register import (
    CHAT,
    MAIN_HPA,
    WHOLE,
    fault,
    holder,
    metric_of,
    real,
    third,
    third_node,
)
from tests.e2e.pagestand import made, patched
from tests.e2e.site import Site


@fault("GMA205")
def a_resource_with_an_unknown_name(site: Site) -> Iterator[None]:
    with third_node(site, resource="acme.com/gpu"):
        yield


@contextlib.contextmanager
def labelled(site: Site, node: str, **labels: str) -> Iterator[None]:
    """A node with further labels."""
    path = f"/api/v1/nodes/{node}"
    names = {
        f"nvidia.com/{key.replace('_', '.', 1).replace('_', '-')}": v for key, v in labels.items()
    }
    back = {"metadata": {"labels": dict.fromkeys(names)}}
    with patched(site, path, {"metadata": {"labels": names}}, back):
        yield


@fault("GMA201")
def time_slicing_with_copied_values(site: Site) -> Iterator[None]:
    with (
        labelled(site, "gpu-a", gpu_sharing_strategy="time-slicing"),
        labelled(site, "gpu-b", gpu_sharing_strategy="time-slicing"),
    ):
        yield


@fault("GMA202")
def a_pod_that_requests_what_no_node_offers(site: Site) -> Iterator[None]:
    pod = holder("pending", "", schedulingGates=[{"name": "example.org/wait"}])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    with made(site, pod):
        yield


@fault("GMA203")
def a_field_that_instances_do_not_have(site: Site) -> Iterator[None]:
    both = (labelled(site, node, mig_strategy="single") for node in ("gpu-a", "gpu-b"))
    with contextlib.ExitStack() as stack:
        for context in both:
            stack.enter_context(context)
        stack.enter_context(metric_of(site, MAIN_HPA, "DCGM_FI_DEV_GPU_UTIL"))
        yield


@fault("GMA204")
def a_pod_with_a_claim_that_the_page_does_not_name(site: Site) -> Iterator[None]:
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    pod = holder("claims", resourceClaims=claims)
    pod["spec"]["containers"][0].pop("resources")
    with third(site, real(WHOLE)), made(site, pod):
        path = f"{PODS.format(ns=CHAT)}/claims"
        site.admin.wait(path, lambda obj: obj["status"].get("phase") == "Running", "it runs")
        yield


@fault("GMA015")
def a_budget_that_allows_no_eviction(site: Site) -> Iterator[None]:
    """The disruption controller itself writes its status (kubernetes-sigs/karpenter issue 651)."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "inference", "namespace": CHAT},
        "spec": {"maxUnavailable": 0, "selector": {}},
    }
    with made(site, budget):
        yield


def event_about(kind: str, name: str, reason: str, message: str, type_: str) -> Object:
    """An event about an object without a namespace, as Karpenter writes it."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{reason.lower()}", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "type": type_,
        "lastTimestamp": now,
    }


@fault("GMA015")
def a_node_that_karpenter_cannot_remove(site: Site) -> Iterator[None]:
    text = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=train/job-1)'
    with made(site, event_about("Node", "gpu-a", "DisruptionBlocked", text, "Normal")):
        yield


@fault("GMA016")
def a_cloud_without_such_machines(site: Site) -> Iterator[None]:
    text = "NodeClaim gpu-x2 event: all requested instance types were unavailable"
    row = event_about("NodeClaim", "gpu-x2", "InsufficientCapacityError", text, "Warning")
    with made(site, row):
        yield

"""Faults of shared GPUs and of requests for GPUs (GMA201 to GMA205)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.e2e.cluster import PODS
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
        for each in both:
            stack.enter_context(each)
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

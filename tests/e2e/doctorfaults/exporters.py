"""Faults of exporters (GMA101 to GMA109)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.cluster import PODS
from tests.e2e.doctorfaults.register import UNATTRIBUTED, exporter, fault, real, third, third_node
from tests.e2e.pagestand import stand
from tests.e2e.site import Site


@fault("GMA101")
def a_node_without_an_exporter(site: Site) -> Iterator[None]:
    with third_node(site):
        yield


@fault("GMA103")
def an_exporter_that_refuses(site: Site) -> Iterator[None]:
    with third(site, None):
        yield


@fault("GMA104")
def an_exporter_behind_a_login_page(site: Site) -> Iterator[None]:
    with third(site, b"<html><body>Sign in</body></html>"):
        yield


@fault("GMA104")
def an_exporter_that_fails(site: Site) -> Iterator[None]:
    with third(site, b"no", 500):
        yield


@fault("GMA104")
def an_exporter_with_an_empty_page(site: Site) -> Iterator[None]:
    with third(site, b""):
        yield


@fault("GMA105")
def an_exporter_with_tls(site: Site) -> Iterator[None]:
    pair = site.plane.ca.issue("exporter", server=True)
    with third(site, real(UNATTRIBUTED), pair=pair):
        yield


@fault("GMA102")
def an_exporter_that_crashes(site: Site) -> Iterator[None]:
    with third(site, real(UNATTRIBUTED)):
        waiting = {
            "name": "exporter",
            "ready": False,
            "restartCount": 5,
            "image": "x",
            "imageID": "x",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        }
        path = f"{PODS.format(ns='gpu-operator')}/third/status"
        site.admin.patch(path, {"status": {"containerStatuses": [waiting]}})
        yield


@fault("GMA106", also=("GMA121",))
def two_exporters_on_a_node(site: Site) -> Iterator[None]:
    with stand(site, exporter("gpu-a", "second"), 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA107")
def an_exporter_with_the_default_interval(site: Site) -> Iterator[None]:
    pod = exporter()
    pod["spec"]["containers"][0]["env"] = []
    with third_node(site), stand(site, pod, 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA108")
def an_old_exporter_with_labels_of_pods(site: Site) -> Iterator[None]:
    on = {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04"
    pod = exporter(image=image, env=[on])
    with third_node(site), stand(site, pod, 9400, real(UNATTRIBUTED)):
        yield

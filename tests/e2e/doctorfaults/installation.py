"""Faults of the adapter itself (GMA701 to GMA714)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import DEPLOYMENTS, PODS
from tests.e2e.doctorfaults.register import configured, fault, holder
from tests.e2e.pagestand import made, patched
from tests.e2e.site import Site

RELEASE = f"{DEPLOYMENTS.format(ns=NAMESPACE)}/{SERVICE}"


@fault("GMA701")
def a_key_that_does_not_exist(site: Site) -> Iterator[None]:
    with configured(site, "source: {knd: scrape}\n"):
        yield


@fault("GMA702")
def a_replica_that_does_not_start(site: Site) -> Iterator[None]:
    pods = site.admin.get(PODS.format(ns=NAMESPACE))["items"]
    labels = next(
        row["metadata"]["labels"]
        for row in pods
        if row["metadata"]["labels"].get("app.kubernetes.io/name") == SERVICE
    )
    kept = {key: value for key, value in labels.items() if key.startswith("app.")}
    pod = holder("stuck", "", schedulingGates=[{"name": "example.org/wait"}])
    pod["metadata"] = {"name": "stuck", "namespace": NAMESPACE, "labels": kept}
    pod["spec"]["containers"][0].pop("resources")
    with made(site, pod):
        yield


@fault("GMA704")
def an_image_of_another_version(site: Site) -> Iterator[None]:
    label = "app.kubernetes.io/version"
    before = site.admin.get(RELEASE)["metadata"]["labels"][label]
    change = {"metadata": {"labels": {label: "9.9.9"}}}
    with patched(site, RELEASE, change, {"metadata": {"labels": {label: before}}}):
        yield


@fault("GMA703")
def a_container_that_restarts(site: Site) -> Iterator[None]:
    pods = site.admin.get(PODS.format(ns=NAMESPACE))["items"]
    serving = [
        row for row in pods if row["metadata"]["labels"].get("app.kubernetes.io/name") == SERVICE
    ]
    path = f"{PODS.format(ns=NAMESPACE)}/{serving[0]['metadata']['name']}/status"
    rows = serving[0]["status"]["containerStatuses"]
    often = [rows[0] | {"restartCount": 7}]
    back = {"status": {"containerStatuses": rows}}
    with patched(site, path, {"status": {"containerStatuses": often}}, back):
        yield


@fault("GMA705")
def one_replica(site: Site) -> Iterator[None]:
    with patched(site, RELEASE, {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}):
        site.admin.wait(RELEASE, lambda obj: obj["status"].get("replicas") == 1, "it has one")
        yield
    site.admin.wait(RELEASE, lambda obj: obj["status"].get("readyReplicas") == 2, "it has two")

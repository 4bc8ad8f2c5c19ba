"""Faults of workloads that an HPA scales (GMA451 to GMA453)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.e2e.doctorfaults.register import CHAT, fault, scaler, zero
from tests.e2e.pagestand import made
from tests.e2e.site import Site


@fault("GMA451")
def an_applied_manifest_with_replicas(site: Site) -> Iterator[None]:
    fixed = zero("fixed")
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(fixed)}
    fixed["metadata"]["annotations"] = note
    with made(site, fixed, scaler("fixed")):
        yield


@fault("GMA452")
def replicas_that_share_a_volume_of_one_node(site: Site) -> Iterator[None]:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": CHAT, "name": "weights"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    sharing = zero("sharing")
    volume = {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}
    sharing["spec"]["template"]["spec"]["volumes"] = [volume]
    with made(site, claim, sharing, scaler("sharing")):
        # Admission sets it, and the controller that removes it does not run here.
        path = f"/api/v1/namespaces/{CHAT}/persistentvolumeclaims/weights"
        site.admin.patch(path, {"metadata": {"finalizers": None}})
        yield


@fault("GMA453")
def a_server_without_a_readiness_probe(site: Site) -> Iterator[None]:
    hasty = zero("hasty")
    container = hasty["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "docker.io/vllm/vllm-openai:v0.10.0"
    with made(site, hasty, scaler("hasty")):
        yield

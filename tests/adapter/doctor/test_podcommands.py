"""Commands that change a pod's template name the workload that has it."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.doctor.podcommands import owner, set_env
from tests.adapter.doctor.clean import pod

CHANGE = "X=1"


def owned(kind: str, name: str, labels: dict[str, str] | None = None) -> Any:
    by = {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True, "uid": "u"}
    return pod("p", labels=labels or {}, owners=[by])


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_a_workload_is_named(kind: str) -> None:
    each = owned(kind, "exporter")
    assert set_env(each, "do it", CHANGE) == (
        "do it",
        f"kubectl -n chat set env {kind.lower()}/exporter X=1",
    )


def test_a_pod_of_a_replicaset_leads_to_its_deployment() -> None:
    each = owned("ReplicaSet", "my-exporter-7f9c", {"pod-template-hash": "7f9c"})
    assert owner(each) == "deployment/my-exporter"
    assert set_env(each, "do it", "X-")[1] == "kubectl -n chat set env deployment/my-exporter X-"


def test_a_replicaset_without_a_deployment_gets_no_command() -> None:
    each = owned("ReplicaSet", "exporter")
    fix, command = set_env(each, "do it", CHANGE)
    assert (fix, command) == (
        "do it: set X to 1 in the manifest of replicaset/exporter, which owns the pod",
        "",
    )


def test_a_pod_without_an_owner_gets_a_sentence() -> None:
    each = pod("p")
    assert owner(each) == "pod/p"
    fix, command = set_env(each, "do it", "X-")
    assert command == ""
    assert fix.startswith("do it: remove X in its manifest, and create the pod again")

"""Commands that change a pod's template name the workload that has it."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.pipeline.cluster.fixes import Fix
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.podcommands import delete, owner, set_env, show_page
from tests.adapter.tools.doctor.clean import pod


def owned(kind: str, name: str, labels: dict[str, str] | None = None) -> Any:
    by = {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True, "uid": "u"}
    return pod("p", labels=labels or {}, owners=[by])


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_a_workload_that_was_not_read_is_not_changed_by_a_command(kind: str) -> None:
    seen_pod = owned(kind, "exporter")
    advice, action = set_env(Facts(), seen_pod, "do it", "X", "1")
    assert advice == "do it"
    assert isinstance(action, Fix)
    assert action.command == ""
    assert f"set the variable X=1 in {kind} exporter of namespace chat" in action.text
    assert f"`kubectl -n chat get {kind.lower()} exporter -o yaml`" in action.text


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_a_workload_is_named(kind: str) -> None:
    facts = Facts(daemonsets=Fact([]), workloads=Fact([]))
    _, action = set_env(facts, owned(kind, "exporter"), "do it", "X", "1")
    assert isinstance(action, Fix)
    assert action.command == f"kubectl -n chat set env {kind.lower()}/exporter X=1"


def test_a_pod_of_a_replicaset_leads_to_its_deployment() -> None:
    seen_pod = owned("ReplicaSet", "my-exporter-7f9c", {"pod-template-hash": "7f9c"})
    assert owner(seen_pod) == "deployment/my-exporter"
    _, action = set_env(Facts(workloads=Fact([])), seen_pod, "do it", "X", None)
    assert isinstance(action, Fix)
    assert action.command == "kubectl -n chat set env deployment/my-exporter X-"


def test_a_replicaset_without_a_deployment_gets_no_command() -> None:
    seen_pod = owned("ReplicaSet", "exporter")
    assert set_env(Facts(), seen_pod, "do it", "X", "1") == (
        "do it: set X to 1 in the manifest of replicaset/exporter, which owns the pod",
        "",
    )


def test_a_pod_without_an_owner_gets_a_sentence() -> None:
    seen_pod = pod("p")
    assert owner(seen_pod) == "pod/p"
    advice, action = set_env(Facts(), seen_pod, "do it", "X", None)
    assert action == ""
    assert advice.startswith("do it: remove X in its manifest, and create the pod again")


PROXY = "/api/v1/namespaces/chat/pods/p:9400/proxy/metrics"


@pytest.mark.parametrize(
    ("proxy", "trouble", "command"),
    [
        (PROXY, Trouble.HTML, f"kubectl get --raw {PROXY}"),
        (PROXY + "?a=1&b=$(x)", Trouble.EMPTY, f"kubectl get --raw '{PROXY}?a=1&b=$(x)'"),
        (PROXY, Trouble.STATUS, "kubectl -n chat logs p --tail=20"),
        ("", Trouble.HTML, "kubectl -n chat logs p --tail=20"),
    ],
)
def test_a_page_is_shown_as_kubectl_can_show_it(proxy: str, trouble: Trouble, command: str) -> None:
    page = ExporterPage("chat/p", "n1", "dcgm-exporter", ":9400/metrics", trouble, proxy=proxy)
    assert show_page(owned("DaemonSet", "exporter"), page) == command


def test_a_pod_that_nothing_creates_again_is_only_shown() -> None:
    assert delete(owned("DaemonSet", "exporter")) == "kubectl -n chat delete pod p"
    assert delete(pod("p", labels={})) == "kubectl -n chat describe pod p"

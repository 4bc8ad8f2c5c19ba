"""Reading of a cluster: a missing right ends only the checks that need it; lists are bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapter.tools.doctor import collect, scrapes
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import invoke

PODS = "/api/v1/pods"
LISTS = (
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/api/v1/nodes",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    PODS,
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/replicasets",
    "/api/v1/events",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/api/v1/resourcequotas",
    "/api/v1/namespaces/default/events",
    "/apis/policy/v1/poddisruptionbudgets",
)


def small(server: ApiServer) -> None:
    """A cluster without anything."""
    server.answers |= {path: [] for path in LISTS}
    server.answers["/version"] = {"gitVersion": "v1.33.1"}
    server.answers["/apis"] = {"groups": []}
    review = {"status": {"allowed": True}}
    server.answers["/apis/authorization.k8s.io/v1/subjectaccessreviews"] = review


def look(kubeconfig: Path) -> dict[str, Any]:
    ended = invoke("doctor", "-o", "json", "--kubeconfig", str(kubeconfig))
    assert "Traceback" not in ended.output
    report: dict[str, Any] = json.loads(ended.output)
    return report


def exporter(name: str) -> dict[str, Any]:
    labels = {"app": "nvidia-dcgm-exporter"}
    container = {
        "name": "main",
        "image": "x",
        "ports": [{"name": "metrics", "containerPort": 9400}],
    }
    return {
        "metadata": {"name": name, "namespace": "gpu", "labels": labels},
        "spec": {"nodeName": name, "containers": [container]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }


def test_before_the_installation_the_cluster_is_checked(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        report = look(kubeconfig)
    by_id = {row["id"]: row for row in report["checks"]}
    assert by_id["GMA001"]["status"] == "fine"
    assert by_id["GMA002"]["status"] == "error"
    assert by_id["GMA012"]["status"] == "warning"
    assert by_id["GMA701"]["status"] == "skipped"
    assert {row["id"] for row in report["checks"] if row["status"] == "unknown"} == set()


@pytest.mark.parametrize("answer", [{}, {"gitVersion": None}, {"gitVersion": "main"}])
def test_a_version_that_cannot_be_read_is_not_a_version(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers["/version"] = answer
        report = look(kubeconfig)
    (row,) = [row for row in report["checks"] if row["id"] == "GMA001"]
    assert row["status"] == "unknown"
    assert "gitVersion" in row["reason"]
    assert row["command"] == "kubectl get --raw /version"


def test_a_missing_right_is_named_with_its_grant_and_the_others_go_on(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = forbidden("bob", "list", "pods", "", "")
        report = look(kubeconfig)
    by_id = {row["id"]: row for row in report["checks"]}
    assert by_id["GMA101"]["status"] == "unknown"
    assert by_id["GMA101"]["reason"] == "bob may not list pods in the whole cluster"
    assert "kubectl create clusterrole" in by_id["GMA101"]["command"]
    assert by_id["GMA001"]["status"] == "fine"


def test_a_list_ends_at_its_bound_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MOST", 2)
    monkeypatch.setattr("adapter.tools.client.access._PAGE", 1)
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = [{"metadata": {"name": f"p{i}"}, "spec": {}} for i in range(9)]
        report = look(kubeconfig)
    assert f"{PODS}: only the first 2 objects were read" in report["unread"]


def test_lists_end_when_their_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "SECONDS", -1.0)
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = [exporter("a")]
        report = look(kubeconfig)
    assert f"{PODS}: only the first 0 objects were read" in report["unread"]


def test_values_are_read_in_some_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "_NAMESPACES", 2)
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        pods = []
        for namespace in ("a", "b", "c"):
            pod = exporter("llm")
            pod["metadata"]["namespace"] = namespace
            pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
            pods.append(pod)
        server.answers[PODS] = pods
        report = look(kubeconfig)
        namespaces = {
            line.partition("/namespaces/")[2][:1] for line in server.asked if "gpu_util" in line
        }
    assert "values were read in 2 of 3 namespaces" in report["notes"]
    assert namespaces == {"a", "b"}


def test_pages_are_read_up_to_their_bound_and_an_object_that_cannot_be_read_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrapes, "MOST_PAGES", 1)
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = [exporter("a"), exporter("b"), {"metadata": {"name": 7}, "spec": 3}]
        path = "/api/v1/namespaces/gpu/pods/a:9400/proxy/metrics"
        server.answers[path] = (200, b"<html>Sign in</html>")
        report = look(kubeconfig)
    assert "only 1 of 2 exporters were read" in report["notes"]
    assert f"{PODS}: 1 object could not be decoded" in report["unread"]
    (row,) = [row for row in report["checks"] if row["id"] == "GMA104"]
    assert [finding["object"] for finding in row["findings"]] == ["pod gpu/a"]


def test_a_page_beyond_its_size_is_a_finding(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = [exporter("a")]
        path = "/api/v1/namespaces/gpu/pods/a:9400/proxy/metrics"
        server.answers[path] = (200, b"# " + b"x" * (17 << 20))
        report = look(kubeconfig)
    (row,) = [row for row in report["checks"] if row["id"] == "GMA104"]
    assert "larger than" in row["findings"][0]["message"]


def test_without_the_right_to_the_proxy_pages_could_not_be_checked(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        server.answers[PODS] = [exporter("a")]
        path = "/api/v1/namespaces/gpu/pods/a:9400/proxy/metrics"
        server.answers[path] = forbidden("bob", "get", "pods/proxy", "", "gpu")
        report = look(kubeconfig)
    (row,) = [row for row in report["checks"] if row["id"] == "GMA104"]
    assert row["status"] == "unknown"
    assert "bob may not get pods/proxy in namespace gpu" in row["reason"]


def test_pods_without_a_value_are_read_from_the_view_api(tmp_path: Path) -> None:
    view = "/apis/view.gpu-metrics-adapter.io/v1alpha1/gpupods"
    with api_server(tmp_path) as (server, kubeconfig):
        small(server)
        pod = exporter("llm-1")
        pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        server.answers[PODS] = [pod]
        why = {"reason": "exporter_down", "message": "it is down", "hint": "start it"}
        server.answers[view] = [
            {"metadata": {"name": "llm-1", "namespace": "gpu"}, "measured": False, "reason": why}
        ]
        report = look(kubeconfig)
        requests = [line for line in server.asked if view in line]
    assert requests == [f"GET {view}?limit=500&fieldSelector=measured=false"]
    (row,) = [row for row in report["checks"] if row["id"] == "GMA706"]
    assert [finding["fix"] for finding in row["findings"]] == ["start it"]

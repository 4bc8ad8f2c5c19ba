"""``explain pod`` and ``explain node``, and names that do not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.tools.client.errors import VIEW
from adapter.tools.explain import nodereport, podreport
from adapter.tools.explain.gpupod import Why, why_of_several
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.explain.cluster import (
    FIX,
    GPUPODS,
    NO_PODS_NAMED,
    NOW,
    NS,
    World,
    at,
    gpu_metric,
)
from tests.adapter.tools.explain.situations import TTFT, latencies

GPU: dict[str, Any] = {
    "metadata": {"name": "n1.gpu0"},
    "node": "n1",
    "index": "0",
    "model": "NVIDIA A100",
    "sampleTime": at(2),
    "pods": [{"namespace": NS, "name": "llm-7f9"}, {"namespace": NS, "name": "llm-b"}],
    "sharing": {"strategy": "time-slicing"},
    "values": [
        {"metric": "gpu_utilization", "value": "92", "unit": "percent"},
        {"metric": "gpu_memory_used_bytes", "value": "33285996544", "unit": "bytes"},
    ],
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    for module in (podreport, nodereport):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as server_and_file:
        yield server_and_file


def explain(lab: tuple[ApiServer, Path], world: World, *arguments: str) -> Ended:
    """Explain something of a world."""
    server, file = lab
    world.serve(server)
    server.answers["/api/v1/nodes"] = [
        {
            "metadata": {"name": name},
            "status": {"allocatable": {"nvidia.com/gpu": "1", "cpu": "8"}},
        }
        for name in ("n1", "n3")
    ]
    server.answers.setdefault(f"{VIEW}/gpus", [GPU])
    server.answers.setdefault(f"{VIEW}/gpupods", world.gpupods)
    return invoke("explain", *arguments, "--kubeconfig", str(file))


def test_a_measured_pod_shows_values_devices_and_age(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("llm-7f9", "92"), "pod", "llm-7f9")
    assert ended == (
        0,
        (
            "pod chat/llm-7f9 on n1   Running   MEASURED\n"
            "  metrics:\n"
            "    +   gpu_utilization   92 %   n1.gpu0, exact, 2s old, mean of 30 s\n"
            "  devices:\n"
            "    n1.gpu0   GPU-0   exact\n"
        ),
    )


def test_a_pod_without_a_value_shows_reason_and_fix(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("llm-x2k", node="n3", why=NO_PODS_NAMED), "pod", "llm-x2k")
    assert ended == (
        1,
        (
            "pod chat/llm-x2k on n3   Running   NOT MEASURED\n"
            "  x exporter_names_no_pod: the exporter on node n3 (gpu-operator/dcgm-x2k) answers, "
            "but names no pod\n"
            f"      fix: {FIX}\n"
            "      see docs/reasons.md#exporter_names_no_pod\n"
        ),
    )


def with_more(world: World, **more: Any) -> World:
    """Give the last pod of the view API further fields."""
    world.gpupods[-1] |= more
    return world


UNREAD: dict[str, Any] = {
    "reason": "metric_not_exported",
    "message": "The exporter writes no sample of the fields that the metric needs",
    "hint": "kubectl -n gpu-operator describe daemonset/dcgm",
    "metrics": [f"gpu_{letter}_utilization" for letter in "abcdef"],
}
LACKED: dict[str, Any] = {
    "reason": "server_not_scraped",
    "message": "The pod does not opt in to have its server page scraped",
    "hint": "kubectl -n chat patch deployment/llm",
    "docs": "docs/reasons.md#server_not_scraped",
    "metrics": ["inference_requests_waiting"],
}


def test_metrics_that_no_hpa_reads_are_one_quiet_line(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("llm-7f9", "92")
    (device,) = world.gpupods[-1]["devices"]
    devices = [device | {"leftOut": [UNREAD]}]
    ended = explain(lab, with_more(world, absent=[UNREAD], devices=devices), "pod", "llm-7f9")
    assert ended.code == 0
    assert ended.output.endswith(
        "  devices:\n"
        "    n1.gpu0   GPU-0   exact\n"
        "  without a value, and no HPA reads them: gpu_a_utilization, gpu_b_utilization, "
        "gpu_c_utilization,\n"
        "      gpu_d_utilization and 2 more (metric_not_exported)\n"
    )


def test_a_failing_server_page_is_shown_beside_the_values_of_the_gpu(
    lab: tuple[ApiServer, Path],
) -> None:
    down = {
        "reason": "server_down",
        "message": "The pod's server page does not answer: connection refused",
        "hint": "kubectl -n chat logs llm-7f9 --tail=20",
        "metrics": ["inference_requests_waiting", "inference_requests_running"],
    }
    world = World().pod("llm-7f9", "92")
    ended = explain(lab, with_more(world, absent=[down]), "pod", "llm-7f9")
    assert ended.code == 0
    assert ended.output.endswith(
        "    n1.gpu0   GPU-0   exact\n"
        "  x its server page: server_down: The pod's server page does not answer: connection "
        "refused\n"
        "      fix: kubectl -n chat logs llm-7f9 --tail=20\n"
    )


def test_a_pod_without_a_metric_that_an_hpa_reads_is_not_fine(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("llm-7f9", "92")
    hpas = [
        {"name": "llm", "metric": "inference_requests_waiting", "type": "Pods"},
        {"name": "llm", "metric": "gpu_utilization", "type": "Pods"},
    ]
    ended = explain(lab, with_more(world, absent=[LACKED, UNREAD], hpas=hpas), "pod", "llm-7f9")
    assert ended.code == 1
    assert ended.output.startswith(
        "pod chat/llm-7f9 on n1   Running   MEASURED, BUT AN HPA LACKS A METRIC\n"
        "  x HPA llm reads inference_requests_waiting, which has no value: server_not_scraped: "
        "The pod does\n"
        "      not opt in to have its server page scraped\n"
        "      fix: kubectl -n chat patch deployment/llm\n"
        "      see docs/reasons.md#server_not_scraped\n"
    )
    assert ended.output.count("inference_requests_waiting") == 1
    assert "HPAs that read it: llm (gpu_utilization)" in ended.output


def test_json_of_a_pod_names_the_hpas_that_lack_a_metric(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("llm-7f9", "92")
    hpas = [{"name": "llm", "metric": "inference_requests_waiting", "type": "Pods"}]
    given = with_more(world, absent=[LACKED], hpas=hpas)
    report = json.loads(explain(lab, given, "pod", "llm-7f9", "-o", "json").output)
    assert report["measured"] is True
    assert report["missedByHpas"] == {"inference_requests_waiting": ["llm"]}


def test_a_second_command_follows_the_first(lab: tuple[ApiServer, Path]) -> None:
    why = NO_PODS_NAMED | {"then": "kubectl -n gpu-operator delete pod dcgm-x2k"}
    for arguments in (("pod", "llm-x2k"), ("node", "n3")):
        ended = explain(lab, World().pod("llm-x2k", node="n3", why=why), *arguments)
        assert (
            f"      fix: {FIX}\n"
            "      then, if that shows no cause: kubectl -n gpu-operator delete pod dcgm-x2k\n"
        ) in ended.output


def test_a_pod_without_a_gpu_says_so(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("web-1", gpu=False), "pod", "web-1")
    assert ended.code == 1
    assert "holds no GPU" in ended.output


def test_a_pod_with_a_claim_that_no_sample_names_says_so(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("nic-0", gpu=False)
    world.pods[-1]["spec"]["resourceClaims"] = [{"name": "rdma"}]
    ended = explain(lab, world, "pod", "nic-0")
    assert ended.code == 1
    assert "claim_not_named: The pod requests no GPU resource" in ended.output
    assert "fix: For a GPU, let the exporter name pods by claims" in ended.output


def test_a_pod_of_another_namespace_is_found(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    elsewhere = {"metadata": {"name": "llm-7f9", "namespace": "prod"}}
    server.answers["/api/v1/pods"] = [elsewhere]
    ended = explain(lab, World(), "pod", "llm-7f9")
    assert ended == (
        2,
        (
            "gpu-metrics-adapter: no pod 'llm-7f9' in namespace chat: it exists in namespace prod; "
            "add -n prod\n"
        ),
    )


@pytest.mark.parametrize("kind", ["pod", "hpa"])
def test_an_unknown_name_leads_to_the_nearest(kind: str, lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("llm-7f9", "92").hpa(name="llm-7f9"), kind, "lmm-7f9")
    assert ended.code == 2
    assert ended.output.endswith("did you mean llm-7f9?\n")


def test_a_pod_needs_the_view_api(lab: tuple[ApiServer, Path]) -> None:
    missing = {"message": "the server could not find the requested resource"}
    world = World().pod("llm-7f9", "92")
    lab[0].answers[f"{GPUPODS}/llm-7f9"] = (404, missing)
    ended = explain(lab, world, "pod", "llm-7f9")
    assert ended.code == 2
    assert "does not serve view.gpu-metrics-adapter.io" in ended.output


def test_a_node_shows_its_gpus_and_who_has_them(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("llm-7f9", "92"), "node", "n1")
    assert ended == (
        0,
        (
            "node n1   nvidia.com/gpu 1   1 of 1 GPU pod measured\n"
            "  GPU   MODEL         UTIL   MEM    PODS              SHARING        AGE\n"
            "  0     NVIDIA A100   92%    31Gi   chat/llm-7f9 +1   time-slicing   2s\n"
        ),
    )


def test_a_node_that_a_budget_keeps_from_karpenter_says_so(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    explain(lab, World().pod("llm-7f9", "92"), "node", "n1")
    pods = [
        {
            "metadata": {"name": name, "namespace": NS, "labels": {"app": "llm"}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running"},
        }
        for name in ("llm-7f9", "llm-b")
    ]
    server.answers["/api/v1/pods"] = pods
    server.answers["/apis/policy/v1/poddisruptionbudgets"] = [
        {
            "metadata": {"name": "llm", "namespace": NS},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "llm"}}},
            "status": {"expectedPods": 2, "desiredHealthy": 2, "currentHealthy": 1},
        }
    ]
    ended = invoke("explain", "node", "n1", "--kubeconfig", str(file))
    assert ended.code == 0
    assert "removal: nobody has begun to remove the node; these would keep it" in ended.output
    assert "is kept by PodDisruptionBudget chat/llm (minAvailable 2)" in " ".join(
        ended.output.split()
    )
    blocked = {
        "metadata": {"name": "n1.1"},
        "involvedObject": {"kind": "Node", "name": "n1"},
        "reason": "DisruptionBlocked",
        "message": "Pdb prevents pod evictions (PodDisruptionBudget=[chat/llm])",
        "lastTimestamp": at(60),
    }
    server.answers["/api/v1/namespaces/default/events"] = [blocked]
    ended = invoke("explain", "node", "n1", "--kubeconfig", str(file))
    assert ended.code == 1
    assert "removal: Karpenter cannot remove it: Pdb prevents pod evictions" in ended.output
    budgets = forbidden("jane", "list", "poddisruptionbudgets", "policy", "")
    server.answers["/apis/policy/v1/poddisruptionbudgets"] = budgets
    output = invoke("explain", "node", "n1", "--kubeconfig", str(file)).output
    assert "causes that follow from poddisruptionbudgets are not shown" in output


def test_a_node_without_an_exporter_and_with_an_unmeasured_pod(
    lab: tuple[ApiServer, Path],
) -> None:
    ended = explain(lab, World().pod("llm-x2k", node="n3", why=NO_PODS_NAMED), "node", "n3")
    assert ended.code == 1
    assert "no exporter reports a GPU of this node" not in ended.output
    assert "1 pod (chat/llm-x2k): exporter_names_no_pod" in ended.output
    assert f"fix: {FIX}" in ended.output


def test_a_user_of_one_namespace_sees_its_pods_of_a_node(lab: tuple[ApiServer, Path]) -> None:
    refused = forbidden("jane", "list", "gpupods", "view.gpu-metrics-adapter.io", "")
    lab[0].answers[f"{VIEW}/gpupods"] = refused
    ended = explain(lab, World().pod("llm-7f9", "92"), "node", "n1")
    assert ended.code == 0
    assert "1 of 1 GPU pod measured" in ended.output
    assert "only pods of namespace chat are shown: jane may not list gpupods" in ended.output


def test_json_of_a_pod_is_the_object_of_the_view_api(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, World().pod("llm-7f9", "92"), "pod", "llm-7f9", "-o", "json")
    report = json.loads(ended.output)
    assert report["measured"] is True
    assert report["gpupod"]["metrics"][0]["number"] == 92


def test_json_of_a_node_names_the_pods_without_a_value(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("llm-x2k", node="n3", why=NO_PODS_NAMED)
    ended = explain(lab, world, "node", "n3", "-o", "json")
    assert json.loads(ended.output)["unmeasured"] == ["chat/llm-x2k"]


@pytest.mark.parametrize("version", ["a/..", "../v1", "..", "v1?watch=true"])
def test_the_api_version_of_an_hpa_does_not_choose_another_path(
    version: str, lab: tuple[ApiServer, Path]
) -> None:
    world = World().hpa(gpu_metric()).pod("llm-7f9", "92")
    world.hpas[0]["spec"]["scaleTargetRef"] = {"apiVersion": version, "kind": "X", "name": "llm"}
    ended = explain(lab, world, "hpa", "llm")
    assert 'no matches for kind "X"' in ended.output
    server, _ = lab
    known = (f"/namespaces/{NS}/", "/leases/kube-controller-manager")
    others = [path for path in server.asked if not any(part in path for part in known)]
    assert set(others) <= {"GET /api/v1", "GET /apis/a"}


def test_a_pod_that_crashes_says_why_it_does_not_serve(lab: tuple[ApiServer, Path]) -> None:
    world = World().pod("llm-7f9", "92")
    world.pods[0]["status"]["containerStatuses"] = [
        {
            "name": "main",
            "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 127}},
        }
    ]
    ended = explain(lab, world, "pod", "llm-7f9")
    assert ended.code == 1
    assert "MEASURED, BUT DOES NOT SERVE" in ended.output
    assert "exit code 127 (the command was not found)" in " ".join(ended.output.split())
    assert "fix: kubectl -n chat logs llm-7f9 -c main --previous --tail=30" in ended.output
    (cause,) = json.loads(explain(lab, world, "pod", "llm-7f9", "-o", "json").output)["causes"]
    assert cause["code"] == "crash-loop"


def test_a_node_that_offers_no_gpu_of_eight_says_so(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    status = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "0"}}
    server.answers["/api/v1/nodes/n9"] = {"metadata": {"name": "n9"}, "status": status}
    server.answers[f"{VIEW}/gpus"] = []
    server.answers[f"{VIEW}/gpupods"] = []
    ended = explain(lab, World(), "node", "n9")
    assert ended.code == 1
    assert "offers 0 of its 8 nvidia.com/gpu" in ended.output


def test_a_node_where_no_pod_can_start_says_why_and_is_not_green(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    explain(lab, World().pod("llm-7f9", "92"), "node", "n1")
    server.answers["/api/v1/nodes"] = [
        {
            "metadata": {
                "name": "n1",
                "labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"},
            },
            "spec": {"unschedulable": True},
            "status": {
                "allocatable": {"nvidia.com/gpu": "1"},
                "conditions": [{"type": "DiskPressure", "status": "True"}],
            },
        }
    ]
    taint = "no GPU pod tolerates the taint dedicated=db:NoSchedule"
    server.answers[f"{VIEW}/gpunodes/n1"] = {
        "metadata": {"name": "n1"},
        "blocked": [{"kind": "condition", "text": "cordoned"}, {"kind": "taint", "text": taint}],
    }
    ended = invoke("explain", "node", "n1", "--kubeconfig", str(file))
    output = " ".join(ended.output.split())
    assert ended.code == 1
    for text in (
        "has DiskPressure; the kubelet starts no pod",
        "the driver upgrade has failed",
        "so the node stays cordoned",
        f"no GPU pod can start: {taint}; add a toleration",
    ):
        assert text in output
    assert output.count("cordoned") == 1


def test_without_the_right_to_gpunodes_a_note_says_so(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    explain(lab, World().pod("llm-7f9", "92"), "node", "n1")
    server.answers[f"{VIEW}/gpunodes/n1"] = forbidden("jane", "get", "gpunodes", "view", "")
    ended = invoke("explain", "node", "n1", "--kubeconfig", str(file))
    assert "note: whether pods can start on the node is not known" in ended.output


def test_an_event_without_a_time_has_an_unknown_age(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    world = World().pod("llm-7f9", "92").event("Pulled", "image is there", 30)
    del world.events[0]["lastTimestamp"]
    world.events[0]["involvedObject"] = {"kind": "Pod", "name": "llm-7f9"}
    world.serve(server)
    ended = invoke("explain", "pod", "llm-7f9", "-n", NS, "--kubeconfig", str(file))
    assert "time unknown   Pulled" in ended.output
    assert "0s ago" not in ended.output
    reply = invoke("explain", "pod", "llm-7f9", "-n", NS, "-o", "json", "--kubeconfig", str(file))
    assert json.loads(reply.output)["events"][0]["age"] is None


def test_a_pod_whose_node_karpenter_cannot_get_says_so(lab: tuple[ApiServer, Path]) -> None:
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    unscheduled = {"type": "PodScheduled", "status": "False", "message": text}
    world = World().pod("llm-x2k", node="", phase="Pending", conditions=(unscheduled,))
    world.event("Nominated", "Pod should schedule on: nodeclaim/gpu-a1b2c", 30)
    world.events[0]["involvedObject"] = {"kind": "Pod", "name": "llm-x2k", "namespace": NS}
    no_capacity = "insufficient capacity, all requested instance types were unavailable"
    about = {"kind": "NodeClaim", "name": "gpu-b2c3d"}
    warning = {
        "metadata": {"name": "w1", "namespace": "default"},
        "involvedObject": about,
        "type": "Warning",
        "reason": "InsufficientCapacityError",
        "message": f"NodeClaim gpu-b2c3d event: {no_capacity}",
        "lastTimestamp": at(60),
    }
    world.answer("/api/v1/namespaces/default/events", [warning])
    world.answer("/apis/karpenter.sh/v1/nodeclaims", [])
    ended = explain(lab, world, "pod", "llm-x2k")
    output = " ".join(ended.output.split())
    assert f"InsufficientCapacityError: NodeClaim gpu-b2c3d event: {no_capacity}" in output
    assert "the cloud has none of these machines now" in output


def test_a_node_that_does_not_answer_is_said_to_be_so(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": at(600)}
    ready["message"] = "Kubelet stopped posting node status."
    explain(lab, World(), "node", "n1")
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [ready]}}
    server.answers["/api/v1/nodes"] = [node]
    ended = invoke("explain", "node", "n1", "--kubeconfig", str(lab[1]))
    assert ended.code == 1
    assert "is not Ready for 10m: Kubelet stopped posting node status" in ended.output
    assert "kubectl describe node n1" in ended.output


def test_a_latency_is_shown_with_its_precision(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, latencies(), "pod", "llm-b")
    assert ended.code == 0
    (line,) = [row for row in ended.output.splitlines() if TTFT in row]
    assert line.endswith("2.5 s   n1.gpu4, exact, 2s old, above 2.5 s, the last bound; 180 in 60 s")


def test_a_reason_of_several_pods_gives_the_detail_of_one_as_an_example() -> None:
    limit = "The newest value is older than the age limit"
    one, other = (Why("stale", f"{limit}: GPU-{at}", "", "") for at in (0, 1))
    same = why_of_several([("llm-0", one), ("llm-1", one)])
    assert same == one
    several = why_of_several([("llm-0", one), ("llm-1", other)])
    assert several is not None
    assert several.text == f"stale: {limit}: for example of llm-0: GPU-0"

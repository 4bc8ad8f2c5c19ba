"""What `explain` is asked about: TYPE/NAME as in kubectl, GPUs and workloads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.tools.client.errors import VIEW
from adapter.tools.explain import hpafacts, nodereport, podreport
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.explain.cluster import HPAS, NO_PODS_NAMED, NOW, NS, World, gpu_metric

Json = dict[str, Any]
WORKLOADS = f"{VIEW}/namespaces/{NS}/gpuworkloads"
UUID = "GPU-5f0c7f3e-1111-2222-3333-444455556666"
GPU: Json = {
    "metadata": {"name": "n1.gpu0"},
    "node": "n1",
    "uuid": UUID,
    "values": [{"metric": "gpu_utilization", "value": "92", "unit": "percent"}],
}


def gpuworkload(kind: str, name: str, pods: int, measured: int, *reasons: Json) -> Json:
    """A workload as the view API shows it."""
    return {
        "metadata": {"name": f"{kind.lower()}.{name}", "namespace": NS},
        "workload": {"kind": kind, "name": name},
        "pods": pods,
        "measured": measured,
        "reasons": list(reasons),
    }


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    for module in (podreport, nodereport, hpafacts):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as (server, file):
        world = World().hpa(gpu_metric()).pod("llm-7f9", "60").pod("llm-a11", "61")
        world.replicas = 2
        world.serve(server)
        server.answers["/api/v1/nodes"] = [{"metadata": {"name": "n1"}, "status": {}}]
        server.answers[f"{VIEW}/gpus"] = [GPU]
        server.answers[f"{VIEW}/gpupods"] = []
        server.answers[WORKLOADS] = [
            gpuworkload("Deployment", "llm", 2, 2),
            gpuworkload("StatefulSet", "train", 3, 1, {**NO_PODS_NAMED, "pods": 2}),
            gpuworkload("Job", "train", 1, 1),
        ]
        yield server, file


def explain(lab: tuple[ApiServer, Path], *arguments: str) -> Ended:
    ended = invoke("--kubeconfig", str(lab[1]), "explain", *arguments)
    return Ended(ended.code, ended.output.replace(lab[0].url, "https://lab"))


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("hpa/llm",), ("hpa", "llm")),
        (("hpas", "llm"), ("hpa", "llm")),
        (("horizontalpodautoscalers.autoscaling/llm",), ("hpa", "llm")),
        (("pod/llm-7f9",), ("pod", "llm-7f9")),
        (("po", "llm-7f9"), ("pod", "llm-7f9")),
        (("Node/n1",), ("node", "n1")),
        (("gpu/n1.gpu0",), ("gpu", "n1.gpu0")),
        (("gpu", UUID), ("gpu", "n1.gpu0")),
        (("deployment/llm",), ("workload", "deployment/llm")),
        (("deployment", "llm"), ("workload", "deployment/llm")),
        (("deploy/llm",), ("workload", "deployment/llm")),
        (("deployments.apps/llm",), ("workload", "deployment/llm")),
        (("workload", "llm"), ("workload", "deployment/llm")),
        (("workload", "deployment.llm"), ("workload", "deployment/llm")),
        (("workload/deployment/llm",), ("workload", "deployment/llm")),
        (("-n", NS, "hpa/llm"), ("hpa", "llm")),
        (("hpa/llm", "-n", NS), ("hpa", "llm")),
    ],
)
def test_an_object_has_several_spellings(
    words: tuple[str, ...], same: tuple[str, ...], lab: tuple[ApiServer, Path]
) -> None:
    ended = explain(lab, *words)
    assert ended.code in (0, 1)
    assert ended == explain(lab, *same)


def test_a_gpu_that_no_exporter_reports_leads_to_the_exporter_of_its_node(
    lab: tuple[ApiServer, Path],
) -> None:
    server, _ = lab
    server.answers[f"{VIEW}/gpunodes/gpu-b"] = {"metadata": {"name": "gpu-b"}, "silent": 8}
    why = "The exporter does not answer: HTTP 500"
    server.answers[f"{VIEW}/gpupods"] = [
        {"metadata": {"name": "x", "namespace": NS}, "node": "gpu-b", "reason": {"message": why}}
    ]
    ended = explain(lab, "gpu/gpu-b.gpu0")
    assert ended.code == 2
    assert (
        "no exporter reports 8 GPUs of node gpu-b now, so gpu-b.gpu0 has no value: "
        f"{why}; see: gpu-metrics-adapter explain node gpu-b"
    ) in ended.output
    assert "no GPU 'gpu-c.gpu0' in the cluster" in explain(lab, "gpu/gpu-c.gpu0").output


def test_a_workload_is_explained_by_its_hpa(lab: tuple[ApiServer, Path]) -> None:
    ended = explain(lab, "deployment/llm")
    head, empty, hpa, *_ = ended.output.splitlines()
    assert (ended.code, head, empty) == (0, "Deployment chat/llm   2 of 2 GPU pods measured", "")
    assert hpa.startswith("HPA chat/llm -> Deployment llm")
    assert ended.output.partition("\n\n")[2] == explain(lab, "hpa/llm").output


def test_a_workload_without_an_hpa_says_so_and_why_pods_have_no_value(
    lab: tuple[ApiServer, Path],
) -> None:
    ended = explain(lab, "statefulset/train")
    assert ended.code == 1
    assert ended.output.splitlines()[:2] == [
        "StatefulSet chat/train   1 of 3 GPU pods measured",
        "  no HPA scales it",
    ]
    assert "2 pods: exporter_names_no_pod" in ended.output
    assert "      fix: kubectl patch clusterpolicies.nvidia.com" in ended.output
    assert json.loads(explain(lab, "sts/train", "-o", "json").output)["hpas"] == []


def test_a_workload_without_hpa_and_gpu_pods_leads_to_the_cause(
    lab: tuple[ApiServer, Path],
) -> None:
    deployments = "/apis/apps/v1/namespaces/chat/deployments"
    lab[0].answers[f"{deployments}/new/scale"] = {
        "spec": {"replicas": 1},
        "status": {"replicas": 0, "selector": "app=new"},
    }
    amounts = "requested: pods=1, used: pods=0, limited: pods=0"
    message = f'pods "new-1" is forbidden: exceeded quota: gpus, {amounts}'
    lab[0].answers[f"{deployments}/new"] = {
        "metadata": {"name": "new", "namespace": NS, "generation": 1},
        "spec": {"replicas": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreate",
                    "message": message,
                }
            ],
        },
    }
    ended = explain(lab, "deployment/new")
    assert ended.code == 1
    assert ended.output.splitlines()[:2] == [
        "Deployment chat/new   no pod holds a GPU or serves models",
        "  no HPA scales it",
    ]
    assert "quota" in ended.output
    assert [
        row["code"]
        for row in json.loads(explain(lab, "deploy", "new", "-o", "json").output)["causes"]
    ] == ["quota"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("llm",), "'llm' names no object: write hpa/NAME, pod/NAME, node/NAME, gpu/NAME, scaled"),
        (("hpa/",), "'hpa/': write hpa/NAME"),
        (("/llm",), "'/llm': write hpa/NAME"),
        (("hpa",), "Missing argument 'NAME'"),
        (("hpa/lln",), "no HPA 'lln' in namespace chat: did you mean llm?"),
        (("gpu/n1.gpu9",), "no GPU 'n1.gpu9' in the cluster: did you mean n1.gpu0?"),
        (("deployment/lmm",), "no workload 'deployment/lmm' in namespace chat that an HPA scales"),
        (("workload", "train"), "'train' is 2 workloads in namespace chat: job/train, statefulset"),
    ],
)
def test_a_wrong_word_names_the_right_ones(
    words: tuple[str, ...], text: str, lab: tuple[ApiServer, Path]
) -> None:
    ended = explain(lab, *words)
    assert ended.code == 2
    assert text in ended.output


def test_without_the_view_api_nothing_is_said_of_gpus(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    del server.answers[WORKLOADS]
    name = "apis/apps/v1/namespaces/chat/deployments/new"
    scale = {"spec": {"replicas": 0}, "status": {"replicas": 0, "selector": "app=new"}}
    server.answers |= {f"/{name}": {"metadata": {"name": "new"}}, f"/{name}/scale": scale}
    ended = explain(lab, "deployment/new")
    assert "GPUs and values of its pods could not be looked at" in ended.output
    assert "no pod holds a GPU" not in ended.output
    assert ended.code == 2


SCALED: Json = {
    "metadata": {"name": "gpu", "namespace": NS, "creationTimestamp": "2026-03-01T10:00:00Z"},
    "spec": {
        "scaleTargetRef": {"name": "llm"},
        "triggers": [{"type": "external", "metadata": {"scalerAddress": "adapter.gpu:6000"}}],
    },
}


@pytest.mark.parametrize("name", ["hpa/gpu", "hpa/keda-hpa-gpu", "so/gpu", "scaledobject/gpu"])
def test_a_scaledobject_without_an_hpa_is_explained(name: str, lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers["/apis/keda.sh/v1alpha1/namespaces/chat/scaledobjects"] = [SCALED]
    ended = explain(lab, name)
    assert ended.code == 1
    assert "ScaledObject chat/gpu -> Deployment llm   NO HPA" in ended.output
    assert "KEDA's operator has not looked at it" in ended.output
    assert "HPA llm scales Deployment llm too" in " ".join(ended.output.split())
    body = json.loads(explain(lab, name, "-o", "json").output)
    assert body["hpa"] is None
    assert [row["code"] for row in body["causes"]] == [
        *("scaled-object", "scaler-address", "scaled-object")
    ]


def test_a_cluster_without_keda_has_no_scaledobjects(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers["/apis"] = {"groups": [{"name": "autoscaling"}]}
    missing = explain(lab, "scaledobject/llm")
    server.answers["/apis"] = {"groups": [{"name": "keda.sh"}]}
    server.answers["/apis/keda.sh/v1alpha1/namespaces/chat/scaledobjects"] = []
    unknown = explain(lab, "scaledobject/llm")
    assert (missing.code, unknown.code) == (2, 2)
    text = "no ScaledObject 'llm': the cluster has no ScaledObjects, because KEDA is not installed"
    assert text in missing.output
    assert "login page" not in missing.output
    assert "no ScaledObject 'llm' in namespace chat" in unknown.output


@pytest.mark.parametrize("exists", [False, True])
def test_an_hpa_that_may_not_be_listed_is_missing_only_if_the_server_says_so(
    exists: bool, lab: tuple[ApiServer, Path]
) -> None:
    server, _ = lab
    ready = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": ""}
    row = {**SCALED, "status": {"conditions": [ready]}}
    server.answers["/apis/keda.sh/v1alpha1/namespaces/chat/scaledobjects"] = [row]
    (hpa,) = (one for one in server.answers[HPAS] if one["metadata"]["name"] == "llm")
    server.answers[HPAS] = forbidden("ana", "list", "horizontalpodautoscalers", "autoscaling", NS)
    name = "keda-hpa-gpu"
    if exists:
        server.answers[f"{HPAS}/{name}"] = {**hpa, "metadata": {"name": name, "namespace": NS}}
    output = " ".join(explain(lab, "so/gpu").output.split())
    assert ("NO HPA" in output) is not exists


def test_a_scaledobject_of_a_workload_is_explained(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers[HPAS] = []
    server.answers["/apis/keda.sh/v1alpha1/namespaces/chat/scaledobjects"] = [SCALED]
    ended = explain(lab, "deployment/llm")
    assert ended.code == 1
    assert "KEDA's operator has not looked at it" in ended.output


def test_an_address_is_compared_with_its_service(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    ready = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": ""}
    row = {**SCALED, "status": {"conditions": [ready]}}
    server.answers[HPAS] = []
    server.answers["/apis/keda.sh/v1alpha1/namespaces/chat/scaledobjects"] = [row]
    service = {"metadata": {"name": "adapter"}, "spec": {"ports": [{"port": 443}]}}
    server.answers["/api/v1/namespaces/gpu/services"] = [service]
    assert "has no such port (it has 443)" in " ".join(explain(lab, "so/gpu").output.split())
    service["spec"] = {"ports": [{"port": 6000}]}
    server.answers["/apis/discovery.k8s.io/v1/namespaces/gpu/endpointslices"] = []
    assert "no pod of Service gpu/adapter is ready" in " ".join(
        explain(lab, "so/gpu").output.split()
    )


def test_without_the_view_api_a_workload_is_explained_by_its_hpa(
    lab: tuple[ApiServer, Path],
) -> None:
    del lab[0].answers[WORKLOADS]
    ended = explain(lab, "deployment/llm")
    assert "HPA chat/llm" in ended.output
    assert "note: values of pods are not shown: the cluster does not serve" in ended.output

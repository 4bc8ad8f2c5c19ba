"""`conformance`: what it takes for proven, and what it says about where it looked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config.process.output import Screen
from adapter.tools.client.access import cluster
from adapter.tools.client.errors import ClientError
from adapter.tools.client.impersonation import Impersonation
from adapter.tools.conformance import watching
from adapter.tools.conformance.evidence import DESCRIPTION, ConformanceEvidence, HpaLook
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import invoke
from tests.adapter.world import World, make_pod
from tests.docs.pages import ROOT

NS = "chat"
HPAS = f"/apis/autoscaling/v2/namespaces/{NS}/horizontalpodautoscalers"
PODS = f"/api/v1/namespaces/{NS}/pods"
SCALE = f"/apis/apps/v1/namespaces/{NS}/deployments/llm/scale"
Json = dict[str, Any]
Phase = tuple[int, int, int, str]
"""Replicas, wanted, running pods, value."""
STEADY: Phase = (1, 1, 1, "30")
PROOF: list[Phase] = [
    STEADY,
    (1, 3, 1, "180"),
    (3, 3, 2, "180"),
    (3, 3, 3, "100"),
    (3, 1, 3, "10"),
    (1, 1, 1, "10"),
]
LIMITS: Json = {"limits": {"nvidia.com/gpu": "1"}}


def metric(value: str, kind: str = "Pods") -> tuple[Json, Json]:
    goal = {"type": "AverageValue", "averageValue": "70"}
    if kind == "Resource":
        goal = {"type": "AverageValue", "averageValue": "70"}
        of: Json = {"name": "cpu"}
        return (
            {"type": kind, "resource": of | {"target": goal}},
            {"type": kind, "resource": of | {"current": {"averageValue": value}}},
        )
    of = {"metric": {"name": "gpu_utilization"}}
    current = {"current": {"averageValue": value}} if value else {}
    return {"type": kind, "pods": of | {"target": goal}}, {"type": kind, "pods": of | current}


def furnish(
    server: ApiServer, phase: Phase, *, kind: str = "Pods", resources: Json = LIMITS
) -> None:
    """The cluster in one phase."""
    replicas, wanted, running, value = phase
    spec, current = metric(value, kind)
    true = [{"type": name, "status": "True"} for name in ("AbleToScale", "ScalingActive")]
    hpa = {
        "metadata": {"name": "llm", "namespace": NS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "maxReplicas": 8,
            "metrics": [spec],
        },
        "status": {
            "currentReplicas": replicas,
            "desiredReplicas": wanted,
            "currentMetrics": [current] if value else [],
            "conditions": true,
        },
    }
    pods = [
        {
            "metadata": {
                "name": f"llm-{n}",
                "namespace": NS,
                "uid": f"u{n}",
                "labels": {"app": "llm"},
            },
            "spec": {
                "nodeName": f"n{n}" if n < running else "",
                "containers": [{"name": "server", "resources": resources}],
            },
            "status": {"phase": "Running" if n < running else "Pending"},
        }
        for n in range(replicas)
    ]
    info = {"kubeletVersion": "v1.37.2"}
    scales = {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"}
    apps = [{"name": "deployments", "kind": "Deployment", "namespaced": True}, scales]
    server.answers |= {
        "/version": {"gitVersion": "v1.37.2"},
        "/apis/custom.metrics.k8s.io": {"versions": [{"version": "v1beta2"}]},
        "/apis/apps": {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        "/apis/apps/v1": {"resources": apps},
        HPAS: [hpa],
        PODS: pods,
        SCALE: {"spec": {"replicas": replicas}, "status": {"selector": "app=llm"}},
        "/api/v1/pods": [],
        "/api/v1/nodes": [{"metadata": {"name": "n0"}, "status": {"nodeInfo": info}}],
    }


async def watched(
    folder: Path,
    phases: list[Phase],
    change: Callable[[ApiServer, int], None] = lambda *_: None,
    **given: Any,
) -> ConformanceEvidence:
    """The evidence of an HPA that goes through phases, one at each look."""
    times = iter(range(0, 10_000, 10))
    with api_server(folder) as (server, file):
        position = 0

        def show() -> None:
            furnish(server, phases[min(position, len(phases) - 1)], **given)
            change(server, position)

        async def sleep(_: float) -> None:
            nonlocal position
            position += 1
            show()

        show()
        looks: list[HpaLook] = []
        async with cluster(file, None, NS, Impersonation()) as api:
            return await watching.watch(
                api,
                "llm",
                float(20 * len(phases)),
                5.0,
                progress=looks.append,
                sleep=sleep,
                clock=lambda: 1_700_000_000.0 + next(times),
            )


def product(evidence: ConformanceEvidence) -> Json:
    text = "\n".join(evidence.lines(Screen(width=200)))
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (requirement,) = yaml.safe_load(block)["spec"]["schedulingOrchestration"]
    return dict(requirement)


async def test_an_hpa_that_scales_out_and_in_is_proof(tmp_path: Path) -> None:
    evidence = await watched(tmp_path, [*PROOF, (8, 8, 8, "999")])
    assert evidence.status == 0
    assert len(evidence.looks) == len(PROOF)  # the watch ends with the proof
    clock = re.compile(r"at \d\d:\d\d:\d\d UTC")
    served, accelerators, out, back = (clock.sub("at T", s.proof) for s in evidence.steps())
    reads = "the HPA reads Pods metric `gpu_utilization`: 30, target 70"
    assert served == f"custom.metrics.k8s.io (v1beta2) is served, and {reads}"
    assert accelerators == "3 pods, each with 1 nvidia.com/gpu"
    rise = "1 to 3 replicas, seen at T, with `gpu_utilization` at 180 of 70 at T"
    assert out == f"{rise}; 3 pods ran on 3 nodes with accelerators"
    assert back == "3 to 1 replicas, seen at T, with `gpu_utilization` at 10 of 70 at T"
    assert product(evidence) == {
        "id": "pod_autoscaling",
        "description": DESCRIPTION,
        "level": "MUST",
        "status": "Implemented",
        "evidence": ["pod_autoscaling.md"],
        "notes": "HorizontalPodAutoscaler on the custom metric gpu_utilization.",
    }
    text = "\n".join(evidence.lines(Screen(width=200)))
    assert "Real, as far as can be seen: no sign of a simulated node or exporter." in text
    assert re.search(r"\| \d\d:\d\d:\d\d \| 180 \| 70 \| 1 \| 3 \| 1 \|", text)


UNPROVEN = {
    "no rise": ([STEADY, STEADY], 2, "no rise of the replicas was seen"),
    "its maximum": ([(8, 8, 8, "180"), (8, 8, 8, "180")], 2, "it is at maxReplicas (8) and cannot"),
    "a rise that no value explains": ([(1, 1, 1, "30"), (3, 3, 3, "30")], 2, "no rise"),
    "pods that wait": ([STEADY, (1, 3, 1, "180"), (3, 3, 2, "180")], 2, "3 pods never ran"),
    "no fall": ([STEADY, (1, 3, 1, "180"), (3, 3, 3, "180")], 3, "no fall of the replicas"),
    "a fall at high load": (
        [STEADY, (1, 3, 1, "180"), (3, 3, 3, "180"), (1, 1, 1, "180")],
        3,
        "no fall of the replicas",
    ),
    "a rise long after a peak": (
        [STEADY, (1, 1, 1, "180"), STEADY, (3, 3, 3, "30"), (1, 1, 1, "30")],
        2,
        "no rise of the replicas",
    ),
    "a fall long after a lull": (
        [STEADY, (1, 3, 1, "180"), (3, 3, 3, "60"), (3, 3, 3, "180"), (1, 1, 1, "180")],
        3,
        "no fall of the replicas",
    ),
    "no value": ([(1, 1, 1, ""), (3, 3, 3, ""), (1, 1, 1, "")], 0, "never had a value"),
}


@pytest.mark.parametrize("case", UNPROVEN)
async def test_what_is_not_seen_is_not_proven(case: str, tmp_path: Path) -> None:
    phases, number, words = UNPROVEN[case]
    evidence = await watched(tmp_path, phases)
    assert evidence.status == 1
    step = evidence.steps()[number]
    assert step.proof == ""
    assert words in step.missing
    requirement = product(evidence)
    assert (requirement["status"], requirement["evidence"]) == ("", [])
    assert requirement["notes"].startswith("Not proven: ")


async def test_the_look_that_explains_a_change_is_shown(tmp_path: Path) -> None:
    phases = [STEADY, (3, 3, 3, "180"), (3, 3, 3, "100"), (3, 1, 3, "20"), (1, 1, 1, "60")]
    evidence = await watched(tmp_path, phases)
    *_, out, back = (step.proof for step in evidence.steps())
    clocks = [re.findall(r"at (\d\d:\d\d:\d\d) UTC", proof) for proof in (out, back)]
    assert clocks[0][0] == clocks[0][1]  # before the rise, the value was below the target
    assert "at 180 of 70" in out
    assert clocks[1][0] > clocks[1][1]
    assert "at 20 of 70" in back
    timeline = [line.split(" | ") for line in evidence.lines(Screen(width=200))]
    shown = {row[0].strip("| "): row[1] for row in timeline if len(row) == 6}
    assert (shown[clocks[0][1]], shown[clocks[1][1]]) == ("180", "20")


async def test_pods_without_accelerators_and_metrics_of_resources_prove_nothing(
    tmp_path: Path,
) -> None:
    plain = await watched(tmp_path, PROOF, resources={"limits": {"cpu": "1"}})
    assert plain.steps()[1].missing == "no: llm-0, llm-1, llm-2"
    cpu = await watched(tmp_path, PROOF, kind="Resource")
    assert cpu.status == 1
    assert cpu.steps()[0].missing == "the HPA has no Pods, Object or External metric"


CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims"


def claim(name: str, *classes: str, driver: str = "") -> Json:
    requests = [{"name": of, "exactly": {"deviceClassName": of}} for of in classes]
    results = [{"driver": driver, "device": "d"}] if driver else []
    return {
        "metadata": {"name": name, "namespace": NS},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def claiming(
    *classes: str, driver: str = "", answer: Any = None
) -> Callable[[ApiServer, int], None]:
    """Each pod has a claim of its own, and all have one of the network."""

    def change(server: ApiServer, _: int) -> None:
        for pod in server.answers[PODS]:
            name = pod["metadata"]["name"]
            pod["spec"]["resourceClaims"] = [
                {"name": "net", "resourceClaimName": "net"},
                {"name": "gpu", "resourceClaimTemplateName": "gpu"},
            ]
            pod["status"]["resourceClaimStatuses"] = [
                {"name": "gpu", "resourceClaimName": f"{name}-gpu-x"}
            ]
        claims = [claim(f"llm-{n}-gpu-x", *classes, driver=driver) for n in range(3)]
        server.answers[CLAIMS] = answer or [claim("net", "rdma.example"), *claims]

    return change


@pytest.mark.parametrize(
    ("classes", "driver", "proof"),
    [
        (("gpu.nvidia.com",), "", "3 pods, each with a resource claim of gpu.nvidia.com"),
        (("fast", "sriov"), "gpu.nvidia.com", "3 pods, each with a resource claim of fast"),
        (("sriov",), "", ""),
        (("fast",), "rdma.example", ""),
    ],
)
async def test_a_claim_of_an_accelerator_counts_and_one_of_a_network_card_does_not(
    classes: tuple[str, ...], driver: str, proof: str, tmp_path: Path
) -> None:
    evidence = await watched(tmp_path, PROOF, claiming(*classes, driver=driver), resources={})
    step = evidence.steps()[1]
    assert step.proof == proof
    assert step.missing == ("" if proof else "no: llm-0, llm-1, llm-2")
    assert evidence.not_looked_at == []
    assert product(evidence)["status"] == ("Implemented" if proof else "")


async def test_claims_that_cannot_be_read_are_not_proof(tmp_path: Path) -> None:
    forbidden = (403, {"message": "resourceclaims is forbidden", "reason": "Forbidden"})
    change = claiming("gpu.nvidia.com", answer=forbidden)
    evidence = await watched(tmp_path, PROOF, change, resources={})
    assert evidence.status == 1
    names = "llm-0, llm-1, llm-2"
    assert evidence.steps()[1].missing == f"the device classes of the claims are not known: {names}"
    text = "\n".join(evidence.lines(Screen(width=200)))
    assert re.search(r"Not looked at: device classes of claims \(.*forbidden", text)
    assert "device classes of claims" in evidence.json()["notLookedAt"][0]
    assert product(evidence)["status"] == ""


async def test_a_claim_that_could_be_read_once_is_known(tmp_path: Path) -> None:
    def change(server: ApiServer, at: int) -> None:
        claiming("gpu.nvidia.com", answer=(500, {}) if at != 3 else None)(server, at)
        for pod in server.answers[PODS]:
            if at < 2:  # the claims are not made from their template yet
                del pod["status"]["resourceClaimStatuses"]

    evidence = await watched(tmp_path, PROOF, change, resources={})
    assert evidence.steps()[1].proof == "3 pods, each with a resource claim of gpu.nvidia.com"
    assert evidence.not_looked_at == []


async def test_pods_with_gpu_resources_count_by_these(tmp_path: Path) -> None:
    evidence = await watched(tmp_path, PROOF, claiming("sriov", answer=(403, {})))
    assert evidence.steps()[1].proof == "3 pods, each with 1 nvidia.com/gpu"


def odd_node(server: ApiServer, _: int) -> None:
    info = {"kubeletVersion": "kwok-v0.7.0"}
    server.answers["/api/v1/nodes"] = [{"metadata": {"name": "n0"}, "status": {"nodeInfo": info}}]


def stand_in(server: ApiServer, _: int) -> None:
    containers = [{"name": "exporter", "args": ["demo", "--exporter", "n0"]}]
    labels = {"app.kubernetes.io/name": "dcgm-exporter"}
    meta = {"namespace": "simulated-gpus", "name": "dcgm-x", "labels": labels}
    server.answers["/api/v1/pods"] = [{"metadata": meta, "spec": {"containers": containers}}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (odd_node, "1 of 1 nodes say that they are simulated, such as n0"),
        (stand_in, "exporter simulated-gpus/dcgm-x simulates GPUs"),
    ],
)
async def test_a_simulation_is_named_and_is_not_evidence_for_a_platform(
    change: Callable[[ApiServer, int], None], words: str, tmp_path: Path
) -> None:
    evidence = await watched(tmp_path, PROOF, change)
    assert evidence.status == 0
    text = "\n".join(evidence.lines(Screen(width=200)))
    assert f"**Simulated, not evidence for a platform**: {words}." in text
    requirement = product(evidence)
    assert (requirement["status"], requirement["notes"]) == ("", "Proven on a simulation only.")


async def test_what_could_not_be_looked_at_is_said(tmp_path: Path) -> None:
    def denied(server: ApiServer, _: int) -> None:
        del server.answers["/api/v1/nodes"]

    evidence = await watched(tmp_path, PROOF, denied)
    assert "Not looked at: nodes (" in "\n".join(evidence.lines(Screen(width=200)))


async def test_an_hpa_that_does_not_exist_is_named(tmp_path: Path) -> None:
    def gone(server: ApiServer, _: int) -> None:
        server.answers[HPAS] = []

    with pytest.raises(ClientError, match="llm"):
        await watched(tmp_path, PROOF, gone)


def test_the_command_ends_with_1_and_writes_each_format(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        furnish(server, STEADY)
        command = ("conformance", "llm", "-n", NS, "--over", "0s", "--kubeconfig", str(file))
        done = invoke(*command)
        assert done.code == 1
        assert "| The HPA scales in | FAIL | it has to follow a rise |" in done.output
        output = invoke(*command, "-o", "json").output
        content = json.loads(output[output.index("{") :])
        assert [step["passed"] for step in content["steps"]] == [True, True, False, False]
        assert yaml.safe_load(content["product"])["spec"]


def test_the_queue_of_the_example_is_the_metric_of_its_hpa() -> None:
    example = (ROOT / "docs/examples/conformance.yaml").read_text()
    objects = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(example)}
    page = objects["ConfigMap"]["data"]["metrics"].replace("} 0", "} 20")
    template = objects["Deployment"]["spec"]["template"]["metadata"]
    pod = make_pod("c-0", node="n", annotations=template["annotations"])
    world = World(pod)
    world.scrape(page, 100.0, origin="http://c-0", pod=pod.ref, serves=True)
    name = objects["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert world.value("c-0", name, 101.0) == 20.0

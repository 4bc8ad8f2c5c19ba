"""``explain hpa`` shows the headroom of the workload: which objects count, and what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import headroomobjects
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.plan.order import Order
from adapter.tools.explain import hpafacts
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.explain.cluster import NOW
from tests.adapter.tools.explain.situations import APISERVICE, SITUATIONS, WHY, headroom

BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{}/capacitybuffers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    monkeypatch.setattr(hpafacts, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as (server, file):
        SITUATIONS["headroom"].world.serve(server)
        yield server, file


def explained(lab: tuple[ApiServer, Path], *arguments: str) -> Ended:
    return invoke("explain", "hpa", "llm", "--kubeconfig", str(lab[1]), *arguments)


def test_the_json_has_the_object_and_the_forecast(lab: tuple[ApiServer, Path]) -> None:
    (row,) = json.loads(explained(lab, "-o", "json").output)["headroom"]
    assert row == {
        "kind": "CapacityBuffer",
        "namespace": "gpu-metrics",
        "name": "gpu-headroom-0a1b2c3d4e",
        "pods": 2,
        "pool": "gpu-h100",
        "why": WHY,
    }


def test_only_the_namespaces_of_the_adapter_and_of_the_hpa_count(
    lab: tuple[ApiServer, Path],
) -> None:
    """A tenant may write such an object in another namespace."""
    server, _ = lab
    server.answers[BUFFERS.format("tenant")] = [headroom("tenant", why="order more")]
    server.answers["/apis/apps/v1/deployments"] = [headroom("tenant", why="order more")]
    assert "order more" not in explained(lab).output
    server.answers[DEPLOYMENTS.format("chat")] = [headroom("chat", why="with claims")]
    assert "held by Deployment chat/gpu-headroom-0a1b2c3d4e: with claims" in " ".join(
        explained(lab).output.split()
    )


def test_headroom_of_other_workloads_is_left_out(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers[BUFFERS.format("gpu-metrics")] = [
        headroom(workloads="Deployment/llm-2, StatefulSet/llm")
    ]
    assert "headroom" not in explained(lab).output


def test_text_of_an_object_cannot_move_the_cursor(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers[BUFFERS.format("gpu-metrics")] = [headroom(why="a\x1b[2J\nb")]
    output = explained(lab).output
    assert "\x1b" not in output
    assert "headroom: 2 pods" in output


def test_an_odd_object_is_shown_with_what_it_has(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    row = headroom()
    row["spec"] = {"replicas": "many"}
    del row["metadata"]["annotations"]["gpu-metrics-adapter.io/why"]
    server.answers[BUFFERS.format("gpu-metrics")] = [row]
    assert "headroom: 0 pods in pool gpu-h100" in explained(lab).output
    assert "no reason is written on it" in " ".join(explained(lab).output.split())


def test_a_missing_right_is_a_note(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    server.answers[APISERVICE] = SITUATIONS["headroom-denied"].world.answers[APISERVICE]
    done = explained(lab)
    assert done.code == 0
    assert "headroom of nodepool is not shown:" in done.output


def test_the_annotations_are_those_that_the_controller_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(headroomobjects, "shape_text", lambda _: "{}")
    monkeypatch.setattr(headroomobjects, "name_of", lambda _: "gpu-headroom-0a1b2c3d4e")
    monkeypatch.setattr(headroomobjects, "labels", lambda _: {})
    order = Order(
        namespace="chat",
        shape=None,  # type: ignore[arg-type]  # not read
        pool="gpu-h100",
        replicas=2,
        was=0,
        pods=3,
        reckoned=3,
        needed_at=NOW,
        workloads=(WorkloadRef("chat", "Deployment", "llm"),),
        reasons=(Reason("forecast", WHY),),
        about=("Deployment/llm", "Deployment/embed"),
    )
    lifeline = SimpleNamespace(namespace="gpu-metrics", reference=dict)
    written = headroomobjects.metadata(order, cast("Lifeline", lifeline), None)["annotations"]
    shown = headroom()["metadata"]["annotations"]
    assert shown.items() <= written.items()

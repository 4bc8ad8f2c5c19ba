"""Scale targets by group and kind, whichever version the HPA names, as the controller has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import invoke
from tests.adapter.tools.explain.cluster import NS, World, gpu_metric

Json = dict[str, Any]
FLEET = "/apis/agones.dev"
ROWS = [
    {"name": "fleets", "kind": "Fleet"},
    {"name": "fleets/scale", "kind": "Scale"},
    {"name": "gameservers", "kind": "GameServer"},
]
SCALED = {"spec": {"replicas": 3}, "status": {"replicas": 3, "selector": "app=llm"}}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as server_and_file:
        yield server_and_file


def of_target(version: str, kind: str) -> World:
    """An HPA of a target in a cluster with a group of custom resources in two versions."""
    world = World().hpa(gpu_metric()).pod("llm-7f9", "92")
    reference = {"apiVersion": version, "kind": kind, "name": "llm"}
    world.hpas[0]["spec"]["scaleTargetRef"] = reference
    versions = [{"version": "v1"}, {"version": "v1beta1"}]
    world.answer(FLEET, {"versions": versions, "preferredVersion": {"version": "v1"}})
    # The kind with the scale subresource is in the older version alone.
    world.answer(f"{FLEET}/v1", {"resources": [ROWS[2]]})
    world.answer(f"{FLEET}/v1beta1", {"resources": ROWS})
    return world.answer(f"{FLEET}/v1beta1/namespaces/{NS}/fleets/llm/scale", SCALED)


def explain(lab: tuple[ApiServer, Path], world: World) -> str:
    server, file = lab
    world.serve(server)
    return invoke("explain", "hpa", "llm", "-n", NS, "--kubeconfig", str(file)).output


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps/v1", "Deployment"),
        ("apps/v1beta1", "Deployment"),
        ("apps/v9", "Deployment"),
        ("agones.dev/v1", "Fleet"),
        ("agones.dev/v1beta1", "Fleet"),
        ("agones.dev/v1alpha1", "Fleet"),
    ],
)
def test_every_version_of_a_served_group_finds_the_target(
    version: str, kind: str, lab: tuple[ApiServer, Path]
) -> None:
    output = explain(lab, of_target(version, kind))
    assert "NO SCALE" not in output
    assert "3 replicas" in output


@pytest.mark.parametrize(
    ("version", "kind", "why", "fix"),
    [
        (
            "apps/v1",
            "DaemonSet",
            "DaemonSet has no scale subresource",
            "fix: delete the HPA: a DaemonSet has one pod a node, for any load",
        ),
        (
            "v1",
            "Pod",
            "Pod has no scale subresource",
            "fix: scale the Deployment or StatefulSet that has the pods, not a Pod",
        ),
        (
            "agones.dev/v1",
            "GameServer",
            "GameServer has no scale subresource",
            "or add subresources.scale to CustomResourceDefinition gameservers.agones.dev",
        ),
        (
            "extensions/v1beta1",
            "Deployment",
            'no matches for kind "Deployment" in group "extensions"',
            (
                "fix: kubectl -n chat patch hpa llm --type=merge -p "
                """'{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1"}}}'"""
            ),
        ),
        (
            "",
            "Deployment",
            'no matches for kind "Deployment" in group ""',
            (
                "fix: kubectl -n chat patch hpa llm --type=merge -p "
                """'{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1"}}}'"""
            ),
        ),
        (
            "argoproj.io/v1alpha1",
            "Rollout",
            'no matches for kind "Rollout" in group "argoproj.io"',
            (
                "fix: correct spec.scaleTargetRef, or install what defines the kind Rollout of "
                "argoproj.io"
            ),
        ),
    ],
)
def test_a_target_that_nothing_can_scale_says_so_with_a_fix(
    version: str, kind: str, why: str, fix: str, lab: tuple[ApiServer, Path]
) -> None:
    world = of_target(version, kind)
    world.answer("/api/v1", {"resources": [{"name": "pods", "kind": "Pod"}]})
    output = explain(lab, world)
    assert "NO SCALE" in output
    assert why in " ".join(output.split())
    assert fix in " ".join(output.split())


def test_hpas_of_one_target_by_two_versions_are_rivals(lab: tuple[ApiServer, Path]) -> None:
    world = World().hpa(gpu_metric()).pod("llm-7f9", "92").hpa(gpu_metric(), name="other")
    world.hpas[1]["spec"] = world.hpas[1]["spec"] | {
        "scaleTargetRef": {"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "llm"}
    }
    assert "AmbiguousSelector" in explain(lab, world)


OF_LWS = "leaderworkerset.sigs.k8s.io"
LWS = "/apis/leaderworkerset.x-k8s.io"
PLACE = f"{LWS}/v1/namespaces/{NS}/leaderworkersets/llm/scale"


def of_groups(labels: dict[str, str] | None = None, size: str = "4") -> World:
    """An HPA of a LeaderWorkerSet whose leaders are idle."""
    metric = gpu_metric()
    if labels:
        metric["pods"]["metric"]["selector"] = {"matchLabels": labels}
    world = World(replicas=2).hpa(metric).pod("llm-0", "3").pod("llm-1", "2")
    for pod in world.pods:
        pod["metadata"]["annotations"] = {f"{OF_LWS}/size": size}
        pod["metadata"]["labels"] = {f"{OF_LWS}/name": "llm", f"{OF_LWS}/worker-index": "0"}
    reference = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    world.hpas[0]["spec"]["scaleTargetRef"] = {**reference, "name": "llm"}
    world.answer(LWS, {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}})
    rows = [
        {"name": "leaderworkersets", "kind": "LeaderWorkerSet"},
        {"name": "leaderworkersets/scale", "kind": "Scale"},
    ]
    world.answer(f"{LWS}/v1", {"resources": rows})
    selector = f"{OF_LWS}/name=llm,{OF_LWS}/worker-index=0"
    scale = {"spec": {"replicas": 2}, "status": {"replicas": 2, "selector": selector}}
    return world.answer(PLACE, scale)


def test_a_metric_of_leaders_only_is_said_with_the_patch(lab: tuple[ApiServer, Path]) -> None:
    output = " ".join(explain(lab, of_groups()).split())
    assert "gpu_utilization is read of the leaders only" in output
    where = '"path":"/spec/metrics/0/pods/metric/selector"'
    assert f'{where},"value":{{"matchLabels":{{"aggregate":"mean"}}}}' in output


def test_groups_of_one_pod_have_nothing_but_leaders(lab: tuple[ApiServer, Path]) -> None:
    assert "leaders only" not in explain(lab, of_groups(size="1"))


def test_the_value_of_a_group_is_called_so(lab: tuple[ApiServer, Path]) -> None:
    output = " ".join(explain(lab, of_groups({"aggregate": "mean"})).split())
    assert "leaders only" not in output
    assert "the mean over its group of pods" in output
    assert "selects nothing" not in output

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
    with api_server(tmp_path) as found:
        yield found


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

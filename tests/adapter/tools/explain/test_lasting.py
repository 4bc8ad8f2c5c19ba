"""What `explain` prints as the fix of one fault, by what manages the object that has to change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import invoke
from tests.adapter.tools.explain.cluster import (
    EXPORTER,
    FIX,
    NO_PODS_NAMED,
    NS,
    SCALE,
    World,
    gpu_metric,
)

Json = dict[str, Any]
TRACKED = {"argocd.argoproj.io/tracking-id": "gpu:apps/DaemonSet:gpu-operator/nvidia-dcgm-exporter"}
RELEASED = {"meta.helm.sh/release-name": "dcgm", "meta.helm.sh/release-namespace": "gpu-operator"}
ENV = [{"name": "DCGM_EXPORTER_KUBERNETES", "value": "false"}, {"name": "A", "value": "1"}]


def daemonset(**meta: Any) -> Json:
    named = {"namespace": "gpu-operator", "name": "nvidia-dcgm-exporter"}
    pod = {"containers": [{"name": "exporter", "env": ENV}]}
    return {"metadata": named | meta, "spec": {"template": {"spec": pod}}}


CASES: dict[str, tuple[Any, str]] = {
    "nobody": (
        daemonset(),
        (
            "fix: kubectl -n gpu-operator set env daemonset/nvidia-dcgm-exporter "
            "DCGM_EXPORTER_KUBERNETES=true"
        ),
    ),
    "argo": (
        daemonset(annotations=TRACKED),
        (
            "fix: change it in git (Argo CD Application gpu): set the variable "
            "DCGM_EXPORTER_KUBERNETES=true in DaemonSet nvidia-dcgm-exporter"
        ),
    ),
    "helm": (
        daemonset(annotations=RELEASED, labels={"helm.sh/chart": "dcgm-exporter-4.6.1"}),
        (
            "fix: helm upgrade dcgm dcgm-exporter --repo "
            "https://nvidia.github.io/dcgm-exporter/helm-charts --version 4.6.1 -n gpu-operator "
            '--reuse-values --set-json \'extraEnv=[{"name":"A","value":"1"},'
            '{"name":"DCGM_EXPORTER_KUBERNETES","value":"true"}]\''
        ),
    ),
    "gke": (
        daemonset(labels={"addonmanager.kubernetes.io/mode": "Reconcile"}),
        (
            "fix: nothing changes DaemonSet nvidia-dcgm-exporter for good, because the cluster's "
            "addon manager writes it again"
        ),
    ),
    "somebody, and it may not be read": (
        forbidden("ann", "get", "daemonsets", "apps", "gpu-operator"),
        (
            "where it is managed: its ownerReferences, labels and annotations say by what "
            "(`kubectl -n gpu-operator get daemonset "
            "nvidia-dcgm-exporter -o yaml`"
        ),
    ),
}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as server_and_file:
        yield server_and_file


def explain(lab: tuple[ApiServer, Path], world: World, *arguments: str) -> str:
    server, file = lab
    world.serve(server)
    return invoke("explain", *arguments, "-n", NS, "--kubeconfig", str(file)).output


def nameless() -> World:
    return World().hpa(gpu_metric()).pod("llm-x2k", node="n3", why=NO_PODS_NAMED)


@pytest.mark.parametrize("arguments", [("pod", "llm-x2k"), ("hpa", "llm"), ("node", "n3")])
def test_the_operators_exporter_is_changed_in_its_cluster_policy(
    arguments: tuple[str, str], lab: tuple[ApiServer, Path]
) -> None:
    world = nameless()
    world.answer("/api/v1/nodes", [{"metadata": {"name": "n3"}}])
    world.answer("/apis/view.gpu-metrics-adapter.io/v1alpha1/gpus", [])
    world.answer("/apis/view.gpu-metrics-adapter.io/v1alpha1/gpupods", world.gpupods)
    assert f"fix: {FIX}\n" in explain(lab, world, *arguments)


@pytest.mark.parametrize("manager", CASES)
def test_the_exporter_is_changed_where_it_lasts(manager: str, lab: tuple[ApiServer, Path]) -> None:
    answer, expected = CASES[manager]
    output = explain(lab, nameless().answer(EXPORTER, answer), "pod", "llm-x2k")
    assert expected in " ".join(output.split())


def disabled(**meta: Any) -> World:
    """A target of 0 replicas, which the controller does not scale."""
    named = {"namespace": NS, "name": "llm"}
    world = World(0).hpa(gpu_metric())
    return world.answer(SCALE.removesuffix("/scale"), {"metadata": named | meta})


def test_a_workload_of_0_replicas_is_scaled_where_it_lasts(lab: tuple[ApiServer, Path]) -> None:
    assert "fix: kubectl -n chat scale deployment/llm --replicas=1\n" in explain(
        lab, disabled(), "hpa", "llm"
    )
    labels = {"kustomize.toolkit.fluxcd.io/name": "apps"}
    output = explain(lab, disabled(labels=labels), "hpa", "llm")
    assert (
        "fix: change it in git (Flux Kustomization apps): set spec.replicas to 1 in Deployment llm"
        in output
    )


def test_an_hpa_in_git_is_not_patched(lab: tuple[ApiServer, Path]) -> None:
    annotations = {"argocd.argoproj.io/tracking-id": f"llm:autoscaling/HPA:{NS}/llm"}
    world = World(1).hpa(gpu_metric(), low=1, high=1).pod("llm-7f9", "92")
    world.hpas[0]["metadata"]["annotations"] = annotations
    output = explain(lab, world, "hpa", "llm")
    assert "fix: change it in git (Argo CD Application llm): set spec.maxReplicas to 2" in output
    assert "kubectl" not in output

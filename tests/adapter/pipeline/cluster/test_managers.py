"""Metadata as public tools write it, and what manages the object."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.pipeline.cluster.managers import manager_of


def owner(version: str, kind: str, name: str, **more: object) -> dict[str, Any]:
    row = {"apiVersion": version, "kind": kind, "name": name, "controller": True, **more}
    return {"ownerReferences": [row]}


def labels(**named: str) -> dict[str, Any]:
    return {"labels": named}


HELM = {
    "labels": {
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/instance": "dcgm",
        "helm.sh/chart": "dcgm-exporter-4.6.1",
    },
    "annotations": {
        "meta.helm.sh/release-name": "dcgm",
        "meta.helm.sh/release-namespace": "monitoring",
    },
}


def helm(**annotations: str) -> dict[str, Any]:
    return {**HELM, "annotations": {**HELM["annotations"], **annotations}}


def written_by(*names: str, **more: Any) -> dict[str, Any]:
    return {"managedFields": [{"manager": name, "operation": "Apply"} for name in names], **more}


SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "gpu operator": (
        owner("nvidia.com/v1", "ClusterPolicy", "cluster-policy"),
        "NVIDIA GPU Operator (owner): ClusterPolicy cluster-policy",
    ),
    "driver of it": (
        owner("nvidia.com/v1alpha1", "NVIDIADriver", "default"),
        "NVIDIA GPU Operator (owner): NVIDIADriver default",
    ),
    "its operand without owner": (
        {"labels": {"app.kubernetes.io/managed-by": "gpu-operator", "app": "nvidia-dcgm-exporter"}},
        "NVIDIA GPU Operator (owner): ClusterPolicy",
    ),
    "amd operator": (
        owner("amd.com/v1alpha1", "DeviceConfig", "mi300"),
        "AMD GPU Operator (owner): DeviceConfig mi300 in namespace gpu",
    ),
    "intel operator": (
        owner("deviceplugin.intel.com/v1", "GpuDevicePlugin", "i915"),
        "Intel Device Plugins Operator (owner): GpuDevicePlugin i915",
    ),
    "keda": (
        owner("keda.sh/v1alpha1", "ScaledObject", "llm"),
        "KEDA (owner): ScaledObject llm in namespace gpu",
    ),
    "olm": (
        owner("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "x.v1", controller=False),
        "OLM (owner): ClusterServiceVersion x.v1 in namespace gpu",
    ),
    "olm by labels": (
        {
            "labels": {
                "olm.owner": "x.v1",
                "olm.owner.kind": "ClusterServiceVersion",
                "olm.owner.namespace": "ops",
            }
        },
        "OLM (owner): ClusterServiceVersion x.v1 in namespace ops",
    ),
    "leader worker set": (
        owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "big"),
        "LeaderWorkerSet (owner): LeaderWorkerSet big in namespace gpu",
    ),
    "kserve": (
        owner("serving.kserve.io/v1beta1", "InferenceService", "chat"),
        "InferenceService (owner): InferenceService chat in namespace gpu",
    ),
    "replicaset": (
        owner("apps/v1", "Deployment", "llm"),
        "Deployment (owner): Deployment llm in namespace gpu",
    ),
    "owner that controls nothing": (owner("v1", "ConfigMap", "x", controller=False), ""),
    "argo by annotation": (
        {"annotations": {"argocd.argoproj.io/tracking-id": "stack:apps/DaemonSet:gpu/it"}},
        "Argo CD (git): Argo CD Application stack",
    ),
    "argo of another namespace": (
        {"annotations": {"argocd.argoproj.io/tracking-id": "team-a_stack:apps/DaemonSet:gpu/it"}},
        "Argo CD (git): Argo CD Application stack in namespace team-a",
    ),
    "argo's annotation copied from another object": (
        {"annotations": {"argocd.argoproj.io/tracking-id": "stack:keda.sh/ScaledObject:gpu/llm"}},
        "",
    ),
    "argo renders helm": (
        helm(**{"argocd.argoproj.io/tracking-id": "stack:apps/DaemonSet:gpu/it"}),
        "Argo CD (git): Argo CD Application stack",
    ),
    "argo by its label": (
        labels(**{"argocd.argoproj.io/instance": "stack"}),
        "Argo CD (git): Argo CD Application stack",
    ),
    "argo by helm's label": (
        written_by("argocd-controller", **labels(**{"app.kubernetes.io/instance": "stack"})),
        "Argo CD (git): Argo CD Application stack",
    ),
    "helm's label alone": (labels(**{"app.kubernetes.io/instance": "stack"}), ""),
    "argo's old writer": (
        written_by("argocd-application-controller"),
        "Argo CD (git): Argo CD Application",
    ),
    "flux kustomization": (
        labels(
            **{
                "kustomize.toolkit.fluxcd.io/name": "apps",
                "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
            }
        ),
        "Flux (git): Flux Kustomization apps in namespace flux-system",
    ),
    "flux release": (
        {
            **HELM,
            "labels": {
                **HELM["labels"],
                "helm.toolkit.fluxcd.io/name": "dcgm",
                "helm.toolkit.fluxcd.io/namespace": "infra",
            },
        },
        "Flux (git): Flux HelmRelease dcgm in namespace infra",
    ),
    "flux's writer": (
        written_by("kustomize-controller", "kubectl-edit"),
        "Flux (git): Flux Kustomization",
    ),
    "flux's writer of releases": (
        {**HELM, **written_by("helm-controller")},
        "Flux (git): Flux HelmRelease",
    ),
    "config sync": (
        {
            "annotations": {
                "configmanagement.gke.io/managed": "enabled",
                "configmanagement.gke.io/source-path": "gpu/llm.yaml",
            }
        },
        "Config Sync (git): Config Sync file gpu/llm.yaml",
    ),
    "fleet": (
        helm(**{"objectset.rio.cattle.io/id": "default-gpu-stack"}),
        "Fleet (git): Fleet Bundle default-gpu-stack",
    ),
    "k3s": (
        {
            "annotations": {
                "objectset.rio.cattle.io/id": "",
                "objectset.rio.cattle.io/owner-gvk": "k3s.cattle.io/v1, Kind=Addon",
                "objectset.rio.cattle.io/owner-name": "metrics-server",
            }
        },
        "k3s (git): k3s AddOn metrics-server in namespace kube-system",
    ),
    "addon manager": (
        labels(**{"addonmanager.kubernetes.io/mode": "Reconcile"}),
        "the cluster's addon manager (nowhere): the cluster's addon manager",
    ),
    "addon that may be changed": (
        labels(**{"addonmanager.kubernetes.io/mode": "EnsureExists"}),
        "",
    ),
    "aks": (labels(**{"kubernetes.azure.com/managedby": "aks"}), "AKS (nowhere): AKS"),
    "gke": ({"namespace": "gke-managed-system"}, "GKE (nowhere): GKE"),
    "managed prometheus": (
        {"namespace": "gmp-system"},
        "GKE (managed Prometheus) (nowhere): GKE (managed Prometheus)",
    ),
    "eks add-on": (written_by("eks"), "EKS (nowhere): EKS"),
    "helm": (HELM, "Helm (values): Helm release dcgm in namespace monitoring"),
    "helm template": (labels(**{"app.kubernetes.io/managed-by": "Helm"}), ""),
    "kubectl apply": (written_by("kubectl-client-side-apply", "kubectl-edit"), ""),
    "nothing": ({}, ""),
    "nulls": ({"labels": None, "annotations": None, "ownerReferences": None}, ""),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_metadata_names_what_writes_an_object_again(shape: str) -> None:
    metadata, expected = SHAPES[shape]
    manager = manager_of({"name": "it", "namespace": "gpu", **metadata})
    text = "" if manager is None else f"{manager.tool} ({manager.way}): {manager.source}"
    assert text == expected


def test_a_chart_is_named_with_its_version() -> None:
    manager = manager_of({"name": "it", **HELM})
    assert manager is not None
    assert (manager.chart, manager.version) == ("dcgm-exporter", "4.6.1")


@pytest.mark.parametrize(
    ("label", "chart", "version"),
    [
        ("gpu-operator-v25.10.1", "gpu-operator", "v25.10.1"),
        ("k8s-device-plugin-0.17.0-rc.1", "k8s-device-plugin", "0.17.0-rc.1"),
        ("app-1.2.3_build", "app", "1.2.3+build"),
        ("app", "", ""),
    ],
)
def test_a_chart_label_is_name_and_version(label: str, chart: str, version: str) -> None:
    metadata = helm() | {"labels": {"helm.sh/chart": label}}
    manager = manager_of(metadata)
    assert manager is not None
    assert (manager.chart, manager.version) == (chart, version)


def test_the_namespace_is_the_objects_if_its_metadata_lacks_it() -> None:
    manager = manager_of(owner("keda.sh/v1alpha1", "ScaledObject", "llm"), "chat")
    assert manager is not None
    assert manager.source == "ScaledObject llm in namespace chat"

"""Fixes by what manages the object: each printed command runs, and changes what lasts.

A real API server, kubectl and Helm; the operators' kinds are defined in their public shape, without
the operators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from adapter.pipeline.attribution.reasons import lasting_fix
from adapter.pipeline.cluster.changes import (
    ChangedObject,
    ObjectChange,
    add_tolerations,
    annotate,
    edit,
    scale,
    set_env,
    set_fields,
)
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.tools.client.access import cluster
from adapter.tools.client.changedobjects import read_changed
from adapter.tools.client.hpacommands import change_hpa, edit_hpa
from adapter.tools.explain.hpafacts import gather
from tests.e2e.cluster import HPAS, Object, RefusedError, condition
from tests.e2e.controlplane import WORKLOADS, ControlPlane
from tests.e2e.printedcommands import run_printed
from tests.e2e.stage import autoscaler, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NS: Final = "fixes"
NAME: Final = "nvidia-dcgm-exporter"
INTERVAL: Final = "DCGM_EXPORTER_INTERVAL"
DAEMONSETS: Final = f"/apis/apps/v1/namespaces/{NS}/daemonsets"
DEPLOYMENT: Final = f"/apis/apps/v1/namespaces/{NS}/deployments/inference"
HPA: Final = f"{HPAS.format(ns=NS)}/inference"
POLICY: Final = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
SCALED: Final = f"/apis/keda.sh/v1alpha1/namespaces/{NS}/scaledobjects/inference"
TOLERATION: Final = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}


def crd(group: str, version: str, kind: str, plural: str, *, scope: str, scales: bool) -> Object:
    """A definition whose objects have any spec."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    row: Object = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    if scales:
        row["subresources"]["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        }
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [row]},
    }


DEFINED: Final = (
    crd("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", scope="Cluster", scales=False),
    # Kyverno has a kind of this name too, so kubectl needs the group.
    crd("kyverno.io", "v1", "ClusterPolicy", "clusterpolicies", scope="Cluster", scales=False),
    crd("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects", scope="Namespaced", scales=False),
    crd("example.org", "v1", "Fleet", "fleets", scope="Namespaced", scales=True),
    crd("example.org", "v1", "Server", "servers", scope="Namespaced", scales=False),
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    fast = ("--horizontal-pod-autoscaler-sync-period=1s",)
    with ControlPlane(tmp_path_factory.mktemp("fixes"), WORKLOADS, fast) as control_plane:
        control_plane.admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
        )
        for definition in DEFINED:
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            control_plane.admin.create(definition)
            control_plane.admin.wait(
                f"{path}/{definition['metadata']['name']}",
                lambda obj: condition(obj, "Established")[0] == "True",
                "it is served",
            )
        yield control_plane


def daemonset(**meta: Any) -> Object:
    env = [{"name": "A", "value": "1"}]
    pod = {"containers": [{"name": "exporter", "image": "none", "env": env}]}
    labels = {"app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": NS, "name": NAME, **meta},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def owned(version: str, kind: str, obj: Object) -> dict[str, Any]:
    meta = obj["metadata"]
    row = {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return {"ownerReferences": [row | {"controller": True}]}


@pytest.fixture
def made(plane: ControlPlane) -> Iterator[Any]:
    """Create objects, which the end of the test deletes."""
    paths: list[str] = []

    def make(obj: Object, path: str) -> Object:
        paths.append(path)
        created: Object = plane.admin.request("POST", path.rpartition("/")[0], obj)
        return created

    yield make
    for path in reversed(paths):
        plane.admin.delete(path)


def read(plane: ControlPlane, kind: str, name: str) -> ChangedObject:
    async def look() -> ChangedObject:
        async with cluster(plane.kubeconfig, namespace=NS) as api:
            return await read_changed(api, kind, NS, name)

    return asyncio.run(look())


def applied(plane: ControlPlane, fix: Fix, command: str = "") -> None:
    """Run the command dry, and then for real; twice, because a user may."""
    for dry in (True, False, False):
        done = run_printed(plane.kubeconfig, command or fix.command, dry=dry)
        assert done.returncode == 0, f"{fix.command}\n{done.stdout}{done.stderr}"


def env_of(plane: ControlPlane) -> dict[str, str]:
    workload = plane.admin.get(f"{DAEMONSETS}/{NAME}")
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return {row["name"]: row.get("value", "") for row in container.get("env") or ()}


def test_a_variable_of_an_object_that_nobody_manages(plane: ControlPlane, made: Any) -> None:
    made(daemonset(), f"{DAEMONSETS}/{NAME}")
    of = read(plane, "DaemonSet", NAME)
    applied(plane, make_lasting(of, set_env(of, INTERVAL, "10000")))
    assert env_of(plane) == {"A": "1", INTERVAL: "10000"}
    applied(plane, make_lasting(of, set_env(of, INTERVAL, None)))
    assert env_of(plane) == {"A": "1"}


def test_a_variable_of_the_gpu_operator_is_merged_into_its_cluster_policy(
    plane: ControlPlane, made: Any
) -> None:
    env = [{"name": "KEPT", "value": "1"}]
    policy = made(
        {
            "apiVersion": "nvidia.com/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "cluster-policy"},
            "spec": {"dcgmExporter": {"enabled": True, "env": env}},
        },
        POLICY,
    )
    made(daemonset(**owned("nvidia.com/v1", "ClusterPolicy", policy)), f"{DAEMONSETS}/{NAME}")
    of = read(plane, "DaemonSet", NAME)
    fix = lasting_fix("exporter_names_no_pod", of)
    assert fix is not None
    applied(plane, fix)
    of = read(plane, "DaemonSet", NAME)
    applied(plane, make_lasting(of, set_env(of, INTERVAL, "10000")))
    applied(plane, make_lasting(of, add_tolerations(of, [TOLERATION], first=True)))
    spec = plane.admin.get(POLICY)["spec"]
    assert spec["dcgmExporter"] == {
        "enabled": True,
        "env": [
            *env,
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": INTERVAL, "value": "10000"},
        ],
    }
    assert spec["daemonsets"]["tolerations"] == [TOLERATION]
    assert env_of(plane) == {"A": "1"}, "the operator writes the DaemonSet"
    # What a person has to write opens in the editor.
    applied(plane, make_lasting(of._replace(owner=None), set_env(of, "X", "1")))


CHART: Final = {
    "Chart.yaml": "apiVersion: v2\nname: dcgm-exporter\nversion: 4.6.1\n",
    "values.yaml": "extraEnv: []\nkubernetes: {enablePodUID: false}\n",
    "templates/daemonset.yaml": """\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: nvidia-dcgm-exporter
  namespace: {{ .Release.Namespace }}
  labels: {helm.sh/chart: "{{ .Chart.Name }}-{{ .Chart.Version }}"}
spec:
  selector: {matchLabels: {app: nvidia-dcgm-exporter}}
  template:
    metadata: {labels: {app: nvidia-dcgm-exporter}}
    spec:
      containers:
      - name: exporter
        image: none
        env:
        - {name: DCGM_EXPORTER_KUBERNETES, value: "true"}
        {{- if .Values.kubernetes.enablePodUID }}
        - {name: DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID, value: "true"}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
""",
}
"""A chart with the keys of the exporter's, which is on the Internet."""


def test_a_variable_of_a_helm_release_goes_through_its_values(
    plane: ControlPlane, tmp_path: Path
) -> None:
    chart = tmp_path / "dcgm-exporter"
    for name, text in CHART.items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"extraEnv": [{"name": "A", "value": "1"}]}), encoding="utf-8")
    into = f"helm install dcgm {chart} -n {NS} --values {values}"
    assert run_printed(plane.kubeconfig, into, dry=False).returncode == 0
    try:
        public = (
            "dcgm-exporter --repo https://nvidia.github.io/dcgm-exporter/helm-charts "
            "--version 4.6.1"
        )
        changes: list[ObjectChange] = []
        of = read(plane, "DaemonSet", NAME)
        changes.append(set_env(of, INTERVAL, "10000"))
        changes.append(set_env(of, "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "true"))
        for change in changes:
            fix = make_lasting(read(plane, "DaemonSet", NAME), change)
            assert public in fix.command
            applied(plane, fix, fix.command.replace(public, str(chart)))
        assert env_of(plane) == {
            "DCGM_EXPORTER_KUBERNETES": "true",
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "true",
            "A": "1",
            INTERVAL: "10000",
        }
    finally:
        run_printed(plane.kubeconfig, f"helm uninstall dcgm -n {NS}", dry=False)


def test_what_is_in_git_has_no_command(plane: ControlPlane, made: Any) -> None:
    tracked = {"argocd.argoproj.io/tracking-id": f"gpu:apps/DaemonSet:{NS}/{NAME}"}
    made(daemonset(annotations=tracked), f"{DAEMONSETS}/{NAME}")
    of = read(plane, "DaemonSet", NAME)
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert (fix.command, fix.by) == ("", "Argo CD Application gpu")


def test_a_workload_that_nobody_manages(plane: ControlPlane, made: Any) -> None:
    made(deployment(NS, 0), DEPLOYMENT)
    of = read(plane, "Deployment", "inference")
    assert of.manager is None
    notes = {"gpu-metrics-adapter.io/scrape": "true", "gpu-metrics-adapter.io/port": "8000"}
    applied(plane, make_lasting(of, scale(of, 1)))
    applied(plane, make_lasting(of, annotate(of, notes)))
    applied(plane, make_lasting(of, annotate(of, {"gpu-metrics-adapter.io/port": None})))
    had = plane.admin.get(DEPLOYMENT)["spec"]["template"]["spec"].get("tolerations")
    applied(plane, make_lasting(of, add_tolerations(of, [TOLERATION], first=not had)))
    applied(plane, make_lasting(of, edit(of, "correct it")))
    spec = plane.admin.get(DEPLOYMENT)["spec"]
    assert spec["replicas"] == 1
    pod_notes = spec["template"]["metadata"]["annotations"]
    assert pod_notes["gpu-metrics-adapter.io/scrape"] == "true"
    assert "gpu-metrics-adapter.io/port" not in pod_notes
    assert TOLERATION in spec["template"]["spec"]["tolerations"]


def test_an_hpa_and_one_of_keda(plane: ControlPlane, made: Any) -> None:
    manifest = made(autoscaler(NS, low=1, high=3, metric="gpu_utilization"), HPA)
    applied(plane, change_hpa(manifest, "spec.maxReplicas", 5))
    applied(plane, change_hpa(manifest, "spec.metrics[0].pods.metric.name", "gpu_power_watts"))
    applied(plane, edit_hpa(manifest, "correct it"))
    spec = plane.admin.get(HPA)["spec"]
    assert spec["maxReplicas"] == 5
    assert spec["metrics"][0]["pods"]["metric"]["name"] == "gpu_power_watts"
    scaled = made(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"namespace": NS, "name": "inference"},
            "spec": {"scaleTargetRef": {"name": "inference"}, "maxReplicaCount": 3},
        },
        SCALED,
    )
    manifest["metadata"] |= owned("keda.sh/v1alpha1", "ScaledObject", scaled)
    applied(plane, change_hpa(manifest, "spec.maxReplicas", 8))
    applied(plane, change_hpa(manifest, "spec.behavior.scaleUp.selectPolicy", "Max"))
    applied(plane, change_hpa(manifest, "spec.metrics[0].pods.metric.name", "gpu_power_watts"))
    assert plane.admin.get(SCALED)["spec"] == {
        "scaleTargetRef": {"name": "inference"},
        "maxReplicaCount": 8,
        "advanced": {
            "horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {"selectPolicy": "Max"}}}
        },
    }
    assert plane.admin.get(HPA)["spec"]["maxReplicas"] == 5, "KEDA writes the HPA"


TARGETS: Final = (
    ("apps/v1", "Deployment", True),
    ("apps/v1beta1", "Deployment", True),
    ("apps/v9", "Deployment", True),
    ("example.org/v1", "Fleet", True),
    ("example.org/v1beta7", "Fleet", True),
    ("example.org/v1", "Server", False),
    ("apps/v1", "DaemonSet", False),
    ("extensions/v1beta1", "Deployment", False),
    ("none.example/v1", "Nothing", False),
)


@pytest.mark.parametrize(("version", "kind", "scales"), TARGETS)
def test_a_target_is_found_as_the_controller_finds_it(
    plane: ControlPlane, made: Any, version: str, kind: str, scales: bool
) -> None:
    """The condition AbleToScale of the real controller, and what explain reads."""
    made(deployment(NS, 0), DEPLOYMENT)
    for plural, name in (("fleets", "Fleet"), ("servers", "Server")):
        meta = {"namespace": NS, "name": "inference"}
        body = {"apiVersion": "example.org/v1", "kind": name, "metadata": meta}
        path = f"/apis/example.org/v1/namespaces/{NS}/{plural}/inference"
        made(body | {"spec": {"replicas": 0}}, path)
    made(daemonset(name="inference"), f"{DAEMONSETS}/inference")
    hpa = autoscaler(NS, low=1, high=3, metric="gpu_utilization")
    reference = {"apiVersion": version, "kind": kind, "name": "inference"}
    hpa["spec"]["scaleTargetRef"] = reference
    made(hpa, HPA)
    # The controller reads the served kinds every 30 s: it knows a new CRD only then.
    able = "True" if scales else "False"
    live_hpa = plane.admin.wait(HPA, lambda obj: condition(obj, "AbleToScale")[0] == able, able)

    async def look() -> tuple[bool, str]:
        async with cluster(plane.kubeconfig, namespace=NS) as api:
            facts = await gather(api, "inference")
            fix = facts.no_scale.version if facts.no_scale is not None else ""
            return facts.scale is not None, fix

    read_scale, right = asyncio.run(look())
    assert read_scale is scales
    if right:
        applied(plane, change_hpa(live_hpa, "spec.scaleTargetRef.apiVersion", right))
        plane.admin.wait(
            HPA, lambda obj: condition(obj, "AbleToScale")[0] == "True", "the fix removes it"
        )


def test_a_command_that_is_wrong_would_be_seen(plane: ControlPlane) -> None:
    with pytest.raises(RefusedError):
        plane.admin.get(f"{DAEMONSETS}/nobody")
    of = ChangedObject("DaemonSet", NS, "nobody")
    for change in (set_env(of, "A", "1"), set_fields(of, {"spec.x": 1}), edit(of, "x")):
        assert run_printed(plane.kubeconfig, make_lasting(of, change).command).returncode != 0

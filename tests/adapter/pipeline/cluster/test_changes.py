"""Changes that last: the same change, by what manages the object."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from adapter.pipeline.cluster.changes import (
    ChangedObject,
    add_tolerations,
    edit,
    scale,
    set_env,
    set_fields,
)
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.managers import Manager, Way
from adapter.tools.client.hpacommands import change_hpa

NAME, INTERVAL = "nvidia-dcgm-exporter", "DCGM_EXPORTER_INTERVAL"
POLICY = Manager("NVIDIA GPU Operator", Way.OWNER, "ClusterPolicy", "cp", "", "nvidia.com/v1")
ARGO = Manager("Argo CD", Way.GIT, "Application", "stack")
KEDA = Manager("KEDA", Way.OWNER, "ScaledObject", "llm", "chat", "keda.sh/v1alpha1")
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def helm(chart: str, version: str = "1.2.3") -> Manager:
    return Manager("Helm", Way.VALUES, "release", "dcgm", "gpu", "", chart, version)


def exporter(manager: Manager | None = None, **more: Any) -> ChangedObject:
    return ChangedObject("DaemonSet", "gpu", NAME, manager, **more)


def hpa(manager: Manager | None = None, **more: Any) -> ChangedObject:
    return ChangedObject("HorizontalPodAutoscaler", "chat", "llm", manager, **more)


def patched(command: str) -> Any:
    """The JSON of a patch command."""
    words = shlex.split(command, comments=True)
    return json.loads(words[words.index("-p") + 1])


def test_an_object_that_nobody_manages_is_changed_itself() -> None:
    fix = make_lasting(exporter(), set_env(exporter(), INTERVAL, "10000"))
    assert fix.line == f"kubectl -n gpu set env daemonset/{NAME} {INTERVAL}=10000"
    fix = make_lasting(exporter(), set_env(exporter(), INTERVAL, None))
    assert fix.line == f"kubectl -n gpu set env daemonset/{NAME} {INTERVAL}-"


def test_a_variable_of_the_gpu_operator_goes_to_its_cluster_policy() -> None:
    env = [{"name": "A", "value": "1"}, {"name": INTERVAL, "value": "30000"}]
    of = exporter(POLICY, owner={"spec": {"dcgmExporter": {"env": env}}})
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command.startswith("kubectl patch clusterpolicies.nvidia.com cp --type=merge -p ")
    rows = [env[0], {"name": INTERVAL, "value": "10000"}]
    assert patched(fix.command) == {"spec": {"dcgmExporter": {"env": rows}}}
    fix = make_lasting(of, set_env(of, INTERVAL, None))
    assert patched(fix.command) == {"spec": {"dcgmExporter": {"env": env[:1]}}}


def test_a_cluster_policy_that_was_not_read_is_edited() -> None:
    of = exporter(POLICY)
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command == "kubectl edit clusterpolicies.nvidia.com cp"
    assert f"set the variable {INTERVAL}=10000 in spec.dcgmExporter.env" in fix.text


def test_a_cluster_policy_whose_name_is_not_known_is_named_by_a_command() -> None:
    of = exporter(POLICY._replace(name=""))
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert "`kubectl get clusterpolicies.nvidia.com` names it" in fix.line
    assert "set env" not in fix.line


def test_what_manages_the_cluster_policy_is_followed_too() -> None:
    of = exporter(POLICY, owner={}, above=ARGO)
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command == ""
    assert fix.line == (
        f"change it in git (Argo CD Application stack): set the variable {INTERVAL}=10000 in "
        "spec.dcgmExporter.env in ClusterPolicy cp"
    )
    of = exporter(POLICY, owner={}, above=helm("gpu-operator"))
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command.startswith("kubectl patch clusterpolicies.nvidia.com cp ")
    assert fix.command.endswith(
        "# keep dcgmExporter.env in the values of Helm release dcgm in namespace gpu too"
    )


def test_tolerations_of_the_gpu_operator_are_those_of_all_its_daemonsets() -> None:
    of = exporter(POLICY, owner={"spec": {"daemonsets": {"tolerations": [{"key": "a"}]}}})
    fix = make_lasting(of, add_tolerations(of, [TOLERATION], first=False))
    rows = [{"key": "a"}, TOLERATION]
    assert patched(fix.command) == {"spec": {"daemonsets": {"tolerations": rows}}}


def test_a_variable_of_the_exporters_chart_goes_to_its_values() -> None:
    env = [{"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"}, {"name": "A", "value": "1"}]
    of = exporter(helm("dcgm-exporter"), env=env)
    words = shlex.split(make_lasting(of, set_env(of, INTERVAL, "10000")).command)
    assert words[:4] == ["helm", "upgrade", "dcgm", "dcgm-exporter"]
    assert words[words.index("--version") + 1] == "1.2.3"
    assert "--reuse-values" in words
    key, _, rows = words[-1].partition("=")
    assert (key, words[-2]) == ("extraEnv", "--set-json")
    # The chart writes its own variables without the list.
    assert json.loads(rows) == [env[1], {"name": INTERVAL, "value": "10000"}]


def test_a_variable_with_a_key_of_the_chart_is_that_key() -> None:
    of = exporter(helm("dcgm-exporter"))
    uid = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"
    on, off = (make_lasting(of, set_env(of, uid, value)).command for value in ("true", None))
    assert on.endswith(" --reuse-values --set kubernetes.enablePodUID=true")
    assert off.endswith(" --reuse-values --set kubernetes.enablePodUID=false")


@pytest.mark.parametrize("chart", ["", "somebodys-app"])
def test_a_chart_that_is_not_known_has_words_and_no_command(chart: str) -> None:
    of = exporter(helm(chart))
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command == ""
    assert "change the values of Helm release dcgm in namespace gpu" in fix.text
    assert "kubectl" not in fix.line


def test_a_chart_in_git_has_its_keys_named() -> None:
    manager = ARGO._replace(chart="dcgm-exporter")
    of = exporter(manager)
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert f'add {{name: {INTERVAL}, value: "10000"}} to extraEnv in the values' in fix.line


def test_the_provider_of_the_cluster_is_named() -> None:
    of = exporter(Manager("GKE", Way.NOWHERE))
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert fix.command == ""
    assert "GKE writes it again" in fix.text


def test_fields_of_an_hpa() -> None:
    fields = {"spec.maxReplicas": 10, "spec.behavior.scaleUp.selectPolicy": "Max"}
    merged = {"spec": {"maxReplicas": 10, "behavior": {"scaleUp": {"selectPolicy": "Max"}}}}
    fix = make_lasting(hpa(), set_fields(hpa(), fields))
    assert fix.command.startswith("kubectl -n chat patch hpa llm --type=merge -p ")
    assert patched(fix.command) == merged
    fix = make_lasting(hpa(), set_fields(hpa(), {"spec.metrics[0].pods.metric.name": "gpu_power"}))
    row = {"op": "add", "path": "/spec/metrics/0/pods/metric/name", "value": "gpu_power"}
    assert patched(fix.command) == [row]


def test_a_row_is_added_to_a_list() -> None:
    fix = make_lasting(hpa(), set_fields(hpa(), {"spec.metrics.1": {"type": "Pods"}}))
    assert patched(fix.command) == [
        {"op": "add", "path": "/spec/metrics/1", "value": {"type": "Pods"}}
    ]


def test_fields_of_kedas_hpa_are_the_scaled_objects() -> None:
    of = hpa(KEDA)
    fields = {"spec.maxReplicas": 10, "spec.behavior.scaleUp.selectPolicy": "Max"}
    fix = make_lasting(of, set_fields(of, fields))
    assert fix.command.startswith("kubectl -n chat patch scaledobjects.keda.sh llm --type=merge")
    up = {"behavior": {"scaleUp": {"selectPolicy": "Max"}}}
    assert patched(fix.command) == {
        "spec": {"maxReplicaCount": 10, "advanced": {"horizontalPodAutoscalerConfig": up}}
    }
    fix = make_lasting(of, set_fields(of, {"spec.metrics[0].pods.metric.name": "gpu_power"}))
    assert fix.command == "kubectl -n chat edit scaledobjects.keda.sh llm"
    assert "spec.triggers" in fix.text


KSERVE = Manager(
    "KServe", Way.OWNER, "InferenceService", "llm", "chat", "serving.kserve.io/v1beta1"
)


def of_component(name: str, manager: Manager = KSERVE, **more: Any) -> ChangedObject:
    return hpa(manager, **more)._replace(name=name)


@pytest.mark.parametrize("component", ["predictor", "transformer"])
def test_bounds_of_kserves_hpa_are_the_inference_services(component: str) -> None:
    of = of_component(f"llm-{component}")
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10, "spec.minReplicas": 2}))
    assert fix.command.startswith("kubectl -n chat patch inferenceservices.serving.kserve.io llm ")
    assert patched(fix.command) == {"spec": {component: {"maxReplicas": 10, "minReplicas": 2}}}
    assert f"spec.{component}.maxReplicas" in fix.text


def test_what_kserve_has_no_field_for_is_edited_in_the_inference_service() -> None:
    of = of_component("llm-predictor")
    fields = {"spec.maxReplicas": 10, "spec.behavior.scaleUp.selectPolicy": "Max"}
    assert make_lasting(of, set_fields(of, fields)).command == (
        "kubectl -n chat edit inferenceservices.serving.kserve.io llm"
    )


def test_kserve_writes_the_scaled_object_of_kedas_hpa() -> None:
    keda = KEDA._replace(name="llm-predictor")
    of = of_component("keda-hpa-llm-predictor", keda, above=KSERVE)
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10}))
    assert patched(fix.command) == {"spec": {"predictor": {"maxReplicas": 10}}}
    label = {"serving.kserve.io/inferenceservice": "llm"}
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "llm-predictor"}
    meta = {
        "name": "keda-hpa-llm-predictor",
        "namespace": "chat",
        "labels": label,
        "ownerReferences": [{**owner, "controller": True}],
    }
    assert change_hpa({"metadata": meta}, "spec.maxReplicas", 10).command == fix.command


def test_every_field_of_an_hpa_is_in_a_nim_service() -> None:
    nim = Manager("NIMService", Way.OWNER, "NIMService", "llm", "chat", "apps.nvidia.com/v1alpha1")
    of = hpa(nim)
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10}))
    assert fix.command.startswith("kubectl -n chat patch nimservices.apps.nvidia.com llm ")
    assert patched(fix.command) == {"spec": {"scale": {"hpa": {"maxReplicas": 10}}}}


OTHERS = {
    "machinelearning.seldon.io/v1/SeldonDeployment": "hpaSpec",
    "example.com/v1/Model": "for HPA llm, which it writes,",
}


@pytest.mark.parametrize("owner", OTHERS)
def test_an_hpa_of_another_resource_is_never_edited_itself(owner: str) -> None:
    version, _, kind = owner.rpartition("/")
    of = hpa(Manager(kind, Way.OWNER, kind, "llm", "chat", version))
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10}))
    assert fix.command.startswith(f"kubectl -n chat edit {kind.lower()}s.")
    assert OTHERS[owner] in fix.text


def test_the_bounds_of_knative_are_annotations_of_its_service() -> None:
    version = "autoscaling.internal.knative.dev/v1alpha1"
    of = hpa(Manager("PodAutoscaler", Way.OWNER, "PodAutoscaler", "llm", "chat", version))
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10}))
    assert "autoscaling.knative.dev/max-scale" in fix.text
    assert not fix.command, "Knative writes the PodAutoscaler again too"


def test_a_scaled_object_in_git_is_changed_there() -> None:
    of = hpa(KEDA, above=ARGO)
    fix = make_lasting(of, set_fields(of, {"spec.maxReplicas": 10}))
    assert fix.line == (
        "change it in git (Argo CD Application stack): set spec.maxReplicaCount to 10 in "
        "ScaledObject llm"
    )


def test_the_size_of_our_own_release_is_a_value() -> None:
    manager = helm("gpu-metrics-adapter")
    of = ChangedObject("Deployment", "gpu", "adapter", manager)
    fix = make_lasting(of, scale(of, 2))
    assert fix.command == (
        "helm upgrade dcgm charts/gpu-metrics-adapter -n gpu --reuse-values --set replicas=2"
    )


def test_another_owner_is_edited() -> None:
    owner = Manager("LeaderWorkerSet", Way.OWNER, "LeaderWorkerSet", "big", "chat", "lws.io/v1")
    of = ChangedObject("StatefulSet", "chat", "big", owner)
    fix = make_lasting(of, edit(of, "correct the node selector"))
    assert fix.command == "kubectl -n chat edit leaderworkersets.lws.io big"
    assert "for StatefulSet big" in fix.text


DEVICES = Manager("AMD GPU Operator", Way.OWNER, "DeviceConfig", "mi", "amd", "amd.com/v1alpha1")
PLUGIN = Manager(
    "Intel Device Plugins Operator",
    Way.OWNER,
    "GpuDevicePlugin",
    "i915",
    "",
    "deviceplugin.intel.com/v1",
)
OLM = Manager(
    "OLM",
    Way.OWNER,
    "ClusterServiceVersion",
    "amd-gpu-operator.v1.4.0",
    "amd",
    "operators.coreos.com/v1alpha1",
)
OTHER = {"key": "team", "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("mi-metrics-exporter", "metricsExporter.tolerations"),
        ("mi-device-plugin", "devicePlugin.devicePluginTolerations"),
        ("mi-node-labeller", "devicePlugin.nodeLabellerTolerations"),
        ("mi-config-manager", "configManager.configManagerTolerations"),
        ("mi-test-runner", "testRunner.tolerations"),
    ],
)
def test_a_toleration_of_the_amd_operator_goes_to_its_device_config(name: str, path: str) -> None:
    part, key = path.split(".")
    of = ChangedObject("DaemonSet", "amd", name, DEVICES)
    fix = make_lasting(
        of._replace(owner={"spec": {part: {key: [OTHER]}}}),
        add_tolerations(of, [TOLERATION], first=False),
    )
    assert fix.command.startswith("kubectl -n amd patch deviceconfigs.amd.com mi --type=merge -p ")
    assert patched(fix.command) == {"spec": {part: {key: [OTHER, TOLERATION]}}}
    unread = make_lasting(of, add_tolerations(of, [TOLERATION], first=False))
    assert unread.command == "kubectl -n amd edit deviceconfigs.amd.com mi"
    assert f"in spec.{path}" in unread.text


def test_the_chart_of_the_amd_operator_keeps_the_list_too() -> None:
    above = Manager("Helm", Way.VALUES, "release", "amd", "amd", "", "gpu-operator-charts")
    of = ChangedObject("DaemonSet", "amd", "mi-metrics-exporter", DEVICES, owner={}, above=above)
    fix = make_lasting(of, add_tolerations(of, [TOLERATION], first=True))
    assert "# keep deviceConfig.spec.metricsExporter.tolerations in the values of" in fix.command


@pytest.mark.parametrize(("manager", "part"), [(DEVICES, "spec.metricsExporter"), (PLUGIN, "spec")])
def test_an_operator_without_variables_says_so(manager: Manager, part: str) -> None:
    of = ChangedObject("DaemonSet", "gpu", "mi-metrics-exporter", manager, owner={})
    fix = make_lasting(of, set_env(of, INTERVAL, "10000"))
    assert "has no field for variables" in fix.text
    off = "delete GpuDevicePlugin" if part == "spec" else "turn off spec.metricsExporter.enable"
    assert off in fix.text
    assert fix.command == ""
    fix = make_lasting(of, edit(of, "correct the node selector"))
    assert f"correct the node selector in {part}" in fix.text


def test_a_toleration_of_an_intel_plugin_goes_to_its_object() -> None:
    of = ChangedObject("DaemonSet", "intel", "intel-gpu-plugin-i915", PLUGIN, owner={"spec": {}})
    fix = make_lasting(of, add_tolerations(of, [TOLERATION], first=True))
    assert fix.command.startswith("kubectl patch gpudeviceplugins.deviceplugin.intel.com i915 ")
    assert patched(fix.command) == {"spec": {"tolerations": [TOLERATION]}}


def test_an_operator_of_olm_is_changed_in_its_subscription() -> None:
    of = ChangedObject("Deployment", "amd", "amd-gpu-operator-controller-manager", OLM)
    fix = make_lasting(of, set_env(of, "LOG", "debug"))
    assert "set the variable LOG=debug in spec.config.env of the Subscription" in fix.text
    assert "kubectl -n amd get subscriptions.operators.coreos.com" in fix.text
    assert fix.command == ""
    fix = make_lasting(of, add_tolerations(of, [TOLERATION], first=True))
    assert "in spec.config.tolerations of the Subscription that installs amd-gpu" in fix.text
    fix = make_lasting(of, scale(of, 2))
    assert "an upgrade of the operator writes it again" in fix.text
    edits = "edit clusterserviceversions.operators.coreos.com amd-gpu-operator.v1.4.0"
    assert fix.command == f"kubectl -n amd {edits}"


@pytest.mark.parametrize(
    ("name", "manager", "path"),
    [
        ("nvidia-dcgm-exporter", POLICY, "spec.dcgmExporter.resources"),
        ("mi-metrics-exporter", DEVICES, "spec.metricsExporter.resource"),
        ("amd-gpu-operator-controller-manager", OLM, "spec.config.resources"),
    ],
)
def test_limits_of_what_an_operator_runs_have_their_field(
    name: str, manager: Manager, path: str
) -> None:
    of = ChangedObject("DaemonSet", "gpu", name, manager)
    change = edit(of, "raise limits.memory")._replace(of_resources=True)
    assert f"raise limits.memory in {path}" in make_lasting(of, change).text


def test_a_part_whose_switch_is_not_known_has_none() -> None:
    of = ChangedObject("DaemonSet", "gpu", "mi-device-plugin", DEVICES, owner={})
    assert make_lasting(of, set_env(of, INTERVAL, "1")).text.endswith("in its place")

"""Where the object of an operator describes what the operator runs, and which lists it has for it.

- NVIDIA GPU Operator: ``assets/`` and ``api/nvidia/v1/clusterpolicy_types.go``
  (NVIDIA/gpu-operator).
- AMD GPU Operator: ``api/v1alpha1/deviceconfig_types.go`` and ``helm-charts-k8s/values.yaml``
  (ROCm/gpu-operator). The DaemonSets are named after the DeviceConfig, which has no variables.
- Intel Device Plugins Operator: ``pkg/apis/deviceplugin/v1/gpudeviceplugin_types.go``
  (intel/intel-device-plugins-for-kubernetes). It has no variables either.
- OLM: ``SubscriptionConfig`` in ``pkg/operators/v1alpha1/subscription_types.go``
  (operator-framework/api). OLM adds it to the Deployments of the ClusterServiceVersion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Operand(NamedTuple):
    """What an operator runs."""

    part: str
    """Path of its description in the operator's object."""
    env: str = ""
    """Path of a list of its variables; empty if the object has none."""
    tolerations: str = ""
    """Path of a list of its tolerations; empty if the object has none."""
    resources: str = ""
    """Path of its requests and limits; empty if the object has none."""
    switch: str = ""
    """Path of the field that turns it off; empty if there is none, or it is not known."""


def _nvidia(part: str) -> Operand:
    return Operand(part, f"{part}.env", "spec.daemonsets.tolerations", f"{part}.resources")


_POLICY: Final = {
    "nvidia-dcgm-exporter": _nvidia("spec.dcgmExporter"),
    "nvidia-dcgm": _nvidia("spec.dcgm"),
    "nvidia-device-plugin-daemonset": _nvidia("spec.devicePlugin"),
    "gpu-feature-discovery": _nvidia("spec.gfd"),
    "nvidia-mig-manager": _nvidia("spec.migManager"),
    "nvidia-container-toolkit-daemonset": _nvidia("spec.toolkit"),
    "nvidia-driver-daemonset": _nvidia("spec.driver"),
    "nvidia-operator-validator": _nvidia("spec.validator"),
    "nvidia-node-status-exporter": _nvidia("spec.nodeStatusExporter"),
}
"""By the name of the DaemonSet."""
_PLUGIN: Final = "spec.devicePlugin"
_DEVICES: Final = {
    "metrics-exporter": Operand(
        "spec.metricsExporter",
        tolerations="spec.metricsExporter.tolerations",
        resources="spec.metricsExporter.resource",
        switch="spec.metricsExporter.enable",
    ),
    "device-plugin": Operand(_PLUGIN, tolerations=f"{_PLUGIN}.devicePluginTolerations"),
    "node-labeller": Operand(
        _PLUGIN,
        tolerations=f"{_PLUGIN}.nodeLabellerTolerations",
        switch=f"{_PLUGIN}.enableNodeLabeller",
    ),
    "config-manager": Operand(
        "spec.configManager",
        tolerations="spec.configManager.configManagerTolerations",
        switch="spec.configManager.enable",
    ),
    "test-runner": Operand(
        "spec.testRunner",
        tolerations="spec.testRunner.tolerations",
        switch="spec.testRunner.enable",
    ),
}
"""By the name of the DaemonSet without that of the DeviceConfig."""
SUBSCRIPTION: Final = Operand(
    "spec.config", "spec.config.env", "spec.config.tolerations", "spec.config.resources"
)
VALUES: Final[Mapping[str, str]] = {"ClusterPolicy": "", "DeviceConfig": "deviceConfig.spec."}
"""Kind -> before the path within ``spec``, in the values of the operator's chart."""


def operand_of(kind: str, owner: str, name: str) -> Operand | None:
    """Return where an operator's object describes a DaemonSet; None if it is not known.

    Args:
        kind: of the operator's object.
        owner: its name; empty if it is not known.
        name: of the DaemonSet.
    """
    if kind == "ClusterPolicy":
        return _POLICY.get(name, Operand("", tolerations="spec.daemonsets.tolerations"))
    if kind == "DeviceConfig":
        return _DEVICES.get(name.removeprefix(f"{owner}-"))
    if kind == "GpuDevicePlugin":
        return Operand("spec", tolerations="spec.tolerations")
    return None

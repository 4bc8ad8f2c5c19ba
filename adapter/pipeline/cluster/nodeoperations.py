"""What an operator of GPU drivers does with a node, by the node's labels.

A driver upgrade writes ``…-driver-upgrade-state`` (NVIDIA/k8s-operator-libs
``pkg/upgrade/consts.go``, from ``cordon-required`` to ``upgrade-done``); the operators of NVIDIA,
AMD (``operator.amd.com``) and other vendors use the same words. NVIDIA's page "GPU Driver Upgrades"
has how a failed one starts again. mig-parted writes ``nvidia.com/mig.config.state``, and AMD's
device config manager ``dcm.amd.com/gpu-config-profile-state``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_UPGRADE: Final = "-driver-upgrade-state"
_QUEUED: Final = ("", "upgrade-done", "upgrade-required")
"""States in which pods run as always."""
_STUCK: Final = (
    "wait until it is over; if it does not move, see the operator's events and log: a "
    "PodDisruptionBudget, a pod with a GPU that does not end, or a driver pod that does not start"
)
_MIG: Final = (
    "see the log of nvidia-mig-manager on the node, and correct the label nvidia.com/mig.config to "
    "a layout of its ConfigMap that this GPU model has; no pod may hold a GPU meanwhile"
)
_DCM: Final = (
    "see the log of the device config manager on the node, and correct the label "
    "dcm.amd.com/gpu-config-profile, or its profile in the ConfigMap; no pod may hold a GPU then"
)
_PARTITIONS: Final = {
    "nvidia.com/mig.config.state": ("MIG configuration", _MIG),
    "dcm.amd.com/gpu-config-profile-state": ("GPU partitioning", _DCM),
}
"""Label -> what is configured, and what to do if it failed."""


class NodeOperation(NamedTuple):
    """Work of an operator on a node, that is not over."""

    text: str
    """``the driver upgrade has failed (nvidia.com/gpu-driver-upgrade-state=upgrade-failed)``."""
    fix: str
    failed: bool
    """It waits for a person."""


def operations(labels: Mapping[str, str]) -> Iterator[NodeOperation]:
    """Yield what operators do with a node, or have failed to do; the failures first."""
    rows = [*_upgrades(labels), *_partitions(labels)]
    yield from (row for row in rows if row.failed)
    yield from (row for row in rows if not row.failed)


def _upgrades(labels: Mapping[str, str]) -> Iterator[NodeOperation]:
    for key, state in labels.items():
        if not key.endswith(_UPGRADE) or state in _QUEUED:
            continue
        if state == "upgrade-failed":
            yield NodeOperation(
                f"the driver upgrade has failed ({key}={state}), so the node stays cordoned",
                "see the driver pod and the validator on the node; after the repair, start the "
                f"upgrade again: set the label {key} of the node to upgrade-required",
                failed=True,
            )
        else:
            text = f"the operator upgrades the driver of the node ({key}={state})"
            yield NodeOperation(text, _STUCK, failed=False)


def _partitions(labels: Mapping[str, str]) -> Iterator[NodeOperation]:
    for key, (what, fix) in _PARTITIONS.items():
        state = labels.get(key, "")
        if state in ("failed", "failure"):
            yield NodeOperation(f"the {what} has failed ({key}={state})", fix, failed=True)
        elif state and state != "success":
            text = f"the {what} is being changed ({key}={state})"
            yield NodeOperation(text, _STUCK, failed=False)

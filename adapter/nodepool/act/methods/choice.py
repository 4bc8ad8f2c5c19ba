"""Choose the provisioning method of a cluster, with the reason.

A CRD without a controller is common, so CapacityBuffers are used only after a controller has
accepted a buffer with 0 replicas, the probe. The probe is kept, so that a controller that starts
later is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.names import BUFFER_VERSIONS
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.servedapis import ServedApis


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The provisioning method in use."""

    method: ProvisioningMethod | None
    """None while the probe is pending, or if the configured method is not available."""
    reason: str


_SETTING: Final = "nodepool.provisioning_method"
GPU_WAIT: Final = (
    "the cluster-autoscaler adds no node for GPU pods younger than 30 s, placeholders among them, "
    "so a jump gains little: turn its CapacityBuffers on (1.34 or later), or start it with "
    "--bypassed-scheduler-names=none (1.29 or later)"
)
"""Limitation of placeholders with the cluster-autoscaler, and the fix. A CapacityBuffer has no
such delay."""


def with_wait(choice: MethodChoice, *, cluster_autoscaler: bool) -> MethodChoice:
    """Return the choice, with a warning if placeholders wait as long as the pods themselves."""
    if choice.method is not ProvisioningMethod.PLACEHOLDER or not cluster_autoscaler:
        return choice
    return MethodChoice(choice.method, f"{choice.reason}; {GPU_WAIT}")


def choose(
    setting: Literal["auto", "buffer", "placeholder"],
    served: ServedApis,
    buffers: Iterable[HeadroomObject],
    waited: float | None,
    patience: float,
) -> MethodChoice:
    """Choose a provisioning method.

    Args:
        buffers: the probe, and the buffers that were ordered.
        waited: seconds since the probe was written; None if none was written, as in a dry run.
        patience: seconds to wait for a controller to accept the probe.
    """
    if setting == "placeholder":
        return MethodChoice(ProvisioningMethod.PLACEHOLDER, f"{_SETTING} is placeholder")
    version = f"CapacityBuffer {served.buffers}"
    if setting == "buffer":
        if served.buffers:
            return MethodChoice(ProvisioningMethod.BUFFER, f"{_SETTING} is buffer ({version})")
        why = f"{_SETTING} is buffer, but {_why_no_buffers(served)}"
        if served.newer:
            return MethodChoice(None, f"{why}, or set auto")
        return MethodChoice(
            None,
            f"{why}: install its CRD and turn the autoscaler's feature on, or set auto",
        )
    if not served.buffers:
        return MethodChoice(ProvisioningMethod.PLACEHOLDER, _why_no_buffers(served))
    return _choose_by_probe(version, list(buffers), waited, patience)


def _why_no_buffers(served: ServedApis) -> str:
    if not served.newer:
        return "the API server serves no CapacityBuffer"
    return (
        f"the API server serves CapacityBuffer only as {served.newer}, and this controller knows "
        f"{' and '.join(BUFFER_VERSIONS)}: install a newer controller"
    )


def _choose_by_probe(
    version: str, buffers: list[HeadroomObject], waited: float | None, patience: float
) -> MethodChoice:
    if any(capacitybuffer.is_accepted(row.conditions) for row in buffers):
        return MethodChoice(ProvisioningMethod.BUFFER, f"a controller accepted {version}")
    if waited is None:
        return MethodChoice(
            ProvisioningMethod.BUFFER, f"{version} is served; not probed in a dry run"
        )
    if waited < patience:
        return MethodChoice(None, f"{version} is served; waiting for a controller to accept it")
    status = "; ".join(
        f"{kind}={row.status} {row.reason}"
        for buffer in buffers
        for kind, row in buffer.conditions.items()
    )
    return MethodChoice(
        ProvisioningMethod.PLACEHOLDER,
        f"{version} is served, but no controller accepts it ({status or 'its status is empty'}): "
        f"turn the autoscaler's feature on",
    )

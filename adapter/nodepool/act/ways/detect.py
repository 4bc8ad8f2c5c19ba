"""Which way a cluster has, and why.

A CRD without a controller is common, so a CapacityBuffer counts only once a buffer of no
replicas was taken up. The probe stays: what is taken up later, when somebody turns the
feature on, is seen without asking again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from adapter.nodepool.act.ways import capacitybuffer
from adapter.nodepool.model.capacity import Way
from adapter.nodepool.seen.headroom import Found
from adapter.nodepool.seen.served import Served


@dataclass(frozen=True, slots=True)
class Choice:
    """The way that is taken."""

    way: Way | None
    """None while the probe is waited for, or where the way that is set is not there."""
    reason: str


GPU_WAIT: Final = (
    "the cluster-autoscaler adds no node for GPU pods younger than 30 s, placeholders among them, "
    "so a jump gains little: turn its CapacityBuffers on (1.34 or later), or start it with "
    "--bypassed-scheduler-names=none (1.29 or later)"
)
"""What placeholders cannot do there, and what to do about it. A CapacityBuffer has no age."""


def with_wait(choice: Choice, *, cluster_autoscaler: bool) -> Choice:
    """The choice, with a warning where placeholders wait as long as the pods themselves."""
    if choice.way is not Way.PLACEHOLDER or not cluster_autoscaler:
        return choice
    return Choice(choice.way, f"{choice.reason}; {GPU_WAIT}")


def choose(
    setting: Literal["auto", "buffer", "placeholder"],
    served: Served,
    buffers: Iterable[Found],
    waited: float | None,
    patience: float,
) -> Choice:
    """Decide for a way.

    Args:
        buffers: the probe, and the buffers that were ordered.
        waited: seconds since the probe was written; None where none was, as in a dry run.
        patience: seconds that the probe is given.
    """
    if setting == "placeholder":
        return Choice(Way.PLACEHOLDER, "nodepool.way is placeholder")
    version = f"CapacityBuffer {served.buffers}"
    if setting == "buffer":
        if served.buffers:
            return Choice(Way.BUFFER, f"nodepool.way is buffer ({version})")
        return Choice(
            None,
            "nodepool.way is buffer, and no CapacityBuffer is served: install its CRD and turn "
            "the autoscaler's feature on, or set auto",
        )
    if not served.buffers:
        return Choice(Way.PLACEHOLDER, "the API server serves no CapacityBuffer")
    return _probed(version, list(buffers), waited, patience)


def _probed(version: str, found: list[Found], waited: float | None, patience: float) -> Choice:
    if any(capacitybuffer.served(row.conditions) for row in found):
        return Choice(Way.BUFFER, f"{version} is taken up by a controller")
    if waited is None:
        return Choice(Way.BUFFER, f"{version} is served; not probed in a dry run")
    if waited < patience:
        return Choice(None, f"{version} is served; waiting for a controller to take it up")
    said = "; ".join(
        f"{kind}={row.status} {row.reason}"
        for each in found
        for kind, row in each.conditions.items()
    )
    return Choice(
        Way.PLACEHOLDER,
        f"{version} is served, but no controller takes it up ({said or 'its status is empty'}): "
        f"is the autoscaler's feature on?",
    )

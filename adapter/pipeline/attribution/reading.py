"""Readings and absences: the value of a metric for a pod or a node, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from adapter.pipeline.catalog.increases import Increase
from adapter.pipeline.catalog.labelvalue import label_value
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.device import Device


class Attribution(StrEnum):
    """How a pod's value follows from a device's value."""

    EXACT = "exact"
    COPIED = "copied"
    SPLIT = "split"
    DERIVED = "derived"
    """No sample names a pod: the pod is the only one that holds a GPU of a node with one GPU."""


def device_labels(
    device: Device, model: str, container: str, how: Attribution, *, shared: bool
) -> dict[str, str]:
    """Return the labels of a device by which ``metric.selector`` selects, as selectors write them.

    Args:
        device: the device.
        model: empty if it is not known.
        container: that the device is assigned to; empty if it is not known.
        how: the value follows from the device's.
        shared: several pods have the device.
    """
    labels = {
        "device": label_value(device.id),
        "sharing": "shared" if shared else "exclusive",
        "attribution": how.value,
    }
    if model:
        labels["model"] = label_value(model)
    if device.mig_profile:
        labels["mig_profile"] = label_value(device.mig_profile)
    if container:
        labels["container"] = container
    return labels


class DeviceReading(NamedTuple):
    """One device's part in a reading."""

    of: Device
    model: str
    """That of the device or of its node; empty if it is not known."""
    container: str
    """That the device is assigned to; empty if it is not known."""
    value: float
    """In the metric's unit."""
    time: float
    """Epoch seconds of the newest valid sample behind ``value``."""
    formula: str
    """The exporter's series of the value."""
    attribution: Attribution = Attribution.EXACT
    policy: str = ""
    """The sharing policy that was applied; empty if only this pod has the device."""
    evidence: str = ""
    """The evidence that the device is shared; empty if it is not."""
    sharers: int = 1
    """Running pods known to share the device, including this one."""
    increase: Increase | None = None
    """What a histogram of the server counted, for a latency."""

    @property
    def device(self) -> str:
        """The device's identity: UUID, UUID/GPU_I_ID, or node/index."""
        return self.of.id

    @property
    def labels(self) -> Mapping[str, str]:
        """See :func:`device_labels`. Few readers ask for them, so a reading does not keep them."""
        shared = bool(self.policy)
        return device_labels(self.of, self.model, self.container, self.attribution, shared=shared)


@dataclass(slots=True)
class Reading:
    """A metric's value for one pod or node. Treated as immutable."""

    value: float
    """Finite, in the metric's unit and inside its range."""
    time: float
    """Epoch seconds: the *oldest* of the devices' times, so that age is never understated."""
    window: int | None
    """Whole seconds of the window of the mean; None for a newest value."""
    expires: float
    """Epoch seconds at which the age limit is reached."""
    devices: tuple[DeviceReading, ...]
    partial: bool
    """Some devices had no valid value; at least half had one."""
    left_out: tuple[Absence, ...] = ()
    """The devices without a part in the value."""
    note: str = ""
    """How precise a latency is."""
    served: Any = field(default=None, init=False, repr=False, compare=False)
    """Cache of the API object made from the reading, after the object that it describes."""

    @property
    def extent(self) -> int:
        """How many devices and servers were read for it, itself included."""
        return 1 + len(self.devices)

    def serve(self, made: object) -> None:
        """Keep the API object made from the reading, so that it is rendered once."""
        self.served = made


@dataclass(frozen=True, slots=True)
class Absence:
    """No value, and the reason, which is also counted in the self-metrics."""

    reason: str
    detail: str = ""
    device: str = ""
    """The device that has no part in a value; empty if the value itself is missing."""
    left_out: tuple[Absence, ...] = ()
    """The devices without a part in the value, if there are any."""
    exporter: PodRef | None = None
    """The exporter's own pod, if the reason is about an exporter and its pod is known."""
    counted: tuple[DeviceReading, ...] = ()
    """The servers that were read, if they have too few requests for a latency: with those of other
    pods they may be enough."""
    expires: float = float("inf")
    """Epoch seconds at which ``counted`` reaches the age limit."""

    @property
    def extent(self) -> int:
        """How many devices and servers were read for it, itself included."""
        return 1 + len(self.counted) + len(self.left_out)

"""A value about a pod or a node, with everything needed to stand behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Attribution(StrEnum):
    """How a device's value became a pod's."""

    EXACT = "exact"
    COPIED = "copied"
    SPLIT = "split"


class DeviceReading(NamedTuple):
    """One device's part in a reading; also what ``metric.selector`` selects by."""

    device: str
    """The device's identity: UUID, UUID/GPU_I_ID, or node/index."""
    value: float
    """In the metric's unit."""
    time: float
    """Epoch seconds of the newest valid sample behind ``value``."""
    labels: Mapping[str, str]
    """``model``, ``mig_profile``, ``sharing``, ``attribution``, ``container``, ``device``."""
    formula: str
    """The exporter's series that the value came from."""
    attribution: Attribution = Attribution.EXACT
    policy: str = ""
    """The sharing policy in force; empty where the device is the pod's alone."""
    evidence: str = ""
    """By what the device is known to be shared; empty where it is not."""
    sharers: int = 1
    """Running pods known to share the device, this one included."""


@dataclass(slots=True)
class Reading:
    """A metric's value for one pod or node. Treated as immutable."""

    value: float
    """Finite, in the metric's unit and inside its range."""
    time: float
    """Epoch seconds: the *oldest* of the devices' times, so that age is never understated."""
    window: int | None
    """Whole seconds the value is a mean over; None for a last value."""
    expires: float
    """Epoch seconds at which the age limit is reached."""
    devices: tuple[DeviceReading, ...]
    partial: bool
    """Some devices had no valid reading (at least half had)."""
    left_out: tuple[Absence, ...] = ()
    """The devices without a part in the value."""
    served: Any = field(default=None, init=False, repr=False, compare=False)
    """The API object made of the reading, once there is one, behind what it is about."""

    def serve(self, made: object) -> None:
        """Remember the API object made of the reading; it says nothing that is not here."""
        self.served = made


@dataclass(frozen=True, slots=True)
class Absence:
    """No value, and why: one of the reasons counted in the adapter's own metrics."""

    reason: str
    detail: str = ""
    device: str = ""
    """The device that has no part in a value; empty for the value itself."""
    left_out: tuple[Absence, ...] = ()
    """The devices without a part in the value, where there are some."""

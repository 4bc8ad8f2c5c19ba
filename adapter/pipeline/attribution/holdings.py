"""Remember which pods samples have named for which device, for the lifetime of the pods.

A device plugin never moves a pod to another device. So an assignment remains valid even if the
next page of a time-sliced device names another pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from adapter.pipeline.cluster.pod import PodRef


class Holding(NamedTuple):
    """A pod that a sample named for a device."""

    pod: PodRef
    uid: str
    origin: str
    """The exporter of the sample."""


Holders = Mapping[str, tuple[Holding, ...]]
"""Device -> the pods that samples named for it."""


class Holdings:
    """The remembered pods per device. A mapping that :meth:`view` returned never changes."""

    __slots__ = ("_devices", "_shared")

    def __init__(self) -> None:
        self._devices: dict[str, tuple[Holding, ...]] = {}
        self._shared = False

    def view(self) -> Holders:
        """Return the pods of all devices at this time."""
        self._shared = True
        return self._devices

    def of(self, device: str) -> tuple[Holding, ...]:
        """Return the pods that samples named for a device."""
        return self._devices.get(device, ())

    def record(self, device: str, holding: Holding, *, certain: bool) -> None:
        """Record that a sample names the pod for the device.

        Args:
            device: its identity.
            holding: the current pod, and the exporter of the sample.
            certain: the sample carries the pod's UID. Without it, a sample on the device of a
                predecessor with the same name may be an old one and is not recorded.
        """
        holdings = self._devices.get(device, ())
        if holding in holdings:
            return
        namesakes = [other for other in holdings if other.pod == holding.pod]
        if not certain and any(other.uid != holding.uid for other in namesakes):
            return
        # If exporters come and go, only the last other one is kept besides this one.
        others = [other for other in namesakes if other.uid == holding.uid][-1:]
        of_other_pods = [other for other in holdings if other.pod != holding.pod]
        self._set(device, (*of_other_pods, *others, holding))

    def drop(self, device: str, gone: tuple[Holding, ...]) -> None:
        """Remove these pods from the device."""
        remaining = tuple(other for other in self._devices.get(device, ()) if other not in gone)
        self._set(device, remaining)

    def forget(self, device: str) -> None:
        """Remove the device: no exporter reports it any more."""
        self._set(device, ())

    def _set(self, device: str, holdings: tuple[Holding, ...]) -> None:
        if self._shared:
            self._devices = dict(self._devices)
            self._shared = False
        if holdings:
            self._devices[device] = holdings
        else:
            self._devices.pop(device, None)

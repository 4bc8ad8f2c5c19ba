"""Which pods samples have named for which device, as long as those pods live.

A device plugin never moves a pod to another device. So what one sample said stands, although
the next page of a time-sliced device names another pod (gpu-telemetry, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from adapter.cluster.pod import Pod, PodRef


class Holding(NamedTuple):
    """A pod that a sample named for a device."""

    pod: PodRef
    uid: str
    origin: str
    """The exporter whose sample it was."""


Holders = Mapping[str, tuple[Holding, ...]]
"""Device -> the pods that were named for it."""


class Holdings:
    """Implements the memory of names; a mapping that was lent never changes."""

    __slots__ = ("_devices", "_lent")

    def __init__(self) -> None:
        self._devices: dict[str, tuple[Holding, ...]] = {}
        self._lent = False

    def lend(self) -> Holders:
        """All names as of now."""
        self._lent = True
        return self._devices

    def of(self, device: str) -> tuple[Holding, ...]:
        """The pods that were named for a device."""
        return self._devices.get(device, ())

    def named(self, device: str, pod: Pod, origin: str, *, certain: bool) -> None:
        """A sample names the pod for the device.

        Args:
            device: its identity.
            pod: as the cluster has it now.
            origin: the exporter whose sample it is.
            certain: the sample carries the pod's uid. Without it, a sample on the device of the
                pod's predecessor of the same name may be a lingering one and is not believed.
        """
        known = self._devices.get(device, ())
        holding = Holding(pod.ref, pod.uid, origin)
        if holding in known:
            return
        namesakes = [held for held in known if held.pod == pod.ref]
        if not certain and any(held.uid != pod.uid for held in namesakes):
            return
        # Of exporters that come and go only the last is worth remembering beside this one.
        others = [held for held in namesakes if held.uid == pod.uid][-1:]
        kept = [held for held in known if held.pod != pod.ref]
        self._set(device, (*kept, *others, holding))

    def drop(self, device: str, gone: tuple[Holding, ...]) -> None:
        """These pods hold nothing any more."""
        kept = tuple(held for held in self._devices.get(device, ()) if held not in gone)
        self._set(device, kept)

    def forget(self, device: str) -> None:
        """No exporter speaks of the device any more."""
        self._set(device, ())

    def _set(self, device: str, holdings: tuple[Holding, ...]) -> None:
        if self._lent:
            self._devices = dict(self._devices)
            self._lent = False
        if holdings:
            self._devices[device] = holdings
        else:
            self._devices.pop(device, None)

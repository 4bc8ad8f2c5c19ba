"""Learn how many watts idle devices of a model draw.

The power of an idle device differs by model, card and driver, and by whether a process holds a
context on it, so a fixed table of models would soon be wrong. The adapter learns the range from
an exporter's own idle devices. The range only widens: the lowest idle power falls and the highest
rises, and both make the checks in :mod:`adapter.pipeline.devices.plausibility` doubt less. What one
exporter's devices show is not used for another exporter, because its page may be forged.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_ENOUGH: Final = 3
"""Idle devices of a model that are needed before their range is used for another device.

Cards of one model differ by a few watts.
"""
_MAX_DEVICES: Final = 64
"""Devices remembered per model: the range hardly widens after the first few dozen."""
_MAX_MODELS: Final = 16


class IdleRange(NamedTuple):
    """Lowest and highest idle power, in watts."""

    low: float
    high: float

    def union(self, other: IdleRange) -> IdleRange:
        """Return the range that contains both."""
        return IdleRange(min(self.low, other.low), max(self.high, other.high))


class IdlePower:
    """The idle power learnt so far, by model and device. Not thread-safe."""

    __slots__ = ("_models",)

    def __init__(self) -> None:
        self._models: dict[str, dict[str, IdleRange]] = {}

    def learn(self, model: str, device: str, watts: IdleRange) -> None:
        """Record the power of a device that was idle by all of its fields."""
        full = len(self._models) >= _MAX_MODELS
        if not model or watts.low <= 0 or (full and model not in self._models):
            return
        devices = self._models.setdefault(model, {})
        earlier = devices.get(device)
        if earlier is None and len(devices) >= _MAX_DEVICES:
            return
        devices[device] = watts.union(earlier) if earlier else watts

    def of_device(self, model: str, device: str) -> IdleRange | None:
        """Return the range of a device; None if it was never idle."""
        return self._models.get(model, {}).get(device)

    def of(self, model: str, device: str) -> IdleRange | None:
        """Return the idle power to compare ``device`` with, or None if too little is known.

        This is the device's own range if it was ever idle, otherwise the range of its model.
        """
        devices = self._models.get(model, {})
        watts = devices.get(device)
        if watts is not None or len(devices) < _ENOUGH:
            return watts
        ranges = list(devices.values())
        return IdleRange(min(r.low for r in ranges), max(r.high for r in ranges))

    def copy(self) -> IdlePower:
        """Return a copy that can learn without a change to this object."""
        made = IdlePower()
        made._models = {model: dict(devices) for model, devices in self._models.items()}
        return made

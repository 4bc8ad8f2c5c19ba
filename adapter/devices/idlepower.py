"""How many watts devices of a model draw when they do nothing, learnt from those that do.

No table of models can be right for long: what an idle device draws differs by model, card,
driver and by whether a process holds a context on it. So an exporter's own devices teach it,
and what was learnt only ever widens: the lowest idle power falls and the highest rises, and
both make the checks that use them (:mod:`adapter.devices.plausibility`) doubt less. What the
devices of one exporter teach is used for no other exporter's: its page may be forged.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_ENOUGH: Final = 3
"""Devices of a model that must have taught before what they taught is used for another:
cards of one model differ by a few watts."""
_MAX_DEVICES: Final = 64
"""Devices remembered per model: the range hardly widens after the first few dozen."""
_MAX_MODELS: Final = 16


class IdleRange(NamedTuple):
    """Watts."""

    low: float
    high: float

    def over(self, other: IdleRange) -> IdleRange:
        """The range that holds both."""
        return IdleRange(min(self.low, other.low), max(self.high, other.high))


class IdlePower:
    """What was learnt so far. Belongs to one thread."""

    __slots__ = ("_models",)

    def __init__(self) -> None:
        self._models: dict[str, dict[str, IdleRange]] = {}

    def learn(self, model: str, device: str, watts: IdleRange) -> None:
        """``device``, idle by every field, drew this."""
        if not model or watts.low <= 0 or (model not in self._models and self._full):
            return
        devices = self._models.setdefault(model, {})
        known = devices.get(device)
        if known is None and len(devices) >= _MAX_DEVICES:
            return
        devices[device] = watts.over(known) if known else watts

    def of(self, model: str, device: str) -> IdleRange | None:
        """The idle power to judge ``device`` by; None while too little is known.

        Its own where it was ever idle, the model's otherwise.
        """
        devices = self._models.get(model, {})
        own = devices.get(device)
        if own is not None or len(devices) < _ENOUGH:
            return own
        ranges = list(devices.values())
        return IdleRange(min(r.low for r in ranges), max(r.high for r in ranges))

    def copy(self) -> IdlePower:
        """The same, to learn more without changing this one."""
        made = IdlePower()
        made._models = {model: dict(devices) for model, devices in self._models.items()}
        return made

    @property
    def _full(self) -> bool:
        return len(self._models) >= _MAX_MODELS

"""Combine the samples about parts of one device into the device's value.

A tile, a compute core or a memory module is not a device: no pod can request one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.catalog.field import Spelling
from adapter.devices.builder import SeriesBuilder
from apiservice.runtime.steps import Steps

_STEP: Final = 128
"""Values that one step combines."""
_Place = tuple[SeriesBuilder, Spelling, float]


class Parts:
    """The samples about parts of devices in one scrape result."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[_Place, dict[str, float]] = {}

    def add(
        self,
        builder: SeriesBuilder,
        spelling: Spelling,
        labels: Mapping[str, str],
        value: float,
        time: float,
    ) -> bool:
        """Add a sample with its value in the field's unit; return False if it replaced another
        value.

        The last sample of a part counts: XPUM writes a newer reading after an older one
        (intel/xpumanager#112).
        """
        part = ",".join(filter(None, (labels.get(label) for label in spelling.field.parts)))
        values = self._values.setdefault((builder, spelling, time), {})
        earlier = values.get(part, value)
        values[part] = value
        return earlier == value

    def settle(self) -> Steps[None]:
        """Set each builder's value: the sample of the whole device, else the value of its parts."""
        for number, ((builder, spelling, time), values) in enumerate(self._values.items(), 1):
            if not number % _STEP:
                yield
            whole = values.get("")
            combined = spelling.field.over_parts.of(list(values.values()))
            builder.put(spelling, combined if whole is None else whole, time)

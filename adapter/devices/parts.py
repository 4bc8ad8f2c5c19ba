"""Samples about parts of one device, put together when the page has been read.

A tile, a compute core or a memory module is no device of its own: nobody is given one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.catalog.field import Spelling
from adapter.devices.builder import SeriesBuilder
from apiservice.runtime.steps import Steps

_STEP: Final = 128
"""Values that one step puts together."""
_Place = tuple[SeriesBuilder, Spelling, float]


class Parts:
    """The samples of one scrape result that speak for parts."""

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
        """Take a sample, its value in the field's unit; False if the part had another value.

        The last sample of a part counts: XPUM writes a newer reading after an older one
        (intel/xpumanager#112).
        """
        part = ",".join(filter(None, (labels.get(label) for label in spelling.field.parts)))
        values = self._values.setdefault((builder, spelling, time), {})
        earlier = values.get(part, value)
        values[part] = value
        return earlier == value

    def settle(self) -> Steps[None]:
        """Give every builder its device's value: the whole's own sample, else its parts'."""
        for number, ((builder, spelling, time), values) in enumerate(self._values.items(), 1):
            if not number % _STEP:
                yield
            whole = values.get("")
            combined = spelling.field.over_parts.of(list(values.values()))
            builder.put(spelling, combined if whole is None else whole, time)

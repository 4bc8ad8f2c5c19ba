"""Combine the samples about parts of one device or server into its value.

A tile, a compute core or a memory module is not a device: no pod can request one. The flows and
models of a gateway are parts of its queue. Programs get new labels with each release, so which
labels a server's parts have is not taken from the catalogue where its own page shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.metric import Combine
from adapter.pipeline.devices.builder import SeriesBuilder
from apiservice.runtime.steps import Steps

_STEP: Final = 128
"""Values that one step combines."""
_Place = tuple[SeriesBuilder, Spelling, float]


class Parts:
    """The samples about parts of devices and servers in one scrape result.

    Args:
        direct: the page was read from the exporter or server itself.
    """

    __slots__ = ("_direct", "_incomplete", "_values")

    def __init__(self, *, direct: bool) -> None:
        self._direct = direct
        self._values: dict[_Place, dict[int | tuple[str, ...], float]] = {}
        self._incomplete: set[_Place] = set()

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

        Nothing but a server writes labels on its own page, so each of its label sets is a part,
        with any labels. In a store, replicas write labels too: there, only the declared
        ones identify parts, and of two samples with the same ones, the larger one counts. A
        smaller one must not hide it.

        Of a device's part, the last sample counts: XPUM writes a newer reading after an older one
        (intel/xpumanager#112).
        """
        part = (
            id(labels)  # one object for all of a page's samples with these labels
            if spelling.server and self._direct
            else tuple([labels.get(label, "") for label in spelling.field.parts])
        )
        values = self._values.setdefault((builder, spelling, time), {})
        earlier = values.get(part, value)
        values[part] = max(earlier, value) if spelling.server else value
        return earlier == value

    def reject(self, builder: SeriesBuilder, spelling: Spelling, time: float) -> None:
        """Note that a part has no usable sample: the sum over the parts is not known."""
        if spelling.field.over_parts is Combine.SUM:
            self._incomplete.add((builder, spelling, time))

    def reject_all(self, spelling: Spelling) -> None:
        """Note that parts of a server's series may be missing, as where the page was cut."""
        if spelling.server and spelling.field.over_parts is Combine.SUM:
            self._incomplete.update(place for place in self._values if place[1] is spelling)

    def settle(self) -> Steps[None]:
        """Set each builder's value: the sample of the whole device, else the value of its parts.

        A server has no sample of the whole: clients choose the labels of a gateway's flows, and
        an empty one must not hide the others.
        """
        for number, (place, values) in enumerate(self._values.items(), 1):
            if not number % _STEP:
                yield
            builder, spelling, time = place
            whole = None if spelling.server else values.get(("",) * len(spelling.field.parts))
            if whole is not None:
                builder.put(spelling, whole, time)
            elif place not in self._incomplete:
                builder.put(spelling, spelling.field.over_parts.of(list(values.values())), time)

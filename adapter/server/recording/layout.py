"""The layout of a page: which series it has, in which order. Pages of one exporter repeat theirs.

A recording has each layout once, and then only the values of a page.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS, Decimals, Sample, ScrapeResult

ORIGINS: Final = 1 << 16
"""Origins whose last layout is remembered."""
_DECIMALS: Final = "1.0"

Written = float | str
"""A value in a recording: a number, or the text of one that JSON has no spelling for."""


class LayoutKey(NamedTuple):
    """What the pages of one layout have in common."""

    origin: str
    node: str | None
    pod: tuple[str, str] | None
    serves: bool
    series: tuple[tuple[str, Mapping[str, str]], ...]
    """Name and labels of each sample."""

    def is_from(self, result: ScrapeResult) -> bool:
        """Return whether a page is from the same exporter in the same place."""
        return (self.node, self.pod, self.serves) == (result.node, result.pod, result.serves)

    def fits(self, result: ScrapeResult) -> bool:
        """Return whether a page has this layout. Equal labels are nearly always one object."""
        return (
            self.is_from(result)
            and len(self.series) == len(result.samples)
            and all(
                name == sample.name and (labels is sample.labels or labels == sample.labels)
                for (name, labels), sample in zip(self.series, result.samples, strict=True)
            )
        )


def layout_of(result: ScrapeResult) -> LayoutKey:
    """Return the layout of a page."""
    return LayoutKey(
        result.origin,
        result.node,
        result.pod,
        result.serves,
        tuple((sample.name, sample.labels) for sample in result.samples),
    )


class Layouts:
    """Numbers for layouts, the last one of each origin. Bounded by :data:`ORIGINS`."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, LayoutKey, object]] = OrderedDict()
        """The last is that of the source, which stays while only numbers change."""
        self._next = 0

    def number(self, result: ScrapeResult) -> tuple[int, LayoutKey | None]:
        """Return the number of a page's layout, and the layout if it is new."""
        before, samples = self._known.get(result.origin), result.samples
        at_source = samples.layout if isinstance(samples, LayoutSamples) else None
        if before is not None:
            number, layout, last = before
            same = at_source is not None and at_source is last and layout.is_from(result)
            if same or layout.fits(result):
                self._known[result.origin] = number, layout, at_source
                self._known.move_to_end(result.origin)
                return number, None
        layout, number = layout_of(result), self._next
        self._next += 1
        self._known[result.origin] = number, layout, at_source
        self._known.move_to_end(result.origin)
        if len(self._known) > ORIGINS:
            self._known.popitem(last=False)
        return number, layout


def write_value(value: float) -> Written:
    """Return a value as JSON can have it."""
    if isinstance(value, Decimals):
        return _DECIMALS
    return value if math.isfinite(value) else str(value)


def read_value(written: Written) -> float:
    """Return the value again; raises ValueError."""
    if written == _DECIMALS and isinstance(written, str):
        return ONE_WITH_DECIMALS
    return float(written)


def numbers_of(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """Return the number and the time of each sample."""
    if isinstance(samples, LayoutSamples):
        pairs = list(samples.numbers())
    else:
        pairs = [(sample.value, sample.time) for sample in samples]
    return [value for value, _ in pairs], [time for _, time in pairs]


def write_times(times: list[float], received: float) -> list[float] | float | None:
    """Return the time of each sample; one number if they agree; None if it is ``received``."""
    if times.count(received) == len(times):
        return None
    return times[0] if times.count(times[0]) == len(times) else times


def read_samples(
    layout: LayoutKey,
    values: Sequence[Written],
    times: Sequence[float] | float | None,
    received: float,
) -> list[Sample]:
    """Return the samples of a page again.

    Raises:
        ValueError: there are not as many values or times as the layout has series.
    """
    if not isinstance(times, Sequence):
        times = [received if times is None else times] * len(values)
    return [
        Sample(name, labels, read_value(value), time)
        for (name, labels), value, time in zip(layout.series, values, times, strict=True)
    ]

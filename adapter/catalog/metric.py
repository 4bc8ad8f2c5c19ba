"""How a metric of the API is made of what exporters measure (:mod:`adapter.catalog.field`).

A :class:`Metric` is one name of the API, made of fields by a :class:`Formula`. It is data:
:mod:`adapter.catalog` holds the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol


class Unit(StrEnum):
    """The unit that a value is served in."""

    PERCENT = "percent"
    RATIO = "ratio"
    BYTES = "bytes"
    MEBIBYTES = "MiB"
    BYTES_PER_SECOND = "bytes per second"
    MICROSECONDS_PER_SECOND = "µs per second"
    WATTS = "W"
    CELSIUS = "°C"
    MEGAHERTZ = "MHz"
    DEVICES = "devices"
    REQUESTS = "requests"
    CODE = "code"
    NUMBER = "number"
    """A user's row that says no unit."""


class Kind(StrEnum):
    """What becomes of a device's samples."""

    MEAN = "mean"
    """The mean over the window."""
    LAST = "last"
    """The newest."""
    RATE = "rate"
    """A counter's increase per second over the window; a counter that falls began anew."""


class Statistic(NamedTuple):
    """Which number of a field's samples is meant."""

    kind: Kind
    window: float | None = None
    """Seconds; None is the window that is in force for all."""
    percentile: float | None = None
    """0-100, in place of the mean; needs :attr:`Kind.MEAN`."""


LAST: Final = Statistic(Kind.LAST)


class Combine(StrEnum):
    """How the values of several devices, or pods, become one."""

    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    SUM = "sum"
    SPREAD = "spread"
    """The largest less the smallest: 0 for one."""

    def of(self, values: Sequence[float]) -> float:
        """Combine values, of which there is at least one."""
        if self is Combine.SPREAD:
            return max(values) - min(values)
        if len(values) == 1:
            return values[0]
        if self is Combine.MAX:
            return max(values)
        if self is Combine.MIN:
            return min(values)
        total = sum(values)
        return total if self is Combine.SUM else total / len(values)


class Scope(StrEnum):
    """What a row of a field is about."""

    DEVICE = "device"
    """A GPU, or an instance or partition of one, on behalf of the pod that holds it."""
    SERVER = "server"
    """The process that serves the page, such as an inference server: it needs no GPU."""


class DeviceValue(NamedTuple):
    """A device's value of one field."""

    value: float
    time: float
    """Epoch seconds of the newest sample in it."""
    series: str
    """The exporter's name of the series."""
    field: str
    """The field's name; several joined by ``+``."""


class DeviceData(Protocol):
    """What is known about one device."""

    @property
    def mig(self) -> bool:
        """The device is a MIG instance."""

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """The field's number that is meant; None if there is none."""

    def reports(self, field: str) -> bool:
        """The device's exporter writes rows of this field, valid or not."""


class Formula(Protocol):
    """One way to a metric's value of one device."""

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """The value, or None where this way is not open."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that it looks at."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One name of the API.

    Args:
        bases: ways to a device's value; the first that is open is taken.
        per_board: devices are told apart by board, not by MIG instance.
        scope: of the fields that it is made of.
        divisible: see :class:`adapter.catalog.field.Field`.
        window: seconds that a mean or rate is taken over; None is the one in force for all.
        percentile: 0-100, over the window, in place of the mean.
        of_request: divided by the share of a device that the pod's spec asks for; absent
            where the share is not known or the value is not the pod's own.
    """

    name: str
    unit: Unit
    kind: Kind
    formulas: tuple[Formula, ...]
    over_devices: Combine = Combine.MEAN
    over_pods: Combine = Combine.MEAN
    per_board: bool = False
    scope: Scope = Scope.DEVICE
    divisible: bool = True
    window: float | None = None
    percentile: float | None = None
    of_request: bool = False

    def span(self, window: float) -> int | None:
        """Whole seconds that the value is taken over; None for a last value.

        Args:
            window: seconds in force for metrics without their own.
        """
        if self.kind is Kind.LAST:
            return None
        return max(1, round(self.window or window))

    def read(self, device: DeviceData) -> DeviceValue | None:
        """The device's value of this metric."""
        what = Statistic(self.kind, self.window, self.percentile)
        for formula in self.formulas:
            measured = formula.read(device, what)
            if measured is not None:
                return measured
        return None

"""The types that describe an API metric and how its value is computed.

A :class:`Metric` is one name of the API, with the formulas that compute it from fields
(:mod:`adapter.pipeline.catalog.field`). :mod:`adapter.pipeline.catalog` has the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from adapter.pipeline.catalog.increases import Increase


class Unit(StrEnum):
    """The unit in which a value is served."""

    PERCENT = "percent"
    RATIO = "ratio"
    BYTES = "bytes"
    MEBIBYTES = "MiB"
    BYTES_PER_SECOND = "bytes per second"
    MICROSECONDS_PER_SECOND = "µs per second"
    WATTS = "W"
    MILLIWATTS = "mW"
    CELSIUS = "°C"
    MEGAHERTZ = "MHz"
    DEVICES = "devices"
    REQUESTS = "requests"
    SECONDS = "s"
    MILLISECONDS = "ms"
    TOKENS_PER_SECOND = "tokens per second"
    REQUESTS_PER_SECOND = "requests per second"
    CODE = "code"
    NUMBER = "number"
    """A user's own metric without a unit."""


class LoadDirection(StrEnum):
    """How a value moves when the pods that it describes get more work."""

    RISES = "rises with the load"
    FALLS = "falls as the load rises"
    STEADY = "does not follow the load"
    """Another thing moves it as much: cooling, a limit, a fault, the number of devices."""
    UNKNOWN = "not known"
    """A user's own metric, of which nobody says it."""


class Kind(StrEnum):
    """How one value is made from a device's samples."""

    MEAN = "mean"
    """The mean over the window."""
    LAST = "last"
    """The newest value."""
    RATE = "rate"
    """A counter's increase per second over the window. A counter that falls has restarted."""
    HISTOGRAM = "histogram"
    """A statistic of what a histogram counted over the window."""


class Statistic(NamedTuple):
    """Which statistic of a field's samples is requested."""

    kind: Kind
    window: float | None = None
    """Seconds; None means the window of ``values.window``."""
    percentile: float | None = None
    """0-100, instead of the mean; needs :attr:`Kind.MEAN` or :attr:`Kind.HISTOGRAM`."""


LAST: Final = Statistic(Kind.LAST)


class Combine(StrEnum):
    """How the values of several devices, or pods, are combined."""

    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    SUM = "sum"
    SPREAD = "spread"
    """The largest minus the smallest; 0 for one value."""

    def of(self, values: Sequence[float]) -> float:
        """Combine at least one value."""
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
    """What a sample of a field describes."""

    DEVICE = "device"
    """A GPU, or an instance or partition of one, assigned to a pod or unassigned."""
    SERVER = "server"
    """The process that serves the page, such as an inference server. It needs no GPU."""


class DeviceValue(NamedTuple):
    """A device's value of one field."""

    value: float
    time: float
    """Epoch seconds of the newest sample behind the value."""
    series: str
    """The exporter's name of the series."""
    field: str
    """The field's name; several are joined by ``+``."""
    increase: Increase | None = None
    """What a histogram counted over the window; then ``value`` is its count."""


class DeviceData(Protocol):
    """The fields of one device."""

    @property
    def mig(self) -> bool:
        """Whether the device is a MIG instance."""

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """Return the requested statistic of the field, or None if there is no value."""

    def newest(self, field: str) -> DeviceValue | None:
        """Return the field's newest sample, even if its number is not to be trusted."""

    def reports(self, field: str) -> bool:
        """Return whether the device's exporter writes samples of this field, valid or not."""

    def is_incomplete(self, field: str) -> bool:
        """Return whether the field has no value because not all of its samples are read."""


class Formula(Protocol):
    """One way to compute a metric's value for one device."""

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the value, or None if the formula does not apply."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that the formula reads."""

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes samples of every field that a value needs."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One name of the API.

    Args:
        formulas: ways to compute a device's value; the first that applies is used.
        load: how the value moves with the load.
        high: the highest value of one pod, in ``unit``; None if there is none by definition.
        of_parts: those of ``formulas`` that apply to a container's part of a device only, such as
            its limit of memory: the limits do not add up to the device.
        per_board: count a board once, not each of its MIG instances.
        divisible: see :class:`adapter.pipeline.catalog.field.Field`.
        window: seconds for a mean or rate; None means the window of ``values.window``.
        percentile: 0-100, over the window, instead of the mean.
        on_demand: its series are read only while somebody asks for it
            (:mod:`adapter.pipeline.catalog.seriesdemand`).
        of_request: divide by the share of a device that the pod's spec requests. There is no
            value if the share is not known or the value is not the pod's own.
        promised: the value depends on a latency promise, which the query states instead of devices
            (:mod:`adapter.answers.promises`). It has no formulas.
        expects: the metric of which this is what it will not exceed
            (:mod:`adapter.pipeline.catalog.expectedmetrics`); empty for a measured one.
    """

    name: str
    unit: Unit
    kind: Kind
    formulas: tuple[Formula, ...]
    over_devices: Combine = Combine.MEAN
    over_pods: Combine = Combine.MEAN
    of_parts: tuple[Formula, ...] = ()
    per_board: bool = False
    scope: Scope = Scope.DEVICE
    divisible: bool = True
    window: float | None = None
    percentile: float | None = None
    of_request: bool = False
    load: LoadDirection = LoadDirection.UNKNOWN
    high: float | None = None
    on_demand: bool = False
    promised: bool = False
    expects: str = ""
    statistic: Statistic = field(init=False, repr=False, compare=False)
    """Which statistic of a field's samples the formulas read."""
    of_device: Metric = field(init=False, repr=False, compare=False)
    """The metric for a device as a whole, without the formulas of parts."""

    def __post_init__(self) -> None:
        statistic = Statistic(self.kind, self.window, self.percentile)
        object.__setattr__(self, "statistic", statistic)
        whole = self
        if self.of_parts:
            formulas = tuple(f for f in self.formulas if f not in self.of_parts)
            whole = replace(self, formulas=formulas, of_parts=())
        object.__setattr__(self, "of_device", whole)

    def span(self, window: float) -> int | None:
        """Return the whole seconds of the metric's window, or None for a newest value.

        Args:
            window: seconds, for metrics without their own window.
        """
        if self.kind is Kind.LAST:
            return None
        return max(1, round(self.window or window))

    def read(self, device: DeviceData) -> DeviceValue | None:
        """Return the device's value of this metric, or None."""
        for formula in self.formulas:
            measured = formula.read(device, self.statistic)
            if measured is not None:
                return measured
        return None

"""The formulas: how a metric's value is computed from the fields of a device."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.pipeline.catalog.metric import DeviceData, DeviceValue, Formula, Kind, Statistic


@dataclass(frozen=True, slots=True)
class Scaled:
    """One field times a factor.

    Args:
        mig: True only for MIG instances, False only for whole devices, None for both.
        unless: the formula does not apply if the exporter writes samples of this field, valid or
            not. A rejected value must not be replaced by a value with another meaning.
    """

    field: str
    factor: float = 1.0
    mig: bool | None = None
    unless: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The field."""
        return (self.field,)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes the field."""
        return device.reports(self.field)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the field's value times the factor."""
        if self.mig is not None and device.mig is not self.mig:
            return None
        if self.unless is not None and device.reports(self.unless):
            return None
        measured = device.value_of(self.field, what)
        if measured is None or self.factor == 1.0:
            return measured
        return _times(measured, self.factor)


@dataclass(frozen=True, slots=True)
class Rated:
    """A counter's increase per second times a factor, regardless of the metric's kind."""

    field: str
    factor: float = 1.0
    unless: str | None = None
    """See :class:`Scaled`."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The counter."""
        return (self.field,)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes the counter."""
        return device.reports(self.field)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the rate; None with fewer than two samples in the window."""
        if self.unless is not None and device.reports(self.unless):
            return None
        measured = device.value_of(self.field, Statistic(Kind.RATE, what.window))
        return measured and _times(measured, self.factor)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of fields. Fields in ``optional`` are added if the exporter has them."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    factor: float = 1.0

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that may be added."""
        return (*self.required, *self.optional)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes all required fields."""
        return all(map(device.reports, self.required))

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the sum, with the time of its oldest part; None if a required part is missing."""
        parts = []
        for field in self.required:
            part = device.value_of(field, what)
            if part is None:
                return None
            parts.append(part)
        parts += [part for field in self.optional if (part := device.value_of(field, what))]
        values, times, series, fields, _ = zip(*parts, strict=True)
        return DeviceValue(
            sum(values) * self.factor, min(times), "+".join(series), "+".join(fields)
        )


@dataclass(frozen=True, slots=True)
class Counting:
    """A number of things whose series the exporter removes when there are none.

    Args:
        field: the number.
        beside: the exporter writes this field as long as it counts. While it has a value and no
            sample of ``field`` is on the page, the number is 0.
    """

    field: str
    beside: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The number, and the field beside it."""
        return (self.field, self.beside)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter counts."""
        return device.reports(self.field) or device.reports(self.beside)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the number; None if the exporter's number is not valid or it does not count."""
        if device.reports(self.field):
            return device.value_of(self.field, what)
        counting = device.value_of(self.beside, what)
        return counting and DeviceValue(0.0, counting.time, counting.series, self.field)


@dataclass(frozen=True, slots=True)
class Unless:
    """A formula that applies only to pages without certain fields, valid or not.

    Args:
        formula: what is read otherwise.
        others: fields that say the same better.
        with_fewer_labels: the formula's fields count the same with fewer labels, so they apply too
            if not all samples of the others are read.
    """

    formula: Formula
    others: tuple[str, ...]
    with_fewer_labels: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the formula."""
        return self.formula.fields

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the formula applies and the exporter writes its fields."""
        return not self._is_superseded(device) and self.formula.is_exported(device)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the formula's value; None if one of the other fields is on the page."""
        return None if self._is_superseded(device) else self.formula.read(device, what)

    def _is_superseded(self, device: DeviceData) -> bool:
        return any(
            device.reports(other) and not (self.with_fewer_labels and device.is_incomplete(other))
            for other in self.others
        )


@dataclass(frozen=True, slots=True)
class Unshown:
    """What a page cannot show: its server hands every request on at once, and reports no queue.

    Args:
        marks: fields by which such a page is recognized.
    """

    marks: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The marks."""
        return self.marks

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the page is such a page."""
        return any(map(device.reports, self.marks))

    def read(self, device: DeviceData, what: Statistic) -> None:
        """Return None."""
        return


def hides(formula: Formula) -> bool:
    """Return whether a formula only states that a page cannot show the value."""
    read = formula.formula if isinstance(formula, Unless) else formula
    return isinstance(read, Unshown)


@dataclass(frozen=True, slots=True)
class Percentage:
    """A part as a percentage of a whole."""

    part: Formula
    whole: Formula

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the part and the whole."""
        return (*self.part.fields, *self.whole.fields)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes the fields of both."""
        return self.part.is_exported(device) and self.whole.is_exported(device)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return percent; None if part or whole is missing or the part exceeds the whole."""
        part, whole = self.part.read(device, what), self.whole.read(device, what)
        if part is None or whole is None or whole.value <= 0 or part.value > whole.value:
            return None
        return DeviceValue(
            100.0 * part.value / whole.value,
            min(part.time, whole.time),
            f"{part.series}/({whole.series})",
            part.field,
        )


@dataclass(frozen=True, slots=True)
class Rest:
    """A whole minus a part, in the unit of both."""

    whole: Formula
    part: Formula

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the whole and the part."""
        return (*self.whole.fields, *self.part.fields)

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes the fields of both."""
        return self.whole.is_exported(device) and self.part.is_exported(device)

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return the difference; None if part or whole is missing or the part exceeds the whole."""
        whole, part = self.whole.read(device, what), self.part.read(device, what)
        if whole is None or part is None or part.value > whole.value:
            return None
        return DeviceValue(
            whole.value - part.value,
            min(part.time, whole.time),
            f"({whole.series})-{part.series}",
            part.field,
        )


@dataclass(frozen=True, slots=True)
class Presence:
    """1 for every device that has a sample of at least one of the fields."""

    fields: tuple[str, ...]

    def is_exported(self, device: DeviceData) -> bool:
        """Return whether the exporter writes one of the fields."""
        return any(map(device.reports, self.fields))

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        """Return 1, with the time of the newest of the fields; None if no field has a sample."""
        heard = [s for s in map(device.newest, self.fields) if s]
        if not heard:
            return None
        newest = max(heard, key=lambda measured: measured.time)
        return newest._replace(value=1.0)


def _times(measured: DeviceValue, factor: float) -> DeviceValue:
    """Return a value times a factor; ``_replace`` takes three times as long."""
    value, time, series, field, increase = measured
    return DeviceValue(value * factor, time, series, field, increase)

"""The ways from a device's fields to a metric's value. A user's row needs no other."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.metric import Evidence, Kind, Sample


@dataclass(frozen=True, slots=True)
class Scaled:
    """One field times a factor.

    Args:
        mig: True only for MIG instances, False only for whole devices, None for both.
        unless: the way is closed if the exporter writes rows of this field at all, even
            bad ones: a rejected value must not be replaced by one that means another thing.
    """

    field: str
    factor: float = 1.0
    mig: bool | None = None
    unless: str | None = None

    def read(self, device: Evidence, kind: Kind) -> Sample | None:
        """The field's value times the factor."""
        if self.mig is not None and device.mig is not self.mig:
            return None
        if self.unless is not None and device.reports(self.unless):
            return None
        sample = device.sample(self.field, kind)
        if sample is None or self.factor == 1.0:
            return sample
        return sample._replace(value=sample.value * self.factor)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of fields; those in ``optional`` count where the exporter has them."""

    fields: tuple[str, ...]
    optional: tuple[str, ...] = ()
    factor: float = 1.0

    def read(self, device: Evidence, kind: Kind) -> Sample | None:
        """The sum, as old as its oldest part; None if a part is missing."""
        parts = [device.sample(field, kind) for field in self.fields]
        if any(part is None for part in parts):
            return None
        parts += [device.sample(field, kind) for field in self.optional]
        found = [part for part in parts if part is not None]
        return Sample(
            sum(part.value for part in found) * self.factor,
            min(part.time for part in found),
            "+".join(part.series for part in found),
            "+".join(part.field for part in found),
        )


@dataclass(frozen=True, slots=True)
class Share:
    """A part as a percentage of a whole."""

    part: Scaled
    whole: Scaled | Total

    def read(self, device: Evidence, kind: Kind) -> Sample | None:
        """Percent; None if part or whole is missing or the part is more than the whole."""
        part, whole = self.part.read(device, kind), self.whole.read(device, kind)
        if part is None or whole is None or whole.value <= 0 or part.value > whole.value:
            return None
        return Sample(
            100.0 * part.value / whole.value,
            min(part.time, whole.time),
            f"{part.series}/({whole.series})",
            part.field,
        )


@dataclass(frozen=True, slots=True)
class Presence:
    """1 for every device that any of these fields was heard of."""

    fields: tuple[str, ...]

    def read(self, device: Evidence, kind: Kind) -> Sample | None:
        """1, as old as the newest of the fields; None if none was heard of."""
        heard = [s for s in (device.sample(field, Kind.LAST) for field in self.fields) if s]
        if not heard:
            return None
        newest = max(heard, key=lambda sample: sample.time)
        return newest._replace(value=1.0)

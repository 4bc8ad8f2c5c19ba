"""What exporters measure, and how each spells it. Data: :mod:`adapter.catalog` holds the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapter.catalog.metric import Combine, Kind, Scope, Unit


class Mig(StrEnum):
    """What a field's rows on MIG instances mean."""

    INSTANCE = "instance"
    """The instance's own value."""
    BOARD = "board"
    """The board's value, repeated per instance: one per board, never summed."""
    INVALID = "invalid"
    """Absent, 0 or garbage (gpu-telemetry, section 2): never used."""


class Spelling:
    """One name of a field on exporters' pages. Compared by identity: the catalogue's own."""

    __slots__ = (
        "factor",
        "field",
        "high",
        "low",
        "name",
        "numbers",
        "salt",
        "series",
        "server",
        "special",
        "traps",
    )

    def __init__(self, series: str, factor: float, field: Field) -> None:
        self.series = series
        """The series' name on a page."""
        self.name = series + field.condition
        """The same with the labels that a row must have; what explanations show."""
        self.factor = factor
        """A page's number times this is in the field's unit."""
        self.field = field
        self.low = field.low / factor
        """The smallest number that a page may hold."""
        self.high = field.high / factor
        self.server = field.scope is Scope.SERVER
        """Its rows are about the process that serves the page."""
        self.salt = 0 if not self.server else 1 if field.told_by is not None else 2
        """Tells apart what the labels of one row say to fields that read them differently."""
        self.numbers = (self.salt, self.low, self.high, self.factor)
        """What every row of the series needs, at one glance."""
        self.traps = field.traps and factor == 100.0
        """DCGM 4.6 gives the integer percent the name that 4.7 gives the ratio."""
        self.special = self.traps or bool(field.parts)
        """A row alone does not tell the device's value: the whole page does."""

    def fits(self, labels: Mapping[str, str]) -> bool:
        """The row is of this field; an empty label is as good as none."""
        return all(labels.get(label, "") == value for label, value in self.field.where)


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that exporters measure, in one unit, whatever the page calls it.

    Args:
        name: the classic name; also the API metric of the same name.
        unit: of the value under ``name``.
        high: the largest believable value, in ``unit``. Beyond it a row is rejected.
        low: the smallest.
        kind: mean over the window, or last.
        mig: what its rows on MIG instances mean.
        renamed: other names on pages, with the factor that turns their number into ``unit``;
            each is an API metric too, in its own unit.
        legacy: old names in ``unit``: read from pages, served as well.
        group: fields that one Prometheus query fetches together.
        scope: what a row is about.
        divisible: a shared device's value may be divided among its pods: watts may, degrees
            may not.
        exact: its rows are the container's own, not the device's: nothing to divide.
        series: the name on pages, where several fields share one and ``where`` tells them
            apart; such a field is no API metric of its own.
        where: labels that a row of this field has; "" is a label that is not there.
        parts: labels that tell parts of one device apart (tiles, compute cores). A row
            without them speaks for the whole device and wins over the parts; of a part that
            is repeated on a page the last row counts (Intel XPUM repeats rows).
        over_parts: how the parts become the device's value.
        traps: a ``…_RATIO`` spelling may be a percent (DCGM 4.6).
        told_by: labels that tell the parts of an inference server apart; every other label is
            one that a scrape or a store added, or that tells no part. None, of a user's own
            row, takes every label but those that scrapes are known to add.
        seen: its rows are what an inference server's page says of the GPUs that the server
            sees. They name no pod: the pod that serves the page is the pod, and is believed
            where no exporter speaks of its devices.
    """

    name: str
    unit: Unit
    high: float
    low: float = 0.0
    kind: Kind = Kind.LAST
    mig: Mig = Mig.INSTANCE
    over_devices: Combine = Combine.MEAN
    over_pods: Combine = Combine.MEAN
    renamed: tuple[tuple[str, float, Unit], ...] = ()
    legacy: tuple[str, ...] = ()
    group: str = "board"
    scope: Scope = Scope.DEVICE
    divisible: bool = True
    exact: bool = False
    series: str = ""
    where: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = ()
    over_parts: Combine = Combine.MEAN
    traps: bool = False
    told_by: frozenset[str] | None = None
    seen: bool = False

    @property
    def condition(self) -> str:
        """``where`` as a page would show it; empty where there is none."""
        if not self.where:
            return ""
        return "{" + ",".join(f'{label}="{value}"' for label, value in self.where) + "}"

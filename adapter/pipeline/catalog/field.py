"""The types that describe exporter fields and their names. :mod:`adapter.pipeline.catalog` has the
data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Scope, Unit

RAY: Final = "ray_"
"""How the names of series begin that Ray writes."""


class Mig(StrEnum):
    """Meaning of a field's samples on MIG instances."""

    INSTANCE = "instance"
    """The instance's own value."""
    BOARD = "board"
    """The board's value, repeated for each instance. It counts once per board."""
    FIRST = "first"
    """The board's value, on its first partition only: the others have 0, or no sample. It is the
    value of each of them, and counts once per board."""
    INVALID = "invalid"
    """Absent, 0 or garbage. The value is not used."""


class Role(StrEnum):
    """What a series of a classic histogram is."""

    BUCKET = "_bucket"
    SUM = "_sum"
    COUNT = "_count"


class Spelling:
    """One name of a field on exporters' pages. Spellings are compared by identity.

    Args:
        role: of a histogram's series; its name without the role is ``family``.
        bound: a bucket's upper bound, in the unit of the field.
    """

    __slots__ = (
        "__weakref__",
        "bound",
        "factor",
        "family",
        "field",
        "from_zero",
        "high",
        "low",
        "name",
        "numbers",
        "on_mig",
        "role",
        "salt",
        "series",
        "server",
        "special",
        "suffixed",
        "traps",
    )

    def __init__(
        self,
        series: str,
        factor: float,
        field: Field,
        *,
        suffixed: bool = False,
        role: Role | None = None,
        bound: float | None = None,
    ) -> None:
        self.series = series
        """Name of the series on a page."""
        self.role, self.bound = role, bound
        self.family = series.partition("{")[0].removesuffix(role) if role else series
        self.name = series + field.condition
        """``series`` with the labels that a sample must have, for messages."""
        self.factor = factor
        """Factor that converts the number on a page to the unit of the field."""
        self.field = field
        self.low = field.low / factor
        """Smallest plausible number on a page."""
        self.high = field.high / factor
        self.server = field.scope is Scope.SERVER
        """The samples describe the process that serves the page."""
        self.salt = 0 if not self.server else 1 if field.part_labels is not None else 2
        if field.kind is Kind.HISTOGRAM:
            self.salt = 3
        if field.chosen_labels:
            self.salt += 3
        """Differs between fields that read the labels of a sample in different ways."""
        self.from_zero = field.from_zero and not series.startswith(RAY)
        """The first number of the series counts from 0. Ray's agent writes what the workers of a
        node have counted, also before it knew them."""
        self.on_mig = field.mig is not Mig.INVALID
        """Samples about MIG instances, or other partitions of a device, are usable."""
        self.numbers = (self.salt, self.low, self.high, self.factor)
        """The attributes that every sample of the series needs."""
        self.traps = field.traps and factor == 100.0
        """DCGM 4.6 uses for the integer percent the name that 4.7 uses for the ratio."""
        self.special = self.traps or bool(field.parts) or role is not None
        """The value of the device follows from the whole page, not from one sample."""
        self.suffixed = suffixed
        """The name ends with a unit that an OpenTelemetry collector or receiver has appended."""

    def has_declared_parts(self, *, direct: bool) -> bool:
        """Return whether the catalogue states which labels identify the parts of a server.

        Args:
            direct: the page was read from the server itself.
        """
        field = self.field
        chosen = field.chosen_labels and direct
        return self.server and field.part_labels is not None and not chosen

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether a sample with these labels is of this field. An empty label counts as absent."""
        return all(labels.get(label, "") == value for label, value in self.field.where)


@dataclass(frozen=True, slots=True)
class Field:
    """One quantity that exporters report, in one unit, with all its names on pages.

    Args:
        name: the usual name, and the name of the API metric.
        unit: of the value under ``name``.
        high: the highest plausible value, in ``unit``. Samples beyond it are rejected.
        low: the lowest plausible value, in ``unit``.
        load: how the value moves with the load. Each metric of the catalogue states it.
        kind: mean over the window, or last.
        mig: the meaning of its samples on MIG instances.
        renamed: other names on pages, with the factor that converts their number to ``unit``.
            Each is also an API metric, in its own unit.
        legacy: old names in ``unit``, which are read from pages and served too.
        group: fields that one Prometheus query fetches together.
        scope: what a sample describes.
        divisible: the value of a shared device may be divided among its pods. Watts may be
            divided, degrees may not.
        exact: the samples describe the container, not the device, so there is nothing to divide.
        series: the name on pages, if several fields share one name and differ in ``where``. Such
            a field has no API metric of its own.
        where: labels that a sample of this field has. "" means that the label is absent.
        parts: labels that identify parts of one device (tiles, compute cores). A sample without
            them describes the whole device and takes precedence over the parts. If a part is
            repeated on a page, its last sample counts (Intel XPUM repeats samples).
        over_parts: how the values of the parts are combined for the device.
        traps: a ``…_RATIO`` spelling may be a percent (DCGM 4.6).
        part_labels: labels that identify the parts of an inference server. Every other label is
            one that a scrape or store adds, or that identifies no part. None, for a user's own
            metric, uses every label except those that scrapes are known to add.
        chosen_labels: the user of the server may choose labels that divide the samples. On a page
            of the server itself, every label except those of ranks then identifies a part too.
        positive: a device in use never has a 0 of it, such as 0 W, 0 °C or 0 MHz. Exporters write 0
            for a field that the device or driver does not support, so the 0 is not a value
            (ROCm/device-metrics-exporter before 1.3.1, and its issue 353; DCGM's memory
            temperature in a vGPU guest).
        unsupported: names of models that do not support the field. Exporters write 0 for them, so
            the 0 is not a value there either.
        seen: the samples are from an inference server's page and describe the GPUs that the
            server sees. They name no pod. They are assigned to the pod that serves the page, if
            no exporter describes its devices.
        on_demand: its series are read only while somebody asks for a metric that needs them. It has
            no API metric of its own.
        from_zero: a program's own counter or histogram, whose series appears with the first event
            that it counts (:mod:`adapter.pipeline.devices.earlierpages`).
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
    part_labels: frozenset[str] | None = None
    chosen_labels: bool = False
    positive: bool = False
    unsupported: re.Pattern[str] | None = None
    seen: bool = False
    on_demand: bool = False
    from_zero: bool = False
    load: LoadDirection = LoadDirection.UNKNOWN

    @property
    def per_board(self) -> bool:
        """Whether the samples of a board's instances are about the board, which counts once."""
        return self.mig in (Mig.BOARD, Mig.FIRST)

    @property
    def names(self) -> Iterator[tuple[str, float, Unit]]:
        """Every name that exporters write, as in ``renamed``, the usual one first.

        :mod:`adapter.pipeline.catalog.seriesnames` has the names that stores, collectors and Ray
        make of them.
        """
        yield self.series or self.name, 1.0, self.unit
        yield from self.renamed
        yield from ((name, 1.0, self.unit) for name in self.legacy)

    @property
    def condition(self) -> str:
        """``where`` as a page shows it. Empty if there is none."""
        if not self.where:
            return ""
        return "{" + ",".join(f'{label}="{value}"' for label, value in self.where) + "}"

"""What holds for a quantity of every vendor's devices: its unit, its bound and how it behaves."""

from __future__ import annotations

from typing import Any, Final

from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Unit

MIB: Final = 1048576
MAX_MIB: Final = 16.0 * 1024 * 1024
"""16 TiB of device memory: far above any device, and far below DCGM's blank value 2147483632 and
AMD's 4294967295."""
MAX_BYTES: Final = MAX_MIB * MIB
MAX_WATTS: Final = 10_000.0
MAX_CELSIUS: Final = 200.0
MAX_MEGAHERTZ: Final = 100_000.0


def percent(name: str, **more: Any) -> Field:
    """Return a utilization in percent; ``more`` are fields of :class:`Field`, here and below."""
    return Field(name, Unit.PERCENT, 100.0, kind=Kind.MEAN, load=LoadDirection.RISES, **more)


def ratio(name: str, **more: Any) -> Field:
    """Return an activity from 0 to 1."""
    return Field(name, Unit.RATIO, 1.0, kind=Kind.MEAN, load=LoadDirection.RISES, **more)


def memory(
    name: str,
    unit: Unit = Unit.BYTES,
    *,
    total: bool = False,
    load: LoadDirection = LoadDirection.RISES,
    **more: Any,
) -> Field:
    """Return an amount of device memory; ``total`` is all that a device has."""
    return Field(
        name,
        unit,
        MAX_BYTES if unit is Unit.BYTES else MAX_MIB,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        positive=total,
        load=LoadDirection.STEADY if total else load,
        **more,
    )


def watts(name: str, *, mig: Mig = Mig.BOARD, **more: Any) -> Field:
    """Return the power of a board."""
    return Field(
        name, Unit.WATTS, MAX_WATTS, mig=mig, positive=True, load=LoadDirection.RISES, **more
    )


def celsius(name: str, *, mig: Mig = Mig.BOARD, **more: Any) -> Field:
    """Return a temperature of a board."""
    return _state(name, Unit.CELSIUS, MAX_CELSIUS, mig=mig, **more)


def megahertz(name: str, **more: Any) -> Field:
    """Return a clock of a board."""
    return _state(name, Unit.MEGAHERTZ, MAX_MEGAHERTZ, mig=Mig.BOARD, **more)


def _state(name: str, unit: Unit, high: float, **more: Any) -> Field:
    return Field(
        name, unit, high, divisible=False, positive=True, load=LoadDirection.STEADY, **more
    )


def whole_devices(util: str, used: str, total: str, *, group: str) -> tuple[Field, ...]:
    """Return the fields of an agent that reads whole devices only: samples of MIG are not used."""
    return (
        percent(util, mig=Mig.INVALID, group=group),
        memory(used, mig=Mig.INVALID, group=group),
        memory(total, total=True, mig=Mig.INVALID, group=group),
    )

"""The fields of agents that read whole devices only; samples of MIG instances are not used."""

from __future__ import annotations

from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Unit
from adapter.pipeline.catalog.units import MAX_BYTES


def whole_devices(util: str, used: str, total: str, *, group: str) -> tuple[Field, ...]:
    """Return the fields of a utilization in percent, and of used and total memory in bytes."""
    memory = (
        Field(
            name,
            Unit.BYTES,
            MAX_BYTES,
            mig=Mig.INVALID,
            over_devices=Combine.SUM,
            over_pods=Combine.SUM,
            group=group,
            positive=name == total,
            load=LoadDirection.STEADY if name == total else LoadDirection.RISES,
        )
        for name in (used, total)
    )
    return (
        Field(
            util,
            Unit.PERCENT,
            100.0,
            kind=Kind.MEAN,
            mig=Mig.INVALID,
            group=group,
            load=LoadDirection.RISES,
        ),
        *memory,
    )

"""The smallest MIG instance or share of a GPU that would have been enough for recorded pods.

Nothing is simulated: what was used is compared with what each part has. Of other models, only the
memory and the price are compared, because the catalogue does not know how fast they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.figures import age, count
from adapter.hpa import HpaSpec
from adapter.pipeline.catalog.migmodels import mig_model
from adapter.pipeline.catalog.migprofile import gpu_part, profile_memory
from adapter.pipeline.catalog.modelmemory import GIGABYTE, gigabytes_of
from adapter.pipeline.catalog.modelnames import is_of
from adapter.pipeline.catalog.serverkind import ServerKind
from adapter.pipeline.cluster.nodelabels import NVIDIA
from adapter.server.recording.events import Recording
from adapter.tools.idle.prices import PriceList
from adapter.tools.replay.judgement import SHORTEST
from adapter.tools.replay.sizereading import (
    USED,
    BusySignal,
    GpuForm,
    RecordedUse,
    SizeReading,
)
from adapter.tools.replay.study import BUSY

HEADROOM: Final = 0.2
"""Part of the memory that stays free. A pod that asks for more than there is fails, a peak between
two looks is not seen, and an instance has up to a tenth less than its name says."""
QUANTILE: Final = 0.99
"""Of the compute: a rare peak makes work late, and not impossible."""
FEWEST: Final = 300
"""Looks without which there is no recommendation: the quantile rests on three of them."""
_MOST_SHARES: Final = 48
"""Pods that share a GPU at most: the clients of CUDA MPS (NVIDIA's MPS documentation)."""
_OF_FORMS: Final = {
    GpuForm.SEVERAL: "each pod has up to {gpus} GPUs, and whether fewer or smaller ones are enough "
    "depends on how its work is divided among them",
    GpuForm.MIG: "the pods have MIG instances{profile}, and the figures are of an instance",
    GpuForm.VIRTUAL: "the GPUs are virtual (vGPU), and their host decides their size",
    GpuForm.PART: "the pods request a part of a GPU already",
    GpuForm.SHARED: "the GPUs are shared, and the figures may be of all pods of a device",
}


class MigFit(NamedTuple):
    """A MIG profile that would have been enough."""

    profile: str
    instances: int
    """That one GPU has room for."""
    part: float
    """Of the GPU's compute."""
    price: float | None
    """Per hour; None if it is not known."""


class OtherModel(NamedTuple):
    """A cheaper model of GPU with memory for what was used. Its speed is not known."""

    model: str
    gigabytes: int
    price: float
    """Per hour."""


@dataclass(frozen=True, slots=True)
class GpuSize:
    """What the recording says of the size of the GPUs of one model."""

    use: RecordedUse
    busy: float | None
    """The quantile of the compute, in percent; None if no page shows it."""
    doubt: str = ""
    """Why there is no recommendation."""
    fit: MigFit | None = None
    """None if no smaller profile would have been enough, or none is known."""
    shares: int = 1
    """Pods that could have shared a GPU by time-slicing or MPS; 1 if none."""
    price: float | None = None
    """Of a whole GPU per hour; None if it is not known."""
    other: OtherModel | None = None
    """The cheapest other model by memory, where less than the whole GPU would have been enough;
    None if none is known that costs less."""
    reserves: ServerKind | None = None
    """The server that takes memory ahead of need; the memory used is then no evidence."""

    @property
    def smaller(self) -> bool:
        """Whether less than a whole GPU for each pod would have been enough."""
        return self.fit is not None or self.shares > 1


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What the recording says of the size of an HPA's GPUs."""

    sizes: Sequence[GpuSize] = ()
    """One for each model of GPU."""
    problem: str = ""
    """Why nothing is known; empty if the pods hold no GPUs."""


def size_of(recording: Recording, spec: HpaSpec, prices: PriceList) -> SizeAnswer:
    """Return what a recording says of the size of the GPUs of an HPA's pods.

    Raises:
        RecordingError: the recording cannot be read.
    """
    reading = SizeReading(spec)
    uses = reading.read(recording)
    if uses:
        return SizeAnswer([_size(use, prices) for use in uses])
    if not reading.holders:
        return SizeAnswer()
    if not reading.absent:
        return SizeAnswer(problem=f"no recorded page has {USED} of the pods' GPUs")
    ((reason, _),) = reading.absent.most_common(1)
    return SizeAnswer(problem=f"no look at the pods' GPUs has {USED} ({reason})")


def _size(use: RecordedUse, prices: PriceList) -> GpuSize:
    """Compare what was used with what the parts of the GPU have."""
    busy = use.quantile(QUANTILE)
    reserves = use.server
    doubt = _doubt(use)
    if doubt:
        return GpuSize(use, busy, doubt, reserves=reserves)
    if use.total is None:
        return GpuSize(use, busy, "the memory of a whole GPU is not known")
    if use.signal in (None, BusySignal.UTILIZATION):
        # If the memory alone needs the whole GPU, its compute does not matter.
        alone = _fit_parts(use, use.total, 0.0, prices)
        return GpuSize(use, busy, _compute_doubt(use) if alone.smaller else "")
    return _fit_parts(use, use.total, busy or 0.0, prices)


def _doubt(use: RecordedUse) -> str:
    """Return why the recording does not support a recommendation; empty if it may."""
    form = next((form for form in GpuForm if form in use.forms), None)
    if form is not None:
        profile = f" {use.profile}" if use.profile else ""
        return _OF_FORMS[form].format(gpus=use.gpus, profile=profile)
    if use.vendor not in ("", NVIDIA):
        return "parts of this GPU, and the memory that they have, are not in the catalogue"
    return _memory_doubt(use) or _evidence_doubt(use)


def _memory_doubt(use: RecordedUse) -> str:
    """Return why the memory in use does not show what is needed; empty if it does."""
    if use.server is not None:
        return (
            f"{use.server.title} takes memory ahead of need ({use.server.reserves}), so the memory "
            "in use does not show how much it needs"
        )
    if use.constant:
        return (
            "the memory in use never changed: it may have been taken ahead of need, so it does not "
            "show how much the pods need"
        )
    return ""


def _evidence_doubt(use: RecordedUse) -> str:
    if use.seconds < SHORTEST:
        return f"these are {age(use.seconds)}, and a recommendation needs a day with its peak"
    if use.looks < FEWEST:
        return f"{count(use.looks, 'look')} are too few: it needs {FEWEST}"
    return ""


def _compute_doubt(use: RecordedUse) -> str:
    lacking = "let the exporter write DCGM_FI_PROF_SM_ACTIVE"
    if use.signal is None:
        return f"how much of the GPU worked is not known: {lacking}"
    return f"{use.signal} says that a kernel ran, and not how much of the GPU it used: {lacking}"


def _fit_parts(use: RecordedUse, total: float, busy: float, prices: PriceList) -> GpuSize:
    """Return which parts of a GPU would have been enough for what was used, with headroom.

    Args:
        use: what was used.
        total: bytes of a whole GPU.
        busy: percent of its compute.
        prices: of GPUs.
    """
    needed = use.used / (1 - HEADROOM)
    compute = busy / 100 / BUSY
    mig = mig_model(use.model, total)
    fit = None
    for profile, instances in mig.profiles.items() if mig is not None else ():
        room, part = profile_memory(profile) or 0.0, gpu_part(profile, use.model) or 0.0
        if part < 1 and needed <= room and compute <= part:
            fit = MigFit(profile, instances, part, _price(use, prices, profile))
            break
    largest = max(needed / total, compute, 1 / _MOST_SHARES)
    shares = max(1, math.floor(1 / largest))
    price = _price(use, prices, "")
    other = (
        _other_model(use.model, needed, price, prices) if fit is not None or shares > 1 else None
    )
    return GpuSize(use, busy, fit=fit, shares=shares, price=price, other=other)


def _other_model(
    model: str, needed: float, price: float | None, prices: PriceList
) -> OtherModel | None:
    """Return the cheapest other model with enough memory; None if none costs less.

    Args:
        model: the one that the pods have.
        needed: bytes.
        price: of the pods' whole GPU.
        prices: of GPUs.
    """
    others = [
        OtherModel(name, gigabytes, cost)
        for name, cost in prices.prices.items()
        if cost is not None
        and price is not None
        and cost < price
        and not is_of(model, name)
        and (gigabytes := gigabytes_of(name)) is not None
        and needed <= gigabytes * GIGABYTE
    ]
    return min(others, key=lambda other: other.price, default=None)


def _price(use: RecordedUse, prices: PriceList, profile: str) -> float | None:
    ((place, _),) = use.places.most_common(1)
    instance, capacity = place
    return prices.of(use.model, profile, instance, capacity)

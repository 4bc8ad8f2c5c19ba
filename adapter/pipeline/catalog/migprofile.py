"""Read the names of MIG profiles and of AMD's partitions: which are one profile, which part of a
GPU each is, and how much engine activity each allows.

A name states compute slices, memory slices, gigabytes and attributes, such as ``1g.10gb+me`` or
``1c.3g.20gb``. The gigabytes are rounded, and DCGM rounds them in another way than the device
plugin: the same instance is ``1g.11gb`` on a page and ``nvidia.com/mig-1g.12gb`` in a spec
(dcgm-exporter#544), or ``7g.79gb`` and ``7g.80gb`` (dcgm-exporter#713).

DCGM counts the active graphics engines of an instance. A process runs in one compute instance
and keeps one engine busy. So the maximum is 0.5 for a ``2g`` profile and 0.33 for ``3g``, while
``1g`` and a whole GPU reach 1.0 (DCGM#138, measured on A100). ``sharing.mig_normalization`` scales
by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from adapter.pipeline.catalog import ENGINE
from adapter.pipeline.catalog.metric import DeviceValue, Metric, Unit
from adapter.pipeline.catalog.migmodels import compute_slices
from adapter.pipeline.catalog.modelnames import words_of

_TOPS: Final = {"1g": 1.0, "2g": 1 / 2, "3g": 1 / 3}
_ROUNDING: Final = 1.02
"""0.34 instead of a third is rounding. More shows a second compute instance."""
_FULL: Final = 100.0
_PROFILE: Final = re.compile(r"((?:\d{1,2}c\.)?\d{1,2}g)\.(\d{1,4})gb(.*)", re.ASCII)
_SLICES: Final = re.compile(r"(\d)g\.", re.ASCII)
_PARTITIONS: Final = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
"""AMD's compute partition -> partitions of a GPU (ROCm, "Compute partitioning"). ``cpx`` makes one
of each die, whose number depends on the model."""
_DIES: Final = {"MI300A": 6, "MI300X": 8, "MI325X": 8, "MI350X": 8, "MI355X": 8}
_ROUNDED: Final = 1.5
"""Profiles of one GPU with the same slices differ in memory by a factor of two or more, such as
``1g.10gb`` and ``1g.20gb`` of an H100. A smaller difference is rounding."""


class _Parts(NamedTuple):
    slices: str
    gigabytes: int
    attributes: str

    def is_same(self, other: _Parts) -> bool:
        """Return whether only the rounding of the memory differs."""
        low, high = sorted((self.gigabytes, other.gigabytes))
        rounded = high < _ROUNDED * low
        return rounded and (self.slices, self.attributes) == (other.slices, other.attributes)


def find_spelling(profile: str, known_profiles: Iterable[str]) -> str:
    """Return which of the known names means a profile; the profile's own name if none or several.

    Args:
        profile: as in a resource's name: with ``.`` for ``+``.
        known_profiles: the profiles that pods of the node request or that the node offers.
    """
    parts, names = _parts(profile), set(known_profiles)
    if parts is None or profile in names:
        return profile
    same = [name for name in names if (other := _parts(name)) and parts.is_same(other)]
    return same[0] if len(same) == 1 else profile


def _parts(profile: str) -> _Parts | None:
    parts = _PROFILE.fullmatch(profile)
    return parts and _Parts(parts[1], int(parts[2]), parts[3])


def gpu_part(profile: str, model: str) -> float | None:
    """Return which part of a whole GPU a MIG profile or an AMD partition is: that of its compute.

    Args:
        profile: such as ``1g.5gb``, or ``cpx``; empty for a whole GPU.
        model: of the GPU.

    Returns:
        Above 0 and at most 1; None if it is not known.
    """
    if not profile:
        return 1.0
    slices = _SLICES.match(profile)
    if slices is not None:
        return min(1.0, int(slices[1]) / compute_slices(model)) or None
    kind = profile.lower().partition("_")[0]
    parts = _PARTITIONS.get(kind)
    if kind == "cpx":
        words = words_of(model)
        parts = next((n for name, n in _DIES.items() if name in words), None)
    return None if parts is None else 1.0 / parts


def profile_memory(profile: str) -> float | None:
    """Return the bytes of memory of a MIG profile by its name; None if it names none.

    The name counts more than an instance has if it is read as GiB, and about as much as gigabytes:
    of an H200, ``1g.18gb`` has 16.0 GiB, ``1g.35gb`` 32.5 GiB and ``3g.71gb`` 69.8 GiB
    (``nvidia-smi mig -lgip``).
    """
    parts = _parts(profile)
    return None if parts is None else parts.gigabytes * 1e9


def normalize_activity(measured: DeviceValue, metric: Metric, profile: str) -> DeviceValue:
    """Return engine activity in percent of what the profile allows.

    The value is returned unchanged if the profile's maximum is not known, if the value exceeds
    it, or if the metric has an exporter's own name: such metrics are verbatim.
    """
    top = _TOPS.get(profile.partition(".")[0])
    if top is None or top == 1.0 or measured.field != ENGINE or metric.unit is not Unit.PERCENT:
        return measured
    value = measured.value / top
    if value > _FULL * _ROUNDING:
        return measured
    return measured._replace(value=min(value, _FULL), series=f"{measured.series}/{profile}")

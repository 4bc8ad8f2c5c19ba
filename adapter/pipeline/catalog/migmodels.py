"""Which MIG profiles each model of GPU has, and how many instances of one a GPU has room for.

Sources: NVIDIA's MIG user guide ("Supported GPUs", "Supported MIG Profiles"), and for the profiles
of each model the configuration of NVIDIA's GPU operator
(``assets/state-mig-manager/0400_configmap.yaml``, the layouts ``all-PROFILE``). Profiles with
attributes, such as ``1g.10gb+me``, have the same memory and compute as those without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.pipeline.catalog.modelnames import is_of

_USUAL: Final = 7
"""Compute slices of a whole GPU with MIG, if its model is not in the table."""
_NEAR: Final = 0.05
"""Part by which the memory that an exporter shows may differ from the name of the whole profile:
the driver takes some of it."""
_GIB: Final = 1 << 30


class MigModel(NamedTuple):
    """The profiles of one size of some models."""

    models: tuple[str, ...]
    """A word or more of the models' names."""
    profiles: Mapping[str, int]
    """Profile -> instances of it that one GPU has room for; the smallest first, and the whole GPU
    last."""

    @property
    def slices(self) -> int:
        """Compute slices of the whole GPU."""
        return int([*self.profiles][-1].partition("g.")[0])

    @property
    def gigabytes(self) -> int:
        """Memory of the whole GPU, by the name of its profile. It is about the GiB."""
        return int([*self.profiles][-1].partition(".")[2].removesuffix("gb"))


def _sevenths(models: str, *names: str) -> MigModel:
    """Return the profiles of GPUs with seven compute and eight memory slices."""
    return MigModel(tuple(models.split(", ")), dict(zip(names, (7, 4, 3, 2, 1, 1), strict=True)))


_MODELS: Final = (
    MigModel(("A30",), {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1}),
    MigModel(("RTX PRO 6000",), {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1}),
    _sevenths("A100, A800", "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
    _sevenths(
        "A100, A800, H100, H800",
        *("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    ),
    _sevenths("H100, H800", "1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
    _sevenths("H100, H20, GH200", "1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),
    _sevenths("H200", "1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
    _sevenths("GH200", "1g.18gb", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb"),
    _sevenths("B200", "1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),
    _sevenths("GB200", "1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"),
    _sevenths("B300", "1g.34gb", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"),
    _sevenths("GB300", "1g.35gb", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb"),
)


def mig_model(model: str, memory: float) -> MigModel | None:
    """Return the profiles of a GPU; None if it has no MIG, or they are not known.

    Args:
        model: as an exporter or a node label names it.
        memory: bytes of the whole GPU.
    """
    gigabytes = memory / _GIB
    near = [row for row in _of(model) if abs(row.gigabytes - gigabytes) <= _NEAR * row.gigabytes]
    return min(near, key=lambda row: abs(row.gigabytes - gigabytes), default=None)


@lru_cache(maxsize=1024)
def compute_slices(model: str) -> int:
    """Return the compute slices of a whole GPU with MIG; those of most models if it is not
    known."""
    return next((row.slices for row in _of(model)), _USUAL)


def _of(model: str) -> Iterator[MigModel]:
    return (row for row in _MODELS if any(is_of(model, name) for name in row.models))

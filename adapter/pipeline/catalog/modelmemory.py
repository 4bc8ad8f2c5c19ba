"""The memory of GPU models, for a comparison with models that nobody has recorded.

Sources: the vendors' data sheets, and the smallest size of a model that has several. A driver shows
a little less than the named gibibytes, and more than as many gigabytes of 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.pipeline.catalog.modelnames import is_of

_GIGABYTES: Final[Mapping[str, int]] = {
    "T4": 16,
    "V100": 16,
    "A10": 24,
    "A10G": 24,
    "L4": 24,
    "A100": 40,
    "A100-SXM4-80GB": 80,
    "A100 80GB": 80,
    "L40S": 48,
    "H100": 80,
    "RTX PRO 6000": 96,
    "H200": 141,
    "B200": 180,
}
"""A word or more of NVIDIA's name of a model -> gigabytes."""
GIGABYTE: Final = 1e9
"""Bytes."""


def gigabytes_of(name: str) -> int | None:
    """Return the memory of a model in gigabytes; None if it is not known.

    Args:
        name: as a price list writes it; the longest name of the table that it contains decides.
    """
    names = [model for model in _GIGABYTES if is_of(name, model)]
    return _GIGABYTES[max(names, key=len)] if names else None

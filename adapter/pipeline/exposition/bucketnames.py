"""The series of classic histograms: a bucket's bound belongs to its series, not to its labels.

A page writes a histogram as one series ``NAME_bucket`` with a label ``le`` for each bound, and as
``NAME_sum`` and ``NAME_count``. As labels, the bounds would make a label set each, and those of
10,000 servers would fill the memory that is meant for the labels of parts. So the parser takes
``le`` out of the labels and writes it behind the name, as :func:`bucket_name` does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isnan
from typing import Final

_SUFFIX: Final = "_bucket"
_NAME: Final = re.compile(r'(.+_bucket)\{le="([^"]+)"\}')
BOUND: Final = re.compile(rb'(?:^|,)le="([^"\\]*)"')
"""A bound in the text of labels, with the comma before it."""
_LONGEST: Final = 40
"""Characters of a bound: a double needs 25."""
_NAMES: Final = 8192


@lru_cache(_NAMES)
def bucket_name(series: str, bound: str) -> str:
    """Return the name of a bucket; equal names are one object while they are in use.

    Args:
        series: ``NAME_bucket``.
        bound: the value of ``le``.

    Raises:
        ValueError: the bound is not a number.
    """
    if len(bound) > _LONGEST or isnan(float(bound)):
        raise ValueError(f"{bound[:_LONGEST]!r} is not a bound")
    return f'{series}{{le="{bound}"}}'


def bucket_of(name: str) -> tuple[str, str] | None:
    """Return the series of a bucket's name and its ``le``; None for the name of other series."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], match[2])


def may_be_bucket(series: str) -> bool:
    """Return whether a series may be that of a histogram's buckets."""
    return series.endswith(_SUFFIX)

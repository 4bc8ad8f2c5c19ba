"""A trial of another forecast: a conditional quantile of the HPA's own rises.

It is not part of the product. It shows what a forecast can gain that depends on the situation: how
large the service is, how near the edge of the HPA's tolerance, how steep, and at what time of day.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from load.nodepooltraces import DAY, STEP
from load.nodepoolworld import Moment, Physics

_LEAD: Final = math.ceil(Physics().boot / STEP) + 1
"""Minutes until the nodes of the next decision are up."""
_FEWEST: Final = 15
"""Minutes of history before it orders anything."""
_SLOPE: Final = 10
"""Minutes over which the slope is measured."""
_SIZE_WIDTH: Final = 0.35
_EDGE_WIDTH: Final = 0.08
_SLOPE_WIDTH: Final = 0.7
_TIME_WIDTH: Final = 60 * 60.0
"""Seconds."""
_TIME_WEIGHT: Final = 0.85
_HALF_LIFE: Final = 3.0 * DAY
_FLOOR: Final = 1e-6
"""Weight of a minute that is unlike the current one, so that a quantile always exists."""

_Array = NDArray[np.float64]


class Trial:
    """The policy with a quantile between 0 and 1."""

    def __init__(self, quantile: float, minutes: int) -> None:
        self._quantile = quantile
        self._replicas: _Array = np.zeros(minutes)
        self._rises: _Array = np.zeros(minutes)
        """In units of the square root of the replicas."""
        self._features: _Array = np.zeros((3, minutes))
        """Size, edge and slope, each in units of its width."""
        self._count = 0

    def headroom(self, seen: Moment) -> int:
        now = self._count
        replicas = seen.bound + seen.pending
        self._observe(now, replicas, seen.wanted)
        self._count += 1
        known = now - _LEAD + 1
        if known < _FEWEST:
            return 0
        weights = self._weights(now, known)
        rises = self._rises[:known]
        order = np.argsort(rises, kind="stable")
        sums = np.cumsum(weights[order])
        index = int(np.searchsorted(sums, self._quantile * sums[-1]))
        rise = float(rises[order[min(index, known - 1)]])
        return math.floor(rise * math.sqrt(replicas + 1) + 0.5)

    def _observe(self, now: int, replicas: int, wanted: int) -> None:
        self._replicas[now] = replicas
        unit = math.sqrt(replicas + 1)
        slope = replicas - self._replicas[max(0, now - _SLOPE)]
        self._features[:, now] = (
            math.log(replicas + 1) / _SIZE_WIDTH,
            math.log((wanted + 0.5) / (replicas + 0.5)) / _EDGE_WIDTH,
            slope / unit / _SLOPE_WIDTH,
        )
        first = now - _LEAD
        if first >= 0:
            before = self._replicas[first]
            rise = self._replicas[first + 1 : now + 1].max() - before
            self._rises[first] = max(0.0, rise) / math.sqrt(before + 1)

    def _weights(self, now: int, known: int) -> _Array:
        """How alike each earlier minute is to the current one."""
        apart = self._features[:, :known] - self._features[:, now, None]
        age = (now - np.arange(known)) * float(STEP)
        weights: _Array = np.exp(-0.5 * (apart**2).sum(axis=0)) * 0.5 ** (age / _HALF_LIFE)
        if age[0] >= DAY:
            clock = (age + DAY / 2) % DAY - DAY / 2
            alike = np.exp(-0.5 * (clock / _TIME_WIDTH) ** 2)
            weights *= 1 - _TIME_WEIGHT + _TIME_WEIGHT * alike
        return weights + _FLOOR

"""Simulated requests: arrival times and work, from a load profile and a seed.

All times are seconds of the simulation. Work is measured in GPU-seconds: the time that one whole
device (or MIG instance) needs for the request when it does nothing else.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_MOOD_MEMORY = 0.97
"""Share of the level's deviation that remains after a second: deviations last half a minute."""
_MOOD_NOISE = 0.03
_WORK_SHAPE = 4.0
"""Shape of the gamma distribution of work: the standard deviation is half of the mean."""


class LoadPoint(NamedTuple):
    """A corner of a load profile."""

    at: float
    """Seconds from the profile's start."""
    rate: float
    """Requests per second."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A mean arrival rate that is linear between its corners and starts again at the end."""

    points: tuple[LoadPoint, ...]
    """In order of time; the first at 0, the last at the profile's end."""

    @classmethod
    def of(cls, *points: tuple[float, float]) -> Profile:
        """Return the profile with these corners: seconds and requests per second."""
        return cls(tuple(map(LoadPoint._make, points)))

    @property
    def length(self) -> float:
        """Seconds until the profile repeats."""
        return self.points[-1].at

    def rate(self, now: float) -> float:
        """Mean requests per second at ``now``; before 0 the first corner's."""
        if now <= 0:
            return self.points[0].rate
        moment = now % self.length
        for before, after in zip(self.points, self.points[1:], strict=False):
            if moment <= after.at:
                share = (moment - before.at) / (after.at - before.at)
                return before.rate + share * (after.rate - before.rate)
        return self.points[-1].rate


@dataclass(slots=True, eq=False)
class DemoRequest:
    """A request in a service."""

    arrived: float
    """Arrival time; work on it cannot start earlier."""
    left: float
    """GPU-seconds still to be done."""
    begun: bool = False
    """Whether it has had its first token."""


class Arrivals:
    """Draws the requests of one service: Poisson around a profile whose level varies."""

    def __init__(self, profile: Profile, mean_work: float, rng: random.Random) -> None:
        self._profile = profile
        self._mean_work = mean_work
        self._rng = rng
        self._mood = 0.0

    def draw(self, now: float, seconds: float) -> Sequence[DemoRequest]:
        """Return the requests of ``[now, now + seconds)`` in order of arrival."""
        memory = _MOOD_MEMORY**seconds
        noise = _MOOD_NOISE * math.sqrt(seconds)
        self._mood = memory * self._mood + self._rng.gauss(0.0, noise)
        rate = self._profile.rate(now) * math.exp(self._mood)
        requests: list[DemoRequest] = []
        if rate <= 0:
            return requests
        arrival = now + self._rng.expovariate(rate)
        while arrival < now + seconds:
            work = self._rng.gammavariate(_WORK_SHAPE, self._mean_work / _WORK_SHAPE)
            requests.append(DemoRequest(arrival, work))
            arrival += self._rng.expovariate(rate)
        return requests

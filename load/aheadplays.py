"""Made-up services for the choice of settings, with fixed seeds: daily, weekly, bursty and flat.

Requests arrive at a rate that is the service's, each is in progress for some minutes, and each
keeps the same part of a GPU busy. So the noise is that of independent requests.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Final

from research.traces import DAY, STEP, Part, Trace

_DAYS: Final = 9
_JUDGED: Final = range(6, 9)
"""Sunday to Tuesday of the second week: a rise after a weekend, and one after a weekday."""
_MONDAY: Final = 20_001.0 * DAY - 2 * DAY
_PERCENT: Final = 7.0
"""Of one GPU, for one request in progress."""
_STAY: Final = 2.0
"""Minutes for which a request is in progress, in the mean."""

_Rate = Callable[[float, random.Random], float]
"""Hours since the first midnight -> requests in progress, in the mean."""


def _office(hours: float, share_of_weekend: float = 1.0) -> float:
    """Requests in progress of a service whose users work from nine to six."""
    day, hour = divmod(hours, 24)
    busy = 1 / (1 + math.exp(-2.5 * (hour - 9))) - 1 / (1 + math.exp(-2.5 * (hour - 18)))
    return 15 + 100 * busy * (share_of_weekend if day % 7 >= 5 else 1.0)


def _at_nine(hours: float, _: random.Random) -> float:
    return 100.0 if 9 <= hours % 24 < 10 else 30.0


def _hourly(hours: float, _: random.Random) -> float:
    return 90.0 if hours % 1 < 0.25 else 30.0


def _once(hours: float, _: random.Random) -> float:
    return 100.0 if 24 * 7 + 11 <= hours < 24 * 7 + 12 else 30.0


SERVICES: Final[dict[str, _Rate]] = {
    "daily": lambda hours, _: _office(hours),
    "weekly": lambda hours, _: _office(hours, 0.1),
    "burst at nine": _at_nine,
    "burst each hour": _hourly,
    "noise": lambda hours, _: 60.0,
    "one burst": _once,
}
RECURS: Final = frozenset(("daily", "weekly", "burst at nine", "burst each hour"))
"""The services whose load comes again. The others are for false rises."""


def panel(seed: int = 1) -> tuple[Trace, ...]:
    """Return all services, and one without any change."""
    traces = [_trace(name, tuple(_work(rate, seed))) for name, rate in SERVICES.items()]
    traces.append(_trace("random bursts", tuple(_work(_random_bursts(seed), seed))))
    traces.append(_trace("flat", (420.0,) * (_DAYS * DAY // STEP)))
    return tuple(traces)


def _random_bursts(seed: int) -> _Rate:
    draw = random.Random(seed)
    begins = [draw.uniform(0, 24 * _DAYS) for _ in range(4 * _DAYS)]
    return lambda hours, _: 90.0 if any(0 <= hours - begin < 0.4 for begin in begins) else 30.0


def _trace(name: str, work: tuple[float, ...]) -> Trace:
    minutes = DAY // STEP
    part = Part(name, True, _JUDGED.start * minutes, _JUDGED.stop * minutes)
    return Trace(name, work, True, _MONDAY, (part,))


def _work(rate: _Rate, seed: int) -> Iterator[float]:
    draw = random.Random(seed)
    leaves = 1 - math.exp(-1 / _STAY)
    going = round(rate(0.0, draw))
    for minute in range(_DAYS * DAY // STEP):
        yield going * _PERCENT
        stay = sum(draw.random() >= leaves for _ in range(going))
        going = stay + _poisson(rate(minute / 60, draw) * leaves, draw)


def _poisson(mean: float, draw: random.Random) -> int:
    total, count = draw.expovariate(1.0), 0
    while total < mean:
        total += draw.expovariate(1.0)
        count += 1
    return count

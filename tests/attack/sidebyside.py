"""Compare answers without and with an attack, in turn within the same minute.

A loaded machine is slow with and without the attack. So the attack is let loose and called off
again and again, each time with a few answers before and within it, and only ratios are judged.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from statistics import median
from typing import NamedTuple

ROUNDS = 6
ANSWERS = 10
"""In each half of a round."""
_PATIENCE = 60.0
"""Seconds until an attack has begun, or has ended."""


class Turn(NamedTuple):
    """What an attacker gets."""

    number: int
    """Its own."""
    begun: threading.Event
    """It sets it when it has the beginning of an answer."""
    off: threading.Event
    """It ends when this is set."""


Strike = Callable[[Turn], str]
"""Attacks once; returns the status of the answer."""


class Crowd:
    """Threads that attack while they are let loose."""

    def __init__(self, count: int, strike: Strike) -> None:
        self.seen = Counter[str]()
        """Statuses of the answers."""
        self._count, self._strike = count, strike
        self._lock = threading.Lock()

    @contextmanager
    def loose(self) -> Iterator[None]:
        """Attack while the block runs: each attacker has begun before, and has ended after it."""
        off = threading.Event()
        turns = [Turn(number, threading.Event(), off) for number in range(self._count)]
        threads = [
            threading.Thread(target=self._attack, args=(turn,), daemon=True) for turn in turns
        ]
        for thread in threads:
            thread.start()
        try:
            for turn in turns:
                assert turn.begun.wait(_PATIENCE), f"the attack never began: {dict(self.seen)}"
            yield
        finally:
            off.set()
            for thread in threads:
                thread.join(_PATIENCE)

    def _attack(self, turn: Turn) -> None:
        while not turn.off.is_set():
            status = self._strike(turn)
            turn.begun.set()
            with self._lock:
                self.seen[status] += 1


class Compared(NamedTuple):
    """Seconds that answers took: one list for each round."""

    alone: list[list[float]]
    beside: list[list[float]]

    @property
    def ratio(self) -> float:
        """How many times as long as alone an answer took beside the attack."""
        return self._ratio(median)

    @property
    def worst_ratio(self) -> float:
        """The same for the slowest answer of a round. One is slow at times without an attack."""
        return self._ratio(max)

    def _ratio(self, of: Callable[[list[float]], float]) -> float:
        rounds = zip(self.alone, self.beside, strict=True)
        return median(of(beside) / of(alone) for alone, beside in rounds)

    def __str__(self) -> str:
        """Return the medians, and the ratios."""
        times = (median(chain.from_iterable(half)) for half in self)
        text = " and ".join(f"{1000 * seconds:.0f} ms" for seconds in times)
        return f"{text}; ratios {self.ratio:.2f} and {self.worst_ratio:.2f}"


def compare(crowd: Crowd, ask: Callable[[], None]) -> Compared:
    """Time ``ask`` without and with the attack."""
    compared = Compared([], [])
    for _ in range(ROUNDS):
        compared.alone.append([_seconds(ask) for _ in range(ANSWERS)])
        with crowd.loose():
            compared.beside.append([_seconds(ask) for _ in range(ANSWERS)])
    return compared


def _seconds(ask: Callable[[], None]) -> float:
    started = time.monotonic()
    ask()
    seconds = time.monotonic() - started
    time.sleep(0.05)
    return seconds

"""A simulated service behind a gateway: one queue, and replicas that each take a few requests.

The gateway holds requests that no replica has room for, so a new replica shortens the queue at
once. A replica works on one request after the other. The share of time that it works is its GPU's
utilisation, so more replicas under the same load are less busy.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from adapter.demo.load import DemoRequest

_DEPTH = 4
"""Requests that a replica holds at once, the one in progress included."""
_DONE = 1e-9
"""GPU-seconds below which a request is done (sums of floats do not end at exactly 0)."""


@dataclass(slots=True, eq=False)
class _Replica:
    requests: deque[DemoRequest] = field(default_factory=deque)

    @property
    def work(self) -> float:
        return sum(request.left for request in self.requests)


@dataclass(slots=True)
class Totals:
    """Counts of a service since its start."""

    arrived: int = 0
    served: int = 0
    peak_queue: int = 0
    seconds: float = 0.0
    """Sum of the times from arrival to answer of the served requests."""

    @property
    def mean_seconds(self) -> float | None:
        """Mean time from arrival to answer, or None."""
        return self.seconds / self.served if self.served else None


class DemoService:
    """The queueing model of one service."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._waiting: deque[DemoRequest] = deque()
        self._replicas: dict[str, _Replica] = {}
        self.totals = Totals()
        self.latencies: deque[float] = deque(maxlen=400)
        """Seconds from arrival to answer of the latest requests."""

    @property
    def queue(self) -> int:
        """Requests that no replica has room for."""
        return len(self._waiting)

    @property
    def latency(self) -> float | None:
        """Seconds within which 95 % of the latest requests were served, or None."""
        latencies = sorted(self.latencies)
        return latencies[math.ceil(0.95 * len(latencies)) - 1] if latencies else None

    def held(self, replica: str) -> tuple[int, int]:
        """Return the requests of a replica: in progress, and waiting in its own queue."""
        found = self._replicas.get(replica)
        count = len(found.requests) if found else 0
        return min(1, count), max(0, count - 1)

    def join(self, replica: str) -> None:
        """Add a ready replica."""
        self._replicas[replica] = _Replica()

    def leave(self, replica: str) -> None:
        """Remove a replica. Its requests return to the head of the queue."""
        left = self._replicas.pop(replica, None)
        if left:
            self._waiting.extendleft(reversed(left.requests))

    def step(
        self, now: float, seconds: float, arrivals: Iterable[DemoRequest]
    ) -> Mapping[str, float]:
        """Advance by one step. Return each replica's busy share of it, 0 to 1.

        ``arrivals`` lie inside the step, in order.
        """
        for request in arrivals:
            self._waiting.append(request)
            self.totals.arrived += 1
        self._dispatch()
        busy = {
            name: self._work(replica, now, seconds) / seconds
            for name, replica in self._replicas.items()
        }
        self.totals.peak_queue = max(self.totals.peak_queue, self.queue)
        return busy

    def _dispatch(self) -> None:
        """Give waiting requests to the least loaded replicas with room."""
        order = list(self._replicas.values())
        self._rng.shuffle(order)
        laden = [(replica.work, replica) for replica in order if len(replica.requests) < _DEPTH]
        while self._waiting and laden:
            place = min(range(len(laden)), key=lambda index: laden[index][0])
            work, replica = laden[place]
            request = self._waiting.popleft()
            replica.requests.append(request)
            if len(replica.requests) < _DEPTH:
                laden[place] = (work + request.left, replica)
            else:
                del laden[place]

    def _work(self, replica: _Replica, now: float, seconds: float) -> float:
        """Return the seconds of the step in which the replica is busy."""
        clock, end, busy = now, now + seconds, 0.0
        while replica.requests:
            request = replica.requests[0]
            start = max(clock, request.arrived)
            spent = min(request.left, end - start)
            if spent <= 0:
                break
            request.left -= spent
            busy += spent
            clock = start + spent
            if request.left > _DONE:
                break
            replica.requests.popleft()
            self.totals.served += 1
            self.latencies.append(clock - request.arrived)
            self.totals.seconds += clock - request.arrived
        return min(busy, seconds)

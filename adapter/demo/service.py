"""A simulated service behind a gateway: one queue, and replicas that each take a few requests.

The gateway holds requests that no replica has room for, so a new replica shortens the queue at
once. A replica works on one request after the other. The share of time that it works is its GPU's
utilisation, so more replicas under the same load are less busy. A request's first token comes when
the work on it begins.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.demo.load import DemoRequest

DEPTH: Final = 4
"""Requests that a replica holds at once, the one in progress included."""
FIRST_BOUNDS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
"""Seconds: bounds of the histogram of the time to the first token. vLLM has these and others."""
_DONE = 1e-9
"""GPU-seconds below which a request is done (sums of floats do not end at exactly 0)."""


class ReplicaPage(NamedTuple):
    """What a replica's server counts. All but the first two only grow."""

    running: int
    waiting: int
    worked: float
    """GPU-seconds."""
    ended: int
    """Requests."""
    first: tuple[int, ...]
    """Requests by the time to their first token: for each of :data:`FIRST_BOUNDS`, and above."""


@dataclass(slots=True, eq=False)
class _Replica:
    requests: deque[DemoRequest] = field(default_factory=deque)
    worked: float = 0.0
    ended: int = 0
    first: list[int] = field(default_factory=lambda: [0] * (len(FIRST_BOUNDS) + 1))

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
    begun: int = 0
    """Requests that had their first token."""
    late: int = 0
    """Those of ``begun`` that had it after the promised time."""


class DemoService:
    """The queueing model of one service.

    Args:
        rng: chooses among replicas that are equally loaded.
        promised: seconds to the first token after which a request counts as late.
        depth: requests that a replica holds at once; None if no gateway holds any back.
    """

    def __init__(
        self, rng: random.Random, promised: float = math.inf, depth: int | None = DEPTH
    ) -> None:
        self._rng = rng
        self._promised = promised
        self._depth = math.inf if depth is None else depth
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
    def waiting(self) -> int:
        """Requests on which no work has begun, those in the replicas' queues included."""
        held = sum(len(replica.requests) for replica in self._replicas.values())
        begun = sum(bool(replica.requests) for replica in self._replicas.values())
        return self.queue + held - begun

    @property
    def latency(self) -> float | None:
        """Seconds within which 95 % of the latest requests were served, or None."""
        latencies = sorted(self.latencies)
        return latencies[math.ceil(0.95 * len(latencies)) - 1] if latencies else None

    def held_requests(self, replica: str) -> tuple[int, int]:
        """Return the requests of a replica: in progress, and waiting in its own queue."""
        return self.page(replica)[:2]

    def page(self, replica: str) -> ReplicaPage:
        """Return what a replica's server counts; all 0 before it is ready."""
        server = self._replicas.get(replica) or _Replica()
        count = len(server.requests)
        return ReplicaPage(
            min(1, count), max(0, count - 1), server.worked, server.ended, tuple(server.first)
        )

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
        laden = [
            (replica.work, replica) for replica in order if len(replica.requests) < self._depth
        ]
        while self._waiting and laden:
            place = min(range(len(laden)), key=lambda index: laden[index][0])
            work, replica = laden[place]
            request = self._waiting.popleft()
            replica.requests.append(request)
            if len(replica.requests) < self._depth:
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
            if not request.begun:
                self._begin(replica, request, start - request.arrived)
            request.left -= spent
            busy += spent
            clock = start + spent
            if request.left > _DONE:
                break
            replica.requests.popleft()
            replica.ended += 1
            self.totals.served += 1
            self.latencies.append(clock - request.arrived)
            self.totals.seconds += clock - request.arrived
        busy = min(busy, seconds)
        replica.worked += busy
        return busy

    def _begin(self, replica: _Replica, request: DemoRequest, waited: float) -> None:
        request.begun = True
        replica.first[bisect_left(FIRST_BOUNDS, waited)] += 1
        self.totals.begun += 1
        self.totals.late += waited > self._promised

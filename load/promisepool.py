"""A pool of simulated servers behind an HPA: requests, replicas that start, and a policy."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol

from adapter.hpa import HpaState, Missing, Observation, PodState, Values, decide, from_manifest
from adapter.pipeline.catalog.increases import Increase, increase_between
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow
from load.promiseserver import (
    TPOT_BOUNDS,
    TTFT_BOUNDS,
    Model,
    Page,
    Request,
    Served,
    Server,
)

TICK: Final = 15
"""Seconds between two scrapes, and between two syncs of the HPA."""
WINDOW: Final = 60
"""Seconds over which latencies are counted."""
MOST: Final = 40
"""maxReplicas: more than any play needs."""
UNCOUNTED: Final = 900.0
"""Seconds at the beginning that do not count: nothing is known yet."""
_SEED: Final = 7


class Play(NamedTuple):
    """What all policies get."""

    name: str
    model: Model
    requests: Sequence[Request]
    """In the order of their arrival."""
    start: float
    """Seconds from the order of a replica until it takes requests."""
    begin: int
    """Replicas at the beginning."""
    capacity: float
    """Seconds of work that a replica does in a second and just keeps the promise: only the oracle
    knows it."""
    held_out: bool = False
    """Nothing was chosen by its results."""


class PodView:
    """What a policy sees of a ready pod."""

    def __init__(self, name: str, pages: Sequence[tuple[float, Page]]) -> None:
        self.name = name
        self._pages = pages
        self.page, self.before = pages[-1][1], pages[-2][1]

    @cached_property
    def window(self) -> RequestWindow:
        """Return what the adapter makes of the last pages."""
        (begin, first), (now, page) = self._pages[0], self._pages[-1]
        seconds = now - begin
        return RequestWindow(
            time=now,
            latencies={
                Latency.FIRST_TOKEN: self._increase("first", TTFT_BOUNDS),
                Latency.OUTPUT_TOKEN: self._increase("each", TPOT_BOUNDS),
            },
            output_tokens=(page.answered - first.answered) / seconds,
            requests=(page.ended - first.ended) / seconds,
            running=page.running,
            waiting=page.waiting,
            cache=100 * page.cache,
        )

    def _increase(self, histogram: str, bounds: Sequence[float]) -> Increase:
        ends = (self._pages[0], self._pages[-1])
        rows = [(taken, tuple(accumulate(getattr(page, histogram))), None) for taken, page in ends]
        return increase_between(rows, bounds)


class Policy(Protocol):
    """Which metrics an HPA scales by."""

    manifest: Mapping[str, Any]
    """Of the HPA."""

    def values(self, pods: Sequence[PodView], replicas: int, now: float) -> Sequence[Values]:
        """Return one value for each metric of the HPA."""


class Outcome(NamedTuple):
    """What a play came to."""

    gpu_hours: float
    """From the order of a replica until its last request has ended."""
    missed: float
    """Percent of the requests that were slower than the promise."""
    replicas: tuple[int, ...]
    """By tick."""


class Limits(NamedTuple):
    """What a request may take."""

    first: float
    each: float


class _Pod:
    def __init__(self, name: str, server: Server, ordered: float) -> None:
        self.name, self.server, self.ordered = name, server, ordered
        self.removed = 0.0
        self.pages: list[tuple[float, Page]] = []

    def scrape(self, now: float) -> PodView | None:
        self.server.advance(now)
        self.pages.append((now, self.server.page()))
        del self.pages[: -WINDOW // TICK - 1]
        if len(self.pages) == 1:
            return None
        return PodView(self.name, tuple(self.pages))


def play(what: Play, policy: Policy, limits: Limits) -> Outcome:
    """Let all requests come. The same play and policy give the same outcome."""
    pool = _Pool(what)
    spec, state = from_manifest(policy.manifest), HpaState()
    replicas: list[int] = []
    following, now = 0, 0.0
    end = what.requests[-1].at
    while now < end:
        now += TICK
        while following < len(what.requests) and what.requests[following].at <= now:
            pool.route(what.requests[following])
            following += 1
        views = pool.scrape(now)
        values = policy.values(views, pool.size, now)
        observation = Observation(
            pool.size, pool.states(now), tuple(value or _NONE for value in values)
        )
        decision, state = decide(spec, state, observation, now)
        pool.resize(decision.desired, now)
        replicas.append(pool.size)
    return pool.outcome(end, limits, tuple(replicas))


_NONE: Final = Missing("no pod has a value")


class _Pool:
    def __init__(self, what: Play) -> None:
        self._what = what
        self._draw = random.Random(_SEED)
        self._served: list[Served] = []
        self._names = 0
        self._pods: list[_Pod] = []
        self._gone: list[_Pod] = []
        for _ in range(what.begin):
            self._order(0.0, 0.0)

    @property
    def size(self) -> int:
        return len(self._pods)

    def _order(self, now: float, start: float) -> None:
        self._names += 1
        server = Server(self._what.model, now + start, self._served)
        self._pods.append(_Pod(f"pod-{self._names}", server, now))

    def route(self, request: Request) -> None:
        """Send a request to the less loaded of two servers, as endpoint pickers do."""
        ready = [pod for pod in self._pods if pod.server.ready <= request.at]
        chosen = ready if len(ready) < 3 else self._draw.sample(ready, 2)
        for pod in chosen:
            pod.server.advance(request.at)
        min(chosen, key=lambda pod: pod.server.load).server.add(request)

    def scrape(self, now: float) -> list[PodView]:
        for pod in self._gone:
            pod.server.advance(now)
        views = [pod.scrape(now) for pod in self._pods if pod.server.ready <= now]
        return [view for view in views if view is not None]

    def states(self, now: float) -> list[PodState]:
        return [PodState(pod.name, ready=pod.server.ready <= now) for pod in self._pods]

    def resize(self, wanted: int, now: float) -> None:
        for _ in range(wanted - len(self._pods)):
            self._order(now, self._what.start)
        for _ in range(len(self._pods) - wanted):
            # A ReplicaSet removes pods that are not ready first, then the newest.
            pod = self._pods.pop()
            pod.removed = now
            self._gone.append(pod)

    def outcome(self, end: float, limits: Limits, replicas: tuple[int, ...]) -> Outcome:
        seconds = sum(max(0.0, end - max(pod.ordered, UNCOUNTED)) for pod in self._pods)
        for pod in (*self._pods, *self._gone):
            pod.server.advance(math.inf if pod.server.load else 0.0)
        for pod in self._gone:
            seconds += max(0.0, max(pod.removed, pod.server.last) - max(pod.ordered, UNCOUNTED))
        counted = [served for served in self._served if served.at >= UNCOUNTED]
        late = sum(served.first > limits.first or served.each > limits.each for served in counted)
        hours = seconds * self._what.model.gpus / 3600
        return Outcome(hours, 100 * late / len(counted), replicas)

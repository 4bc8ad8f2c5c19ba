"""The load at which a workload just keeps its promise, learned from its own pods.

Each pod's window is a pair: its load (requests that run or wait) and how many of its requests were
slower than promised. The pairs are collected by load, in steps of a quarter. The share of late
requests cannot fall as the load grows, so steps that say so are pooled (isotonic regression). The
capacity is the load at which the share passes what the promise tolerates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from adapter.pipeline.catalog.promise import Promise
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow

STEP: Final = 1.25
"""Ratio of two neighbouring loads that are kept apart."""
HALF_LIFE: Final = 7200.0
"""Seconds in which what was learned loses half of its weight."""
ENOUGH: Final = 100.0
"""Requests without which there is no capacity."""
BEYOND: Final = 1.25
"""How far above the highest load with evidence a capacity may be."""
LINEAR: Final = 2.0
"""The same where the time between tokens says how it goes on, in
:meth:`LearnedCapacity._linear_room`."""
FULL: Final = 80.0
"""Percent of the KV cache to which a batch may grow by an estimate."""
RECENT: Final = 60.0
"""Seconds over which the growth of a load is measured."""
_STRONG: Final = 20.0
"""Requests from which on a step of the load counts as seen."""
TOP: Final = 64
"""Steps that are kept: up to a load of a million."""


class PodCapacity(NamedTuple):
    """What one pod can take, and how well it is known."""

    load: float
    """Requests that run or wait."""
    tokens: float | None
    """Tokens of answers per second at that load; None if the server does not count them."""
    requests: float
    """The evidence: requests behind it, those longer ago counting less."""
    seen: bool
    """Whether the promise was seen to break there. Otherwise it is an estimate above the highest
    load that was seen, and at most :data:`BEYOND` times it."""


Count = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class StepCounts(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What was counted at loads of one step; what is longer ago counts less."""

    counts: list[Count] = []
    """Values of the histogram of each bound of the promise: requests, or tokens."""
    late: list[Count] = []
    """Those of them that are later than promised, by bound."""
    quantiles: list[Count] = []
    """Seconds of the promised quantile, times values, by bound."""
    cache: Count = 0.0
    """Sum of the windows' percent of the KV cache."""
    cached: Count = 0.0
    """Windows with such a percentage."""
    tokens: Count = 0.0
    """Sum of the windows' tokens per second."""
    windows: Count = 0.0
    counted: Count = 0.0
    """Windows with a number of tokens."""

    @classmethod
    def of(cls, bounds: int) -> StepCounts:
        """Return counts of nothing, for so many bounds."""
        return cls([0.0] * bounds, [0.0] * bounds, [0.0] * bounds)

    @property
    def requests(self) -> float:
        """The evidence: requests, unless each of the promised histograms counts tokens."""
        return min(self.counts, default=0.0)

    def share(self, index: int) -> tuple[float, float]:
        """Return the late values of a bound, and all of them."""
        return self.late[index], self.counts[index]

    def each(self, change: Callable[[float], float]) -> StepCounts:
        """Return the counts, each changed alike."""
        changed: dict[str, Any] = {
            name: [change(count) for count in value] if isinstance(value, list) else change(value)
            for name, value in msgspec.structs.asdict(self).items()
        }
        return StepCounts(**changed)


@dataclass(slots=True)
class _Pod:
    loads: list[float]
    until: float
    """End of the last window that was learned."""
    recent: list[tuple[float, float]]
    """Times and loads of the last :data:`RECENT` seconds."""


class LearnedCapacity:
    """What is known of one workload on one type of GPU, for one promise.

    Args:
        promise: what is to be kept.
        half_life: seconds in which what was learned loses half of its weight.
    """

    def __init__(self, promise: Promise, half_life: float = HALF_LIFE) -> None:
        self.promise = promise
        self._half_life = half_life
        self._steps: dict[int, StepCounts] = {}
        self._pods: dict[str, _Pod] = {}
        self._time = 0.0

    def observe(self, pod: str, window: RequestWindow) -> None:
        """Take a pod's newest window. Windows that overlap count once, and the same one nothing."""
        load = load_of(window)
        increases = [window.latencies.get(bound.latency) for bound in self.promise]
        if load is None or any(increase is None for increase in increases):
            return
        start = max(increase.start for increase in increases if increase is not None)
        past = self._pods.setdefault(pod, _Pod([], start, []))
        if past.recent and window.time <= past.recent[-1][0]:
            if window.time > past.recent[-1][0] - RECENT:
                return  # a question that began earlier ended later
            # The clock was set back: what was noted after the new time would never end.
            past = self._pods[pod] = _Pod([], start, [])
        past.loads.append(load)
        past.recent.append((window.time, load))
        while past.recent[0][0] < window.time - RECENT:
            del past.recent[0]
        if start < past.until:
            return
        mean = sum(past.loads) / len(past.loads)
        past.loads, past.until = [], window.time
        self._learn(mean, window)

    def growth(self, pod: str) -> float:
        """Return by how many requests per second the load of a pod grows; 0 if nobody knows."""
        past = self._pods.get(pod)
        if past is None or len(past.recent) < 2:
            return 0.0
        (before, less), (now, more) = past.recent[0], past.recent[-1]
        return (more - less) / (now - before)

    def forget_pods(self, before: float) -> None:
        """Drop what is kept for pods without a window since a time; what they taught stays.

        A pod that only misses an answer is kept: its next window overlaps its last one.
        """
        self._pods = {pod: past for pod, past in self._pods.items() if past.recent[-1][0] >= before}

    @property
    def evidence(self) -> float:
        """The number of requests behind what is known, those longer ago counting less."""
        return sum(step.requests for step in self._steps.values())

    def recall(self, steps: Mapping[int, StepCounts], time: float) -> None:
        """Take what another process has learned instead of the own counts.

        Args:
            steps: by place (:func:`middle`).
            time: epoch seconds at which they have their weight.
        """
        self._steps = {place: step.each(float) for place, step in steps.items()}
        self._time = time

    def steps(self) -> tuple[float, Mapping[int, StepCounts]]:
        """Return a copy of the counts, and the epoch seconds at which they have their weight."""
        return self._time, {place: step.each(float) for place, step in self._steps.items()}

    def _learn(self, load: float, window: RequestWindow) -> None:
        if load <= 0:
            return
        self._fade(window.time)
        place = math.floor(math.log(min(max(1.0, load), middle(TOP)), STEP))
        step = self._steps.setdefault(place, StepCounts.of(len(self.promise)))
        for index, bound in enumerate(self.promise):
            increase = window.latencies[bound.latency]
            quantile = increase.quantile(bound.share)
            if quantile is not None:
                step.counts[index] += increase.count
                step.late[index] += increase.over(bound.seconds) or 0.0
                step.quantiles[index] += quantile.value * increase.count
        step.windows += 1
        if window.cache is not None:
            step.cache += window.cache
            step.cached += 1
        if window.output_tokens is not None:
            step.tokens += window.output_tokens
            step.counted += 1

    def _fade(self, now: float) -> None:
        if now <= self._time:
            return
        factor = 0.5 ** ((now - self._time) / self._half_life) if self._time else 1.0
        self._time = now
        self._steps = {
            place: step.each(lambda count: count * factor) for place, step in self._steps.items()
        }

    def capacity(self) -> PodCapacity | None:
        """Return the capacity; None without evidence, or if no load keeps the promise."""
        places = sorted(place for place, step in self._steps.items() if step.requests >= _STRONG)
        total = sum(self._steps[place].requests for place in places)
        if total < ENOUGH:
            return None
        crossings = [self._crossing_load(places, index) for index in range(len(self.promise))]
        known_loads = [crossing for crossing in crossings if crossing is not None]
        top = middle(places[-1])
        load = min(known_loads, default=self._room_above(places) * top)
        if load < 1.0:
            return None
        return PodCapacity(load, self._tokens_at(places, load), total, bool(known_loads))

    def _crossing_load(self, places: Sequence[int], index: int) -> float | None:
        """Return the load at which the share of late requests passes the tolerance."""
        steps = [self._steps[place] for place in places]
        shares = pool_shares([step.share(index) for step in steps])
        tolerance = self.promise[index].tolerance
        for position, share in enumerate(shares):
            if share <= tolerance:
                continue
            if position == 0:
                # Only if the lowest load is that of one request can no load keep the promise.
                return middle(places[0]) * tolerance / share
            low, high = math.log(middle(places[position - 1])), math.log(middle(places[position]))
            part = (tolerance - shares[position - 1]) / (share - shares[position - 1])
            return math.exp(low + part * (high - low))
        return None

    def _room_above(self, places: Sequence[int]) -> float:
        """Return how far above the highest load nobody has seen the promise break."""
        room = BEYOND
        for index, bound in enumerate(self.promise):
            steps = [self._steps[place] for place in places]
            share = pool_shares([step.share(index) for step in steps])[-1]
            # Near the capacity, late requests multiply much faster than the load does.
            room = min(room, (bound.tolerance / share) ** (1 / 3) if share else room)
        if room < BEYOND:
            return max(1.0, room)
        return max(room, self._linear_room(self._steps[places[-1]]))

    def _linear_room(self, step: StepCounts) -> float:
        """Return how far above a load the time between tokens is still kept, at most LINEAR; 1 if
        nobody knows.

        It grows linearly with the batch in all published tables (load/README.md#promises), and the
        line through the origin is above it. The KV cache limits the batch, and behind that limit
        requests queue.
        """
        bounds = [
            (bound.seconds, step.quantiles[index] / step.counts[index])
            for index, bound in enumerate(self.promise)
            if bound.latency is Latency.OUTPUT_TOKEN
        ]
        if not bounds or not step.cached or not all(seconds for _, seconds in bounds):
            return 1.0
        room = min(promised / seconds for promised, seconds in bounds)
        return min(LINEAR, room, FULL / max(1.0, step.cache / step.cached))

    def _tokens_at(self, places: Sequence[int], load: float) -> float | None:
        """Return tokens per second at a load: between two steps the line between them."""
        points = [
            (middle(place), self._steps[place].tokens / self._steps[place].counted)
            for place in places
            if self._steps[place].counted
        ]
        if not points:
            return None
        below = [point for point in points if point[0] <= load]
        above = [point for point in points if point[0] > load]
        if not below:
            return above[0][1] * load / above[0][0]
        if not above:
            # Beyond what was seen, a batch gains less and less.
            return below[-1][1] * math.sqrt(load / below[-1][0])
        (low, few), (high, many) = below[-1], above[0]
        return few + max(0.0, many - few) * (load - low) / (high - low)


def load_of(window: RequestWindow) -> float | None:
    """Return requests that run or wait; None if the page shows neither."""
    shown = [count for count in (window.running, window.waiting) if count is not None]
    return sum(shown) if shown else None


def middle(place: int) -> float:
    """Return the load in the middle of a step."""
    return math.pow(STEP, place + 0.5)


def pool_shares(counts: Sequence[tuple[float, float]]) -> list[float]:
    """Return shares that do not fall, from parts and wholes (pool adjacent violators)."""
    blocks: list[list[float]] = []
    for part, whole in counts:
        blocks.append([part, whole, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [part / whole for part, whole, count in blocks for _ in range(int(count))]

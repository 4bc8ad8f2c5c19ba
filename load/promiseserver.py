"""A simulated model server with continuous batching: what it does to requests, and what it reports.

A step decodes one token of every running request. It lasts a fixed time (the weights are read),
and a little for each request and each token in the KV cache. Requests that are admitted in a step
prolong it by the time of their prompts: that is how prefill delays decoding. A request is admitted
when the batch has a place and the KV cache has room for its prompt and its answer. vLLM admits
with less room and preempts later; the limit is the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from heapq import heappop, heappush
from typing import Final, NamedTuple

TTFT_BOUNDS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TPOT_BOUNDS: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
"""Bounds of vLLM's histograms (``vllm/v1/metrics/loggers.py``), in seconds."""
BUDGET: Final = 8192
"""Prompt tokens of one step: vLLM's ``max_num_batched_tokens`` on a large GPU."""
MOST_RUNNING: Final = 256
"""vLLM's ``max_num_seqs``."""


class Model(NamedTuple):
    """A model on its GPUs, by what a step takes."""

    name: str
    gpus: int
    """Of one replica."""
    step: float
    """Seconds of a step with one short request."""
    per_request: float
    """Seconds that each running request adds to a step."""
    per_cached: float
    """Seconds that each token in the KV cache adds to a step."""
    per_prompt: float
    """Seconds that each token of an admitted prompt adds to a step."""
    cache: int
    """Tokens for which the KV cache has room."""


class Request(NamedTuple):
    """One request of a trace."""

    at: float
    """Seconds since the beginning of the trace."""
    prompt: int
    answer: int
    """Both in tokens."""


class Served(NamedTuple):
    """What a client saw."""

    at: float
    first: float
    """Seconds to the first token."""
    each: float
    """Mean seconds between two tokens; 0 for an answer of one token."""


class Page(NamedTuple):
    """What the server's page says at a scrape. Counters and buckets only grow."""

    running: int
    waiting: int
    cache: float
    """Share of the KV cache in use."""
    busy: float
    """Seconds in which a kernel ran, since the start."""
    answered: float
    """Tokens of answers since the start."""
    ended: int
    """Requests since the start."""
    first: tuple[int, ...]
    each: tuple[int, ...]
    """Requests by bucket (not cumulative), the last one above all bounds."""


class Server:
    """One replica. Its time goes on when it is asked to."""

    def __init__(self, model: Model, ready: float, served: list[Served]) -> None:
        self.model = model
        self.ready = ready
        """When it takes requests."""
        self._served = served
        self._now = ready
        self._steps = 0
        self._queue: deque[Request] = deque()
        self._running: list[tuple[int, int, float, Request]] = []
        """A heap by the step in which a request ends; the second entry makes them comparable."""
        self._admitted = 0
        self._used = 0
        """Tokens in the KV cache."""
        self._reserved = 0
        self._busy = 0.0
        self._last = ready
        self._answered = 0.0
        self._ended = 0
        self._first = [0] * (len(TTFT_BOUNDS) + 1)
        self._each = [0] * (len(TPOT_BOUNDS) + 1)

    @property
    def load(self) -> int:
        """Requests that run or wait."""
        return len(self._running) + len(self._queue)

    @property
    def last(self) -> float:
        """When the last request so far ended; the start if none has."""
        return self._last

    def add(self, request: Request) -> None:
        """Take a request; the server's time must have reached its arrival."""
        self._queue.append(request)

    def page(self) -> Page:
        """Return the page at this moment."""
        return Page(
            len(self._running),
            len(self._queue),
            self._reserved / self.model.cache,
            self._busy,
            self._answered,
            self._ended,
            tuple(self._first),
            tuple(self._each),
        )

    def advance(self, until: float) -> None:
        """Work until this time; the step under way then is finished."""
        while self._now < until:
            if not self._running and not self._queue:
                if until < math.inf:
                    self._now = until
                return
            admitted = self._admit()
            batch = len(self._running) + len(admitted)
            model = self.model
            seconds = (
                model.step
                + batch * model.per_request
                + self._used * model.per_cached
                + sum(request.prompt for request in admitted) * model.per_prompt
            )
            # Without a prompt, all steps until the next end of a request are alike.
            count = 1
            if not admitted:
                ends = self._running[0][0] - self._steps
                count = max(1, min(ends, _steps_until(until - self._now, seconds)))
            self._now += count * seconds
            self._busy += count * seconds
            self._steps += count
            self._answered += count * batch
            self._used += count * batch
            self._begin(admitted)
            self._end()

    def _admit(self) -> list[Request]:
        admitted: list[Request] = []
        tokens = 0
        while self._queue and len(self._running) + len(admitted) < MOST_RUNNING:
            size = self._queue[0].prompt + self._queue[0].answer
            empty = not self._running and not admitted
            if not empty and self._reserved + size > self.model.cache:
                break
            if admitted and tokens + self._queue[0].prompt > BUDGET:
                break
            request = self._queue.popleft()
            tokens += request.prompt
            self._reserved += size
            admitted.append(request)
        return admitted

    def _begin(self, admitted: list[Request]) -> None:
        for request in admitted:
            self._used += request.prompt
            self._first[bisect_left(TTFT_BOUNDS, self._now - request.at)] += 1
            self._admitted += 1
            end = self._steps + request.answer - 1
            heappush(self._running, (end, self._admitted, self._now, request))

    def _end(self) -> None:
        while self._running and self._running[0][0] <= self._steps:
            _, _, began, request = heappop(self._running)
            self._last = self._now
            self._ended += 1
            self._used -= request.prompt + request.answer
            self._reserved -= request.prompt + request.answer
            per_token = (self._now - began) / (request.answer - 1) if request.answer > 1 else 0.0
            if request.answer > 1:
                self._each[bisect_left(TPOT_BOUNDS, per_token)] += 1
            self._served.append(Served(request.at, began - request.at, per_token))


def _steps_until(seconds: float, per_step: float) -> int:
    """Return how many steps it takes, rounded up; as many as one likes for infinity."""
    return math.ceil(seconds / per_step) if seconds < math.inf else 1 << 30

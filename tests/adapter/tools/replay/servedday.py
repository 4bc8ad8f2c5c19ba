"""A recording of model servers of which everything is known: what they can take, and who was late.

A server takes ``FULL`` requests at once. Of more, those beyond wait, and each of them gets its
first token late. All numbers are made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from adapter.hpa import HpaState, Observation, decide, from_manifest
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.server.recording.events import Begun, Event, HpaSeen, Losses, NodeSeen, PageRead
from adapter.server.recording.events import PodSeen as Seen
from adapter.tools.replay.syncs import pod_state
from apiservice.wire.quantity import format_milli
from tests.adapter.tools.replay.day import HASH, START
from tests.adapter.world import make_pod

SYNC = 15.0
"""Seconds between two syncs, and between two pages of a server."""
FULL = 10
"""Requests that a server takes at once."""
CAPACITY = FULL / 0.9
"""Of so many requests, a tenth is late: what a promise of the p90 tolerates."""
LASTS = 5.0
"""Seconds that each request lasts."""
FIRST_BOUNDS = (0.25, 0.5, 1.0, 2.5, 5.0)
NEXT_BOUNDS = (0.01, 0.025, 0.05, 0.1)
IN_TIME, LATE = 0.3, 3.0
"""Seconds until the first token."""
NEXT = 0.02
"""Seconds between two tokens, of which a request has ten."""
RUNNING = "inference_requests_running"


def tides(second: float) -> float:
    """From 4 requests at once to 76, and back, every two hours."""
    return 40 - 36 * math.cos(2 * math.pi * second / 7200)


def hpa(target: str = "9", *, low: int = 1, high: int = 5, **metric: Any) -> dict[str, Any]:
    """An HPA on the requests that run, unless ``metric`` is another one."""
    source = {
        "metric": {"name": RUNNING, **metric},
        "target": {"type": "AverageValue", "averageValue": target},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [{"type": "Pods", "pods": source}],
        },
    }


@dataclass(slots=True)
class Server:
    """What one server has counted since its start."""

    requests: float = 0.0
    late: float = 0.0
    load: float = 0.0

    def work(self, load: float, seconds: float) -> None:
        """Go on with so many requests at once."""
        ended = load / LASTS * seconds
        self.load = load
        self.requests += ended
        self.late += ended * max(0.0, 1 - FULL / load) if load else 0.0

    @property
    def running(self) -> float:
        return min(FULL, self.load)

    def samples(self, time: float, late: float, *, histograms: bool) -> list[Sample]:
        """The page, as vLLM writes it; late requests get their first token after so long."""
        labels = {"engine": "0", "model_name": "opal-7b"}
        tokens = 10 * self.requests
        numbers = {
            "vllm:num_requests_running": self.running,
            "vllm:num_requests_waiting": self.load - self.running,
            "vllm:generation_tokens_total": tokens,
        }
        page = [Sample(name, labels, value, time) for name, value in numbers.items()]
        if histograms:
            first = ((IN_TIME, self.requests - self.late), (late, self.late))
            name = "vllm:time_to_first_token_seconds"
            page += _histogram(name, FIRST_BOUNDS, first, labels, time)
            name = "vllm:inter_token_latency_seconds"
            page += _histogram(name, NEXT_BOUNDS, ((NEXT, tokens),), labels, time)
        return page


def _histogram(
    name: str,
    bounds: tuple[float, ...],
    values: tuple[tuple[float, float], ...],
    labels: Mapping[str, str],
    time: float,
) -> list[Sample]:
    ends = (*bounds, math.inf)
    hits = [0.0] * len(ends)
    for seconds, count in values:
        hits[next(index for index, end in enumerate(ends) if seconds <= end)] += count
    rows = [
        Sample(f"{name}_bucket", {"le": f"{end:g}".replace("inf", "+Inf"), **labels}, below, time)
        for end, below in zip(ends, accumulate(hits), strict=True)
    ]
    total = sum(seconds * count for seconds, count in values)
    return [
        *rows,
        Sample(f"{name}_sum", labels, total, time),
        Sample(f"{name}_count", labels, sum(hits), time),
    ]


@dataclass(slots=True)
class ServedDay:
    """Implements :class:`adapter.server.recording.events.Recording`."""

    hpa: dict[str, Any] = field(default_factory=hpa)
    demand: Callable[[float], float] = tides
    """Seconds since the start -> requests at once, over all servers."""
    load: str = "9"
    """Requests that run on a server, to which the replicas are scaled."""
    syncs: int = 960
    histograms: bool = True
    lateness: float = LATE
    """Seconds until late requests get their first token."""
    boot: float = 90.0
    replicas: int = 2
    """At the start."""
    gpu: str = "opal"
    """Type of the GPUs."""
    losses: Losses = field(default_factory=Losses)
    servers: dict[str, Server] = field(default_factory=dict)
    """What each pod has served, also those that are gone; known after a reading."""

    @property
    def requests(self) -> float:
        return sum(server.requests for server in self.servers.values())

    @property
    def late(self) -> float:
        return sum(server.late for server in self.servers.values())

    def events(self) -> Iterator[Event]:
        """See the port."""
        self.servers = servers = {}
        yield Begun(START, {})
        yield NodeSeen(START, Node("n", {"nvidia.com/gpu.product": self.gpu}))
        decided = from_manifest(hpa(self.load, high=self.hpa["spec"]["maxReplicas"]))
        state = HpaState()
        pods = [_pod(number, START - 3600) for number in range(self.replicas)]
        number = self.replicas
        yield from (Seen(START, pod) for pod in pods)
        yield HpaSeen(START, _status(self.hpa, None, None, 0))
        for sync in range(self.syncs):
            now = START + sync * SYNC
            for index, pod in enumerate(pods):
                if pod.phase == "Pending" and pod.born + self.boot <= now:
                    pods[index] = _pod(int(pod.uid), pod.born)
                    yield Seen(now - 3, pods[index])
            ready = [pod for pod in pods if pod.phase == "Running"]
            for pod in ready:
                if pod.ref.name not in servers:  # its first page counts nothing
                    servers[pod.ref.name] = Server()
                    servers[pod.ref.name].load = self.demand(now - START) / len(ready)
                else:
                    servers[pod.ref.name].work(self.demand(now - START) / len(ready), SYNC)
                yield self._page(pod, servers[pod.ref.name], now - 1)
            values = {pod.ref.name: round(1000 * servers[pod.ref.name].running) for pod in ready}
            observation = Observation(len(pods), [pod_state(pod) for pod in pods], (values,))
            decision, state = decide(decided, state, observation, now)
            yield HpaSeen(now, _status(self.hpa, len(pods), decision.desired, sync))
            while len(pods) < decision.desired:
                pods.append(_pod(number, now, "Pending"))
                number += 1
                yield Seen(now + 1, pods[-1])
            while len(pods) > decision.desired:
                yield Seen(now + 1, pods.pop(), gone=True)

    def _page(self, pod: Pod, server: Server, time: float) -> PageRead:
        samples = server.samples(time, self.lateness, histograms=self.histograms)
        url = f"http://{pod.ref.name}:8000/metrics"
        return PageRead(time, ScrapeResult(url, "n", samples, time, pod=pod.ref, serves=True))


def _pod(number: int, born: float, phase: str = "Running") -> Pod:
    return make_pod(
        f"llm-{HASH}-{number:05d}",
        uid=str(number),
        node="n" if phase == "Running" else "",
        phase=phase,
        ready=phase == "Running",
        born=born,
        labels={"pod-template-hash": HASH},
        owner=Owner("apps/v1", "ReplicaSet", f"llm-{HASH}"),
    )


def _status(
    manifest: dict[str, Any], current: int | None, desired: int | None, value: int
) -> ShownHpa:
    name = manifest["spec"]["metrics"][0]["pods"]["metric"]["name"]
    metric = ShownMetric("Pods", name, "9", format_milli(value))
    workload = Workload(DEPLOYMENTS, "llm")
    return ShownHpa("ml", "llm", workload, 1, 20, current, desired, (metric,), ())

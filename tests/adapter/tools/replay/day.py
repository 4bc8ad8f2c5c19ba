"""A recording without a cluster: a service under a known load, and the HPA that scales it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from adapter.hpa import HpaState, Observation, decide, from_manifest
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.server.recording.events import (
    Begun,
    Event,
    HpaSeen,
    Losses,
    NodeSeen,
    PageRead,
    PodSeen,
    Recording,
)
from adapter.server.recording.writer import RecordingFile, RecordingWriter
from adapter.tools.replay.syncs import pod_state
from apiservice.wire.quantity import format_milli
from tests.adapter.world import make_pod

PERIOD = 240.0
"""Seconds between two syncs."""
START = 1_790_000_000.0
METRIC = "DCGM_FI_DEV_GPU_UTIL"
HASH = "7bf6d78758"


def waves(second: float) -> float:
    """From one GPU to seven, and back, every four hours, in percent of one GPU."""
    return 400 - 300 * math.cos(2 * math.pi * second / (4 * 3600))


def manifest(target: str = "60", low: int = 1, high: int = 20, **spec: Any) -> dict[str, Any]:
    source = {
        "metric": {"name": METRIC},
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
            **spec,
        },
    }


def shown_hpa(current: int | None, desired: int | None, value: int = 0) -> ShownHpa:
    metric = ShownMetric("Pods", METRIC, "60", format_milli(value))
    return ShownHpa(
        "ml", "llm", Workload(DEPLOYMENTS, "llm"), 1, 20, current, desired, (metric,), ()
    )


@dataclass(slots=True)
class Day:
    """Implements :class:`adapter.server.recording.events.Recording`."""

    load: Callable[[float], float]
    """Seconds since the start -> percent of one GPU."""
    syncs: int = 360
    period: float = PERIOD
    """Seconds between two syncs."""
    settings: Mapping[str, Any] = field(
        default_factory=lambda: {"values": {"window": 5, "collect_interval": 10}}
    )
    hpa: dict[str, Any] = field(default_factory=manifest)
    boot: float = 120.0
    """Seconds until a new pod runs."""
    start: int = 2
    silent: tuple[float, float] = (0.0, 0.0)
    """From when until when the exporter does not answer, in seconds since the start."""
    losses: Losses = field(default_factory=Losses)

    def events(self) -> Iterator[Event]:
        """See the port."""
        yield Begun(START, self.settings)
        spec, state = from_manifest(self.hpa), HpaState()
        pods = [self._pod(index, START - 3600) for index in range(self.start)]
        running: set[str] = set()
        number = self.start
        yield from (PodSeen(START, pod) for pod in pods)
        yield HpaSeen(START, shown_hpa(None, None))
        for sync in range(self.syncs):
            now = START + (sync + 1) * self.period
            for index, pod in enumerate(pods):
                if pod.phase == "Pending" and pod.born + self.boot <= now:
                    pods[index] = self._pod(int(pod.uid), pod.born, "Running")
                    yield PodSeen(now - 3, pods[index])
            ready = [pod for pod in pods if pod.phase == "Running"]
            running.update(pod.ref.name for pod in ready)
            utilization = min(100.0, self.load(now - START) / max(1, len(ready)))
            silent = self.silent[0] <= now - START < self.silent[1]
            if not silent:
                yield PageRead(now - 1, self._page(ready, round(utilization), now - 1))
            values = {} if silent else {pod.ref.name: round(utilization) * 1000 for pod in ready}
            observation = Observation(len(pods), [pod_state(pod) for pod in pods], (values,))
            decision, state = decide(spec, state, observation, now)
            usage = next((row.usage or 0 for row in decision.proposals), 0)
            yield HpaSeen(now, shown_hpa(len(pods), decision.desired, usage or sync))
            while len(pods) < decision.desired:
                pods.append(self._pod(number, now, "Pending"))
                number += 1
                yield PodSeen(now + 1, pods[-1])
            while len(pods) > decision.desired:
                yield PodSeen(now + 1, pods.pop(), gone=True)

    @staticmethod
    def _pod(number: int, born: float, phase: str = "Running", node: str = "n") -> Pod:
        return make_pod(
            f"llm-{HASH}-{number:05d}",
            uid=str(number),
            node=node if phase == "Running" else "",
            phase=phase,
            ready=phase == "Running",
            born=born,
            labels={"pod-template-hash": HASH},
            owner=Owner("apps/v1", "ReplicaSet", f"llm-{HASH}"),
        )

    def _page(self, pods: list[Pod], percent: int, time: float) -> ScrapeResult:
        samples = [Sample(METRIC, _labels(pod), float(percent), time) for pod in pods]
        return ScrapeResult("http://n/metrics", "n", samples, time)


@lru_cache
def _labels_of(pod: str, uid: str) -> Mapping[str, str]:
    return {
        "gpu": uid,
        "UUID": f"GPU-{uid}",
        "Hostname": "n",
        "container": "server",
        "namespace": "ml",
        "pod": pod,
    }


def _labels(pod: Pod) -> Mapping[str, str]:
    return _labels_of(pod.ref.name, pod.uid)


@dataclass(slots=True)
class ServerDay(Day):
    """The pods are vLLM servers: ten requests keep a GPU busy, and more wait."""

    patience: float = 80.0
    """Utilization in percent from which on four requests wait."""

    def events(self) -> Iterator[Event]:
        pods: dict[str, Pod] = {}
        for event in Day.events(self):
            yield event
            if isinstance(event, PodSeen):
                pods[event.pod.uid] = event.pod
                if event.gone:
                    del pods[event.pod.uid]
            if isinstance(event, PageRead):
                busy = {s.labels["pod"]: s.value for s in event.result.samples}
                for pod in pods.values():
                    if pod.ref.name in busy:
                        yield self._served(pod, busy[pod.ref.name], event)

    def _served(self, pod: Pod, busy: float, event: PageRead) -> PageRead:
        waiting = 4.0 if busy > self.patience else 0.0
        values = (
            ("vllm:num_requests_running", round(busy / 10)),
            ("vllm:num_requests_waiting", waiting),
        )
        samples = [Sample(name, {"model_name": "m"}, value, event.time) for name, value in values]
        url = f"http://{pod.ref.name}:8000/metrics"
        result = ScrapeResult(url, pod.node, samples, event.time, pod=pod.ref, serves=True)
        return PageRead(event.time, result)


@dataclass(slots=True)
class SizedDay(Day):
    """The exporter shows memory, and how much of a GPU works, of one model of GPU."""

    memory: Callable[[float], float] = lambda second: 8000 + second % 1200
    """Seconds since the start -> MiB in use by a pod."""
    total: float | None = 81_559.0
    """MiB of a GPU; None if the page does not show it."""
    active: float | None = 0.1
    """Share of the SMs that work while a kernel runs; None if the page does not show it."""
    shown_by: str = "DCGM_FI_PROF_SM_ACTIVE"
    """The field that shows it."""
    device: Mapping[str, str] = field(
        default_factory=lambda: {"modelName": "NVIDIA H100 80GB HBM3"}
    )
    """Further labels of the exporter's samples."""
    gpus: Mapping[str, int] = field(default_factory=lambda: {"nvidia.com/gpu": 1})
    """That each pod requests."""
    node: Mapping[str, str] = field(default_factory=dict)
    """Labels of the node."""
    server: str = ""
    """Prefix of the series of a server in each pod."""

    def events(self) -> Iterator[Event]:
        pods: dict[str, Pod] = {}
        for event in Day.events(self):
            if isinstance(event, PodSeen):
                pods[event.pod.uid] = event.pod.replace(gpus=self.gpus)
                yield event._replace(pod=pods[event.pod.uid])
            else:
                yield event
            if isinstance(event, Begun):
                yield NodeSeen(event.time, Node("n", self.node))
            if isinstance(event, PageRead) and self.server:
                for pod in pods.values():
                    if pod.phase == "Running":
                        yield self._served(pod, event.time)

    def _served(self, pod: Pod, time: float) -> PageRead:
        values = {"num_requests_running": 3.0, "kv_cache_usage_perc": 0.42}
        labels = {"model_name": "m"}
        samples = [Sample(f"{self.server}{n}", labels, v, time) for n, v in values.items()]
        url = f"http://{pod.ref.name}:8000/metrics"
        return PageRead(time, ScrapeResult(url, "n", samples, time, pod=pod.ref, serves=True))

    def _page(self, pods: list[Pod], percent: int, time: float) -> ScrapeResult:
        values = {METRIC: float(percent), "DCGM_FI_DEV_FB_USED": self.memory(time - START)}
        if self.total is not None:
            values["DCGM_FI_DEV_FB_TOTAL"] = self.total
        if self.active is not None:
            values[self.shown_by] = self.active * percent / 100
        samples = [
            Sample(name, {**_labels(pod), **labels, **self.device}, value, time)
            for pod in pods
            for labels in _numbered(pod, sum(self.gpus.values()))
            for name, value in values.items()
        ]
        return ScrapeResult("http://n/metrics", "n", samples, time)


def _numbered(pod: Pod, gpus: int) -> list[Mapping[str, str]]:
    """Labels of each GPU of a pod."""
    return [{"gpu": f"{pod.uid}{n}", "UUID": f"GPU-{pod.uid}-{n}"} for n in range(gpus)]


def write(path: Path, day: Recording) -> None:
    """Write a day as ``serve --record`` does."""
    writer = RecordingWriter()
    for event in day.events():
        writer.event(event)
    RecordingFile(path, 1 << 30).append(writer.take())

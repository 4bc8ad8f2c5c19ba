"""The policies of the yardstick: HPAs on different signals, each with one number to set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.answers.promises.ratio import latency_ratio
from adapter.answers.promises.workload import PromisedWorkload
from adapter.hpa import Missing, Values
from adapter.pipeline.catalog.promise import parse_promise
from load.promiseplays import PROMISE, seconds_of
from load.promisepool import MOST, TICK, Play, PodView, Policy

Signal = Callable[[Sequence[PodView], int, float], Sequence[Values]]
SLOW: Final = {"scaleDown": {"stabilizationWindowSeconds": 600}}
"""The behavior of the recipe in docs/inference.md; all signals but the published rules have it."""


class Hpa:
    """An HPA, and what its metrics say."""

    def __init__(
        self,
        metrics: Sequence[Mapping[str, Any]],
        signal: Signal,
        behavior: Mapping[str, Any] | None = None,
    ) -> None:
        self.manifest: Mapping[str, Any] = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "llm"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
                "minReplicas": 1,
                "maxReplicas": MOST,
                "metrics": list(metrics),
                **({"behavior": behavior} if behavior else {}),
            },
        }
        self.values = signal


def _pods(name: str, target: float) -> Mapping[str, Any]:
    value = f"{max(1, round(1000 * target))}m"
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": _average(value)},
    }


def _external(name: str, target: float) -> Mapping[str, Any]:
    value = f"{max(1, round(1000 * target))}m"
    return {"type": "External", "external": {"metric": {"name": name}, "target": _average(value)}}


def _average(value: str) -> Mapping[str, str]:
    return {"type": "AverageValue", "averageValue": value}


def _milli_values(values: Mapping[str, float]) -> Values:
    return {name: round(1000 * value) for name, value in values.items()} or Missing("no pod")


def _utilization(pods: Sequence[PodView], _: int, __: float) -> Sequence[Values]:
    return [
        _milli_values({p.name: 100 * min(1, (p.page.busy - p.before.busy) / TICK) for p in pods})
    ]


def _running_requests(pods: Sequence[PodView]) -> Values:
    return _milli_values({pod.name: pod.page.running for pod in pods})


def _waiting_requests(pods: Sequence[PodView]) -> Values:
    return _milli_values({pod.name: pod.page.waiting for pod in pods})


def _raw_ratio(pods: Sequence[PodView], _: int, __: float) -> Sequence[Values]:
    ratio = {
        pod.name: value
        for pod in pods
        if (value := latency_ratio(parse_promise(PROMISE), [pod.window])) is not None
    }
    return [_milli_values(ratio)]


def _saturation(pods: Sequence[PodView], _: int, __: float) -> Sequence[Values]:
    """llm-d's EPP: the mean of the worse of queue / 5 and KV cache / 80 %, and all requests."""
    if not pods:
        return [Missing("no pod"), Missing("no pod")]
    saturations = [max(pod.page.waiting / 5, pod.page.cache / 0.8) for pod in pods]
    load = sum(pod.page.running + pod.page.waiting for pod in pods)
    return [[round(1000 * sum(saturations) / len(saturations))], [1000 * load]]


class SloAware:
    """llm-d's rule for latencies (guides/workload-autoscaling/README.slo-aware.md), as published.

    The number to set scales both of its thresholds, which are 0.55 and 0.40.
    """

    def __init__(self, scale: float) -> None:
        self._up, self._down = 0.55 * scale, 0.40 * scale
        self._recent: list[float] = []

    def values(self, pods: Sequence[PodView], replicas: int, now: float) -> Sequence[Values]:
        """Return the replicas that its formula asks for."""
        raw = latency_ratio(parse_promise(PROMISE), [pod.window for pod in pods]) or 0.0
        self._recent = [*self._recent, min(2.0, raw)][-3:]
        signal = sum(self._recent) / len(self._recent)
        wanted = replicas
        if signal > self._up:
            credit = len(pods) / replicas if 0 < len(pods) < replicas else 1.0
            wanted += math.ceil(replicas * (signal * credit / self._up - 1))
        elif signal < self._down:
            wanted -= math.floor(replicas * (1 - signal / self._down))
        return [[1000 * max(1, wanted)]]


class Ours:
    """``inference_slo_ratio`` by the adapter's own control law."""

    def __init__(self) -> None:
        self.workload = PromisedWorkload(parse_promise(PROMISE))

    def values(self, pods: Sequence[PodView], _: int, __: float) -> Sequence[Values]:
        """Return each pod's ratio."""
        windows = {pod.name: pod.window for pod in pods}
        self.workload.observe(windows, {})
        ratios = self.workload.ratios(windows, {})
        return [_milli_values({pod: ratio.value for pod, (ratio, _) in ratios.items()})]


class _Oracle:
    """It knows the requests to come, and what a replica can take."""

    def __init__(self, play: Play, spare: float) -> None:
        slots = int(play.requests[-1].at // TICK) + 2
        self._work = [0.0] * slots
        for request in play.requests:
            self._work[int(request.at // TICK)] += seconds_of(play.model, play.capacity, request)
        self._play, self._spare = play, spare

    def values(self, pods: Sequence[PodView], _: int, now: float) -> Sequence[Values]:
        first = int(now // TICK)
        ahead = int(self._play.start // TICK) + 3
        wide = 2
        sums = [
            sum(self._work[tick : tick + wide]) / (wide * TICK)
            for tick in range(first, first + ahead)
        ]
        return [[1000 * max(1, math.ceil(max(sums) * self._spare))]]


class Family(NamedTuple):
    """A signal with the settings of its sweep."""

    values: tuple[float, ...]
    policy: Callable[[float, Play], Policy]


RECIPE: Final = "running and waiting"
OURS: Final = "inference_slo_ratio"
ORACLE: Final = "oracle"
_LOADS: Final = (6.0, 12.0, 16.0, 24.0, 32.0, 48.0)
_AT_ONCE: Final = {
    "scaleUp": {
        "stabilizationWindowSeconds": 30,
        "policies": [
            {"type": "Percent", "value": 100, "periodSeconds": 60},
            {"type": "Pods", "value": 4, "periodSeconds": 60},
        ],
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 180,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
    },
}
FAMILIES: Final[Mapping[str, Family]] = {
    "utilization": Family(
        (40, 60),
        lambda v, _: Hpa([_pods("gpu_utilization", v)], _utilization, SLOW),
    ),
    "running": Family(
        _LOADS[1:4],
        lambda v, _: Hpa([_pods("running", v)], lambda p, r, n: [_running_requests(p)], SLOW),
    ),
    "waiting": Family(
        (0.25, 1),
        lambda v, _: Hpa([_pods("waiting", v)], lambda p, r, n: [_waiting_requests(p)], SLOW),
    ),
    RECIPE: Family(
        _LOADS,
        lambda v, _: Hpa(
            [_pods("running", v), _pods("waiting", 4)],
            lambda p, r, n: [_running_requests(p), _waiting_requests(p)],
            SLOW,
        ),
    ),
    "p90 / promise": Family(
        (0.3, 0.5),
        lambda v, _: Hpa([_pods("ratio", v)], _raw_ratio, SLOW),
    ),
    "KEDA (vLLM production stack)": Family(
        (1, 5), lambda v, _: Hpa([_pods("waiting", v)], lambda p, r, n: [_waiting_requests(p)])
    ),
    "llm-d saturation": Family(
        (0.4, 1.0),
        lambda v, _: Hpa(
            [_external("saturation", 0.7 * v), _external("running", 16 * v)], _saturation
        ),
    ),
    "llm-d SLO-aware": Family(
        (0.7, 1.0),
        lambda v, _: Hpa([_external("wanted", 1)], SloAware(v).values, _AT_ONCE),
    ),
    OURS: Family(
        (0.5, 0.6, 0.8, 0.9, 1.0),
        lambda v, _: Hpa([_pods(OURS, v)], Ours().values, SLOW),
    ),
    ORACLE: Family(
        (1.0, 1.5),
        lambda v, play: Hpa([_external("wanted", 1)], _Oracle(play, v).values),
    ),
}

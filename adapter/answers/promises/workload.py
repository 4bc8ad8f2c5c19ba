"""One workload and one promise: what its pods teach, and how near each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.answers.promises.capacity import HALF_LIFE, RECENT, LearnedCapacity, PodCapacity
from adapter.answers.promises.memory import Lesson
from adapter.answers.promises.ratio import Ratio, latency_ratio, pod_ratio
from adapter.pipeline.catalog.promise import Promise
from adapter.pipeline.catalog.requestwindow import RequestWindow

_GPUS: Final = 16
"""Types of GPUs whose capacity is kept apart; the rest shares one."""
_OTHERS: Final = "others"


class PromisedWorkload:
    """The capacities of a workload's pods, one for each type of GPU that they run on.

    Args:
        promise: what is to be kept.
        half_life: seconds in which what was learned loses half of its weight.
    """

    def __init__(self, promise: Promise, half_life: float = HALF_LIFE) -> None:
        self.promise = promise
        self._half_life = half_life
        self._learned: dict[str, LearnedCapacity] = {}
        self.latency: float | None = None
        """What :func:`adapter.answers.promises.ratio.latency_ratio` said of the last windows."""

    def observe(self, windows: Mapping[str, RequestWindow], gpus: Mapping[str, str]) -> None:
        """Take the newest window of each pod.

        Args:
            windows: by pod. A pod without one for two minutes is forgotten, and what it taught
                stays.
            gpus: pod -> type of its GPU; a pod without one is missing.
        """
        for pod, window in windows.items():
            self._of(gpus.get(pod, "")).observe(pod, window)
        newest = max((window.time for window in windows.values()), default=0.0)
        for learned in self._learned.values():
            learned.forget_pods(newest - 2 * RECENT)
        self.latency = latency_ratio(self.promise, list(windows.values()))

    def capacities(self) -> Mapping[str, PodCapacity | None]:
        """Return what a pod can take, by the type of its GPU."""
        return {gpu: learned.capacity() for gpu, learned in self._learned.items()}

    def evidence(self, gpu: str) -> float:
        """Return the number of requests behind what is known of a type of GPU."""
        return self._of(gpu).evidence

    def ratios(
        self, windows: Mapping[str, RequestWindow], gpus: Mapping[str, str]
    ) -> Mapping[str, tuple[Ratio, PodCapacity | None]]:
        """Return the value of each pod whose page shows a load, and the capacity behind it.

        The arguments are those of the last :meth:`observe`.
        """
        capacities = self.capacities()
        values = {}
        for pod, window in windows.items():
            gpu = self._place(gpus.get(pod, ""))
            capacity = capacities.get(gpu)
            growth = self._of(gpu).growth(pod)
            ratio = pod_ratio(window, capacity, self.latency, growth)
            if ratio is not None:
                values[pod] = ratio, capacity
        return values

    def lessons(self) -> Mapping[str, Lesson]:
        """Return what is known, by the type of the GPU."""
        return {gpu: Lesson(*learned.steps()) for gpu, learned in self._learned.items()}

    def recall(self, gpu: str, lesson: Lesson, now: float) -> None:
        """Take what another process knows about a type of GPU, if that is more."""
        learned = self._of(gpu)
        if lesson.evidence(now) > Lesson(*learned.steps()).evidence(now):
            learned.recall(lesson.steps, lesson.time)

    def _of(self, gpu: str) -> LearnedCapacity:
        gpu = self._place(gpu)
        capacity = self._learned.get(gpu)
        if capacity is None:
            capacity = self._learned[gpu] = LearnedCapacity(self.promise, self._half_life)
        return capacity

    def _place(self, gpu: str) -> str:
        """Return the key of a type of GPU: nodes are labelled by others, so their number is
        bounded."""
        return gpu if gpu in self._learned or len(self._learned) < _GPUS else _OTHERS

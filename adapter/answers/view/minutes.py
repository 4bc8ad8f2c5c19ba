"""Note once a minute what HPAs, workloads and pools are, for the history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Final

from adapter.answers.history.ring import MINUTE, HistoryRing, subject
from adapter.answers.judgement.readings import readings_of
from adapter.answers.judgement.states import ORDER, ScalingState
from adapter.answers.view.gpupools import GpuPools
from adapter.answers.view.gpuworkloads import GpuWorkloads
from adapter.answers.view.hpaparts import judge_hpa, served_metrics
from adapter.answers.view.snapshots import CurrentValues
from adapter.answers.view.workloadobject import Summary
from adapter.pipeline.cluster.hpas import Hpas, ShownHpa
from adapter.pipeline.cluster.index import PodIndex
from apiservice.runtime.inturn import in_turn
from apiservice.runtime.steps import Steps, parts, run_in_slices
from apiservice.view.resource import Key

_STEP: Final = 16
"""HPAs that one step judges."""
_RETRY: Final = 1.0
"""Seconds between two looks before the first minute is noted."""
_PLACES: Final = {state: place for place, state in enumerate(ORDER)}


class MinuteRecorder:
    """Notes the minutes. One in which the cluster could not be read stays a gap.

    Args:
        ring: where points are kept.
        values: the current values.
        pods: the known pods.
        hpas: the known HPAs.
        workloads: the workloads above the pods.
        pools: the pools of GPU nodes.
        stale_after: seconds without a message about pods or HPAs after which they are not noted.
        clock: epoch seconds.
    """

    def __init__(
        self,
        ring: HistoryRing,
        values: CurrentValues,
        pods: PodIndex,
        hpas: Hpas,
        workloads: GpuWorkloads,
        pools: GpuPools,
        stale_after: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ring = ring
        self._values = values
        self._pods = pods
        self._hpas = hpas
        self._workloads = workloads
        self._pools = pools
        self._stale_after = stale_after
        self._clock = clock

    async def run(self) -> None:
        """Note each minute until cancelled."""
        while True:
            await run_in_slices(self.note(self._clock()))
            left = MINUTE - self._clock() % MINUTE
            # At the start, the first minute is noted as soon as the cluster has been read.
            await asyncio.sleep(left if self._ring.last >= 0 else min(left, _RETRY))

    def note(self, now: float) -> Steps[None]:
        """Note the minute of a time, in steps."""
        if not (self._is_current(self._pods, now) and self._is_current(self._hpas, now)):
            return
        if not (yield from self._ring.turn(int(now // MINUTE))):
            return
        states: dict[tuple[str, str], ScalingState] = {}
        workloads: list[tuple[Key, tuple[float | None, ...]]] = []
        metrics = self._values.snapshot.catalog.metrics

        def take(key: Key, summary: Summary) -> None:
            workloads.append((key, (summary.mean, summary.pods, summary.measured)))
            for hpa in summary.hpas.first:
                states[hpa.key] = judge_hpa(hpa, summary.target, metrics, now).state

        yield from self._workloads.visit_workloads(now, take)
        for name, pool in (yield from self._pools.pools(now)).items():
            of = pool.classes
            row = (pool.gpus, of["busy"], of["idle"], of["free"])
            self._ring.note(subject("pool", name), row)
        # Where there is no room for all, those come first that this project is about.
        relevant: list[ShownHpa] = []
        others: list[ShownHpa] = []
        for some in parts(tuple(self._hpas), _STEP):
            for hpa in some:
                about = hpa.key in states or any(served_metrics(hpa, metrics))
                (relevant if about else others).append(hpa)
            yield
        yield from self._note_hpas(relevant, states, now)
        for batch in parts(in_turn(workloads, lambda row: row[0].namespace), _STEP):
            for key, numbers in batch:
                self._ring.note(subject("workload", key.name, key.namespace), numbers)
            yield
        yield from self._note_hpas(others, states, now)

    def _is_current(self, index: PodIndex | Hpas, now: float) -> bool:
        return index.synced and index.age(now) <= self._stale_after

    def _note_hpas(
        self,
        hpas: Iterable[ShownHpa],
        states: Mapping[tuple[str, str], ScalingState],
        now: float,
    ) -> Steps[None]:
        """Note HPAs, one of each namespace in turn.

        Args:
            states: of those that scale a known workload.
        """
        metrics = self._values.snapshot.catalog.metrics
        for some in parts(in_turn(hpas, attrgetter("namespace")), _STEP):
            for hpa in some:
                state = states.get(hpa.key)
                self._note(
                    hpa, judge_hpa(hpa, None, metrics, now).state if state is None else state
                )
            yield

    def _note(self, hpa: ShownHpa, state: ScalingState) -> None:
        first = next(iter(readings_of(hpa)), None)
        value, target = (None, None) if first is None else (first.value, first.goal)
        self._ring.note(
            subject("hpa", hpa.name, hpa.namespace),
            (value, target, hpa.current, hpa.wants, _PLACES[state]),
            "" if first is None else first.name,
        )

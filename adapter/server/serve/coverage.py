"""Count how many pods with GPUs have a value, and why the others have none, and log changes.

The count runs beside the requests, a few pods at a time, because a large cluster would delay them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import structlog

from adapter.answers.api.provider import Values
from adapter.config.settings.accounting import AccountingSettings
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.reasons import explanation
from adapter.pipeline.attribution.values import UNREAD
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import Mismatch
from adapter.server.serve.gpuledger import GpuLedger
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import Steps, run_in_slices

METRIC: Final = "gpu_utilization"
"""A metric of which every device in use has a value."""
_LOOK: Final = 0.5
"""Seconds between two looks at whether the process is ready."""
_FIRST: Final = 1.0
_LAST: Final = 60.0
"""Longest time in seconds between counts of up to 10,000 pods with GPUs.

The time starts short and doubles, because at the start values are still missing. A count of 10,000
pods takes 0.7 s of CPU if no client has asked for their values in the meantime, so more pods are
counted less often.
"""
_PODS: Final = 10_000
_SHARE: Final = 20
"""A shorter time is at least so many times as long as the last count took."""
_UNREADY: Final = 30.0
"""Seconds from the start for which the first count waits until the process is ready: until then the
CPU has pages to read."""
_KEPT: Final = 16
"""Pods that are looked at in one snapshot. Each page brings another, whose first use costs a copy
of the table of exporters."""
_NOT_MEANT: Final = frozenset((Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY))
"""Reasons of pods that are not expected to have a value."""

IDLE_FOR: Final = {"10m": 600.0, "1h": 3600.0, "24h": 86400.0}
"""Lengths for which idle devices are counted, in seconds."""

Attributing = Generator[None, None, Mapping[str, int]]
log = structlog.get_logger(__name__)

_NONE: Final[Counter[str]] = Counter()


@dataclass(frozen=True, slots=True)
class Counted:
    """The result of one count."""

    measured: int
    """Pods with a value."""
    missing: Counter[str]
    """Reason -> pods without a value."""
    lasting: Counter[str]
    """The same without the pods that have just started."""
    example: tuple[Pod, Absence] | None = None
    """One of the ``lasting`` pods with the most frequent reason."""

    @property
    def pods(self) -> int:
        """All pods that should have a value."""
        return self.measured + self.missing.total()


class Coverage:
    """Counts repeatedly.

    Args:
        attributions: starts a count of how devices are attributed to pods.
        patience: returns the seconds that a pod may take from its start to its first value.
        ready: returns whether the process is ready. Before that, no count is reported.
        report: called with each count.
        ledger: gets the value of each pod that holds a GPU.
    """

    def __init__(
        self,
        values: Values,
        pods: PodIndex,
        attributions: Callable[[], Attributing],
        clock: Callable[[], float] = time.time,
        *,
        patience: Callable[[], float] = lambda: 0.0,
        ready: Callable[[], bool] = lambda: True,
        report: Callable[[Counted], None] = lambda _: None,
        ledger: GpuLedger | None = None,
    ) -> None:
        self._values = values
        self._pods = pods
        self._attributions = attributions
        self._clock = clock
        self._patience = patience
        self._ready = ready
        self._report = report
        self.ledger = ledger or GpuLedger(AccountingSettings(), clock)
        """The GPU-seconds up to the last count."""
        self._pause = _LAST
        self.last: Counted | None = None
        """The last complete count; None before the first."""
        self.attributed: Mapping[str, int] | None = None
        """Attribution of utilisation -> devices, at the last count."""
        self.idle: Mapping[tuple[str, str], int] = {}
        """(Whether a pod has the device, length) -> devices that are idle for at least so long, at
        the last count."""

    async def run(self) -> None:
        """Count until cancelled."""
        pause, clock = _FIRST, asyncio.get_running_loop().time
        if not self._ready():
            await self._sleep(_UNREADY, ready=False)
        while True:
            ready, begun = self._ready(), clock()
            if self._pods.synced:
                await self.look()
                counted = self.last.pods if self.last else 0
                longest = self._pause = _LAST * max(1.0, counted / _PODS)
                pause = min(max(2 * pause, _SHARE * (clock() - begun)), longest)
            if ready and self.last is not None:
                self._report(self.last)
            await self._sleep(pause, ready=ready)

    async def _sleep(self, seconds: float, *, ready: bool) -> None:
        """Sleep, but not past the time at which the process becomes ready."""
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            if not ready and self._ready():
                return
            await asyncio.sleep(left if ready else min(left, _LOOK))

    async def look(self) -> None:
        """Count once, and keep the result."""
        self.idle = await run_in_slices(self._count_idle())
        self.last = await self.count()
        self.attributed = await run_in_slices(self._attributions())

    def _count_idle(self) -> Steps[Mapping[tuple[str, str], int]]:
        now = self._clock()
        counts = dict.fromkeys(product(("true", "false"), IDLE_FOR), 0)
        for since, held in (yield from self._values.snapshot.idle_devices(now)).values():
            for label, seconds in IDLE_FOR.items():
                counts["true" if held else "false", label] += now - since >= seconds
        return counts

    async def count(self) -> Counted:
        """Count once, with pauses for other tasks."""
        return await run_in_slices(self._count())

    def _count(self) -> Generator[None, None, Counted]:
        measured, missing, lasting = 0, Counter[str](), Counter[str]()
        examples: dict[str, tuple[Pod, Absence]] = {}
        now, patience = self._clock(), self._patience()
        snapshot = self._values.snapshot
        self.ledger.begin(self._pause)
        for number, pod in enumerate(self._pods.each()):
            yield
            if not number % _KEPT:
                snapshot = self._values.snapshot
            if not pod.node or pod.finished or not snapshot.holds(pod):
                continue
            value = snapshot.pod(pod, METRIC, EVERYTHING, self._clock(), keep=False)
            self.ledger.add(pod, value, snapshot)
            if pod.deleting:
                continue
            if not isinstance(value, Absence):
                measured += 1
            elif value.reason not in _NOT_MEANT:
                missing[value.reason] += 1
                if value.reason not in UNREAD or not _starts(pod, now, patience):
                    lasting[value.reason] += 1
                    examples.setdefault(value.reason, (pod, value))
        self.ledger.end()
        worst = lasting.most_common(1)
        example = examples[worst[0][0]] if worst else None
        return Counted(measured, missing, lasting, example)


def _starts(pod: Pod, now: float, patience: float) -> bool:
    """Return whether the pod started so recently that it may have no value yet."""
    since = pod.ready_since or pod.born
    return since > 0 and now - since < patience


class CoverageLog:
    """Writes a line for the first count, and for each change of the pods without a value.

    Pods that have just started are not part of it, so that a normal start logs no warning.

    Args:
        pods: the known pods.
        exporters: returns the number of known exporters.
    """

    def __init__(self, pods: PodIndex, exporters: Callable[[], int]) -> None:
        self._pods = pods
        self._exporters = exporters
        self._announced = False
        self._logged = _NONE

    def note(self, counted: Counted) -> None:
        """Log what changed with this count."""
        if not self._announced:
            self._announced = True
            line = (
                f"ready: {len(self._pods)} pods, {counted.pods} with GPUs, "
                f"{self._exporters()} exporters, {counted.measured} measured"
            )
            log.info(line)
        if counted.lasting == self._logged:
            return
        self._logged = counted.lasting
        if not counted.lasting:
            log.info("every pod with a GPU has a value again", pods=counted.pods)
            return
        pod, absence = counted.example or (None, None)
        more = {}
        if pod is not None and absence is not None:
            why = explanation(absence, pod, self._find)
            more = {"example": f"{_name(pod)}: {why.message}", "hint": why.hint}
        log.warning(
            "pods with GPUs have no value",
            pods=counted.lasting.total(),
            of=counted.pods,
            reasons=dict(counted.lasting.most_common()),
            **more,
        )

    def _find(self, ref: PodRef) -> Pod | None:
        return self._pods.get(*ref)


def _name(pod: Pod) -> str:
    return f"{pod.ref.namespace}/{pod.ref.name}"

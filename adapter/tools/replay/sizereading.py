"""Read a recording for the memory and the compute that an HPA's pods used of their GPUs."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from adapter.hpa import HpaSpec
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog import ENGINE
from adapter.pipeline.catalog.serverkind import CACHE, RUNNING, ServerKind
from adapter.pipeline.catalog.serverkinds import kind_of_field
from adapter.pipeline.cluster.gpuresources import (
    MIG_PREFIX,
    ResourceUnit,
    devices,
    unit_of,
    vendor_of,
)
from adapter.pipeline.cluster.nodelabels import INSTANCE_TYPE, capacity_type, facts
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.snapshot import Snapshot
from adapter.server.recording.events import Missed, PageRead, Recording
from adapter.tools.replay.virtualcluster import VirtualCluster
from apiservice.labels.selector import EVERYTHING

USED: Final = "gpu_memory_used_bytes"
TOTAL: Final = "gpu_memory_total_bytes"
_MIB: Final = 1 << 20
_LOADS: Final = 3600.0
"""Seconds after its creation in which a pod may still load its model into memory."""
_UNSEEN: Final = 600.0
"""Seconds without a look that count as missing: exporters are read far more often."""
_VGPU_PRESENT: Final = "nvidia.com/vgpu.present"
"""Label of GPU feature discovery on nodes whose GPUs are virtual ones."""
_VGPU_TYPE: Final = re.compile(r"-\d{1,3}[ABCQ]$")
"""How the name of a virtual GPU's type ends, such as ``NVIDIA A10-24Q``: gigabytes and a series
(NVIDIA's virtual GPU software user guide)."""


class BusySignal(StrEnum):
    """A metric of how much of a GPU's compute works; the best first."""

    SM = "gpu_sm_activity"
    ENGINE = ENGINE
    UTILIZATION = "gpu_utilization"


_PERCENT: Final = {BusySignal.SM: 1.0, BusySignal.ENGINE: 100.0, BusySignal.UTILIZATION: 1.0}
"""What makes a percentage of each signal's value."""
SIZE_METRICS: Final = (USED, TOTAL, *BusySignal)
"""The metrics of devices that are read."""


class GpuForm(StrEnum):
    """How the pods hold their GPUs, if it is not one whole GPU each; the first that applies."""

    SEVERAL = "several"
    MIG = "mig"
    VIRTUAL = "vgpu"
    PART = "part"
    """The pods request a part of a GPU's memory or cores."""
    SHARED = "shared"
    """Several pods may have the device, so its values are of all of them."""


@dataclass(slots=True)
class RecordedUse:
    """What pods used of their GPUs of one model, each look at one pod."""

    model: str
    """Empty if nothing names it."""
    looks: int = 0
    pods: set[str] = field(default_factory=set)
    """UIDs."""
    first: float = 0.0
    """Epoch seconds of the first look."""
    last: float = 0.0
    times: int = 0
    """Different times of looks."""
    gaps: int = 0
    """Those of them that are long after the one before."""
    gap_seconds: float = 0.0
    used: float = 0.0
    """Most bytes of any GPU of any pod."""
    total: float | None = None
    """Bytes of a GPU; None if nothing shows it."""
    busy: dict[BusySignal, Counter[int]] = field(default_factory=dict)
    """Signal -> tenths of a percent, rounded up -> looks."""
    forms: Counter[GpuForm] = field(default_factory=Counter)
    gpus: int = 1
    """Most GPUs of a pod."""
    profile: str = ""
    """Of the MIG instances that the pods have."""
    vendor: str = ""
    """Of the GPUs; empty if nothing states it."""
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Instance type and capacity type of the nodes -> looks."""
    server: ServerKind | None = None
    """A server in the pods that takes memory ahead of need."""
    cache: float | None = None
    """Highest percentage of its KV cache that was in use."""
    settled: dict[str, tuple[float, float]] = field(default_factory=dict)
    """UID -> lowest and highest bytes in use after the time in which a pod loads its model."""

    @property
    def missing(self) -> float:
        """Seconds without a look; 0 if most looks are far apart."""
        return self.gap_seconds if 2 * self.gaps < self.times else 0.0

    @property
    def seconds(self) -> float:
        """The time with looks."""
        return self.last - self.first - self.missing

    @property
    def constant(self) -> bool:
        """Whether the memory in use never changed in any pod, but while it loaded its model."""
        return bool(self.settled) and all(low == high for low, high in self.settled.values())

    @property
    def signal(self) -> BusySignal | None:
        """The signal with most looks; None if no page shows one."""
        signals = [signal for signal in BusySignal if signal in self.busy]
        return max(signals, key=lambda signal: self.busy[signal].total(), default=None)

    def take_time(self, time: float) -> None:
        """Count a look at a pod.

        Args:
            time: epoch seconds.
        """
        apart = time - self.last
        self.looks += 1
        self.times += apart > 0
        if apart > _UNSEEN:
            self.gaps += 1
            self.gap_seconds += apart
        self.last = max(self.last, time)

    def quantile(self, share: float) -> float | None:
        """Return a quantile of :attr:`signal` in percent, at most a tenth too high; None without a
        signal."""
        if self.signal is None:
            return None
        busy = self.busy[self.signal]
        looks, wanted = 0, share * busy.total()
        for tenths in sorted(busy):
            looks += busy[tenths]
            if looks >= wanted:
                break
        return tenths / 10


class SizeReading:
    """One reading of a recording, for the pods of one HPA.

    Args:
        spec: the HPA.
    """

    def __init__(self, spec: HpaSpec) -> None:
        self._spec = spec
        self._cluster = VirtualCluster()
        self._uses: dict[str, RecordedUse] = {}
        self._looked: dict[str, float] = {}
        """UID -> epoch seconds of the newest sample of its last look."""
        self._servers: dict[str, tuple[ServerKind | None, float | None]] = {}
        """UID -> the server that reserves memory, and the highest percentage of its KV cache."""
        self.absent: Counter[str] = Counter()
        """Why pods on pages had no value of memory."""
        self.holders = False
        """Whether a pod of the HPA holds a GPU."""

    def read(self, recording: Recording) -> list[RecordedUse]:
        """Return the use of each model of GPU, the one with most looks first.

        Raises:
            RecordingError: the recording cannot be read.
        """
        for event in recording.events():
            if isinstance(event, Missed):
                continue
            if not isinstance(event, PageRead):
                self._cluster.take(event)
            elif not event.result.serves or self._cluster.may_show(event.result, self._spec):
                self._cluster.take(event)
                self._page(event.result)
        return sorted(self._uses.values(), key=lambda use: -use.looks)

    def _page(self, page: ScrapeResult) -> None:
        snapshot = self._cluster.store.snapshot
        for pod in self._cluster.pods_of(self._spec):
            self.holders = self.holders or snapshot.holds(pod)
        for pod, pod_series in self._cluster.shown_pods(page, self._spec):
            if any(series.serves for series in pod_series):
                self._server(pod, snapshot, page.received)
            else:
                self._look(pod, snapshot, page.received)

    def _server(self, pod: Pod, snapshot: Snapshot, now: float) -> None:
        """Note which server a pod is, and how full its KV cache is."""
        kind, most = self._servers.get(pod.uid, (None, None))
        if kind is None:
            running = snapshot.pod(pod, RUNNING, EVERYTHING, now, keep=False)
            kind = self._reserving_server(running) if isinstance(running, Reading) else None
        cache = snapshot.pod(pod, CACHE, EVERYTHING, now, keep=False)
        if isinstance(cache, Reading):
            most = max(most or 0.0, *(part.value for part in cache.devices))
        self._servers[pod.uid] = kind, most

    def _reserving_server(self, running: Reading) -> ServerKind | None:
        for part in running.devices:
            spelling = self._cluster.catalog.spellings.get(part.formula)
            kind = kind_of_field(spelling.field.name if spelling is not None else part.formula)
            if kind is not None and kind.reserves:
                return kind
        return None

    def _look(self, pod: Pod, snapshot: Snapshot, now: float) -> None:
        """Note what a pod uses of its GPUs, if a page has a new value."""
        memory = snapshot.pod(pod, USED, EVERYTHING, now, keep=False)
        if isinstance(memory, Absence):
            self.absent[memory.reason] += 1
            return
        if memory.time <= self._looked.get(pod.uid, 0.0):
            return
        self._looked[pod.uid] = memory.time
        labels = snapshot.cluster.labels(pod.node)
        node_facts, model = facts(labels), memory.devices[0].model
        use = self._uses.setdefault(model, RecordedUse(model, first=memory.time, last=memory.time))
        use.take_time(memory.time)
        use.pods.add(pod.uid)
        use.places[labels.get(INSTANCE_TYPE, ""), capacity_type(labels)] += 1
        use.vendor = use.vendor or next(filter(None, map(vendor_of, pod.gpus)), node_facts.vendor)
        use.profile = use.profile or memory.devices[0].of.mig_profile or node_facts.mig_profile
        use.gpus = max(use.gpus, len(memory.devices), sum(devices(pod.gpus).values()))
        virtual = labels.get(_VGPU_PRESENT) == "true" or bool(_VGPU_TYPE.search(model))
        form = _form(pod, memory, virtual=virtual)
        if form is not None:
            use.forms[form] += 1
        self._memory(use, pod, memory, snapshot, now)
        if use.total is None and node_facts.memory is not None:
            use.total = float(node_facts.memory * _MIB)
        for signal in BusySignal:
            value = snapshot.pod(pod, signal, EVERYTHING, now, keep=False)
            if isinstance(value, Reading):
                most = max(part.value for part in value.devices) * _PERCENT[signal]
                use.busy.setdefault(signal, Counter())[math.ceil(round(10 * most, 6))] += 1
                break
        kind, cache = self._servers.get(pod.uid, (None, None))
        use.server = use.server or kind
        use.cache = use.cache if cache is None else max(use.cache or 0.0, cache)

    @staticmethod
    def _memory(
        use: RecordedUse, pod: Pod, memory: Reading, snapshot: Snapshot, now: float
    ) -> None:
        most = max(part.value for part in memory.devices)
        use.used = max(use.used, most)
        total = snapshot.pod(pod, TOTAL, EVERYTHING, now, keep=False)
        if isinstance(total, Reading):
            least = min(part.value for part in total.devices)
            use.total = least if use.total is None else min(use.total, least)
        if memory.time >= pod.born + _LOADS:
            low, high = use.settled.get(pod.uid, (most, most))
            use.settled[pod.uid] = min(low, most), max(high, most)


def _form(pod: Pod, memory: Reading, *, virtual: bool) -> GpuForm | None:
    """Return how a pod holds its GPU; None for one whole GPU of its own."""
    if len(memory.devices) > 1 or sum(devices(pod.gpus).values()) > 1:
        return GpuForm.SEVERAL
    device = memory.devices[0]
    if device.of.mig or any(name.startswith(MIG_PREFIX) for name in pod.gpus):
        return GpuForm.MIG
    if virtual:
        return GpuForm.VIRTUAL
    if pod.gpu_groups or any(unit_of(name) is ResourceUnit.PART for name in pod.gpus):
        return GpuForm.PART
    return GpuForm.SHARED if device.evidence or device.sharers > 1 else None

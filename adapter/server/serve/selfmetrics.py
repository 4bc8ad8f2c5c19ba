"""The metrics that ``serve`` exposes about itself, collected from its parts at each scrape.

Cardinality is bounded: reasons, limits and kinds are fixed sets. Pods, devices, URLs and metric
names are never labels, except those of the accounts of GPU-seconds, whose number is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from adapter import __version__
from adapter.answers.api.provider import GpuMetricsProvider
from adapter.answers.history.ring import HistoryRing
from adapter.answers.keda import selfmetrics as kedametrics
from adapter.answers.keda.selfmetrics import KedaStats, keda_families
from adapter.answers.promises.ratios import PromisedRatios
from adapter.answers.rules.service import RuleService
from adapter.config.process.reload import ConfigWatch
from adapter.pipeline.attribution.census import LEFT_OUT
from adapter.pipeline.attribution.reading import Attribution
from adapter.pipeline.attribution.sharing import Evidence
from adapter.pipeline.cluster.feed import Fed
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.server.recording.recorder import Recorder
from adapter.server.serve import (
    accessmetrics,
    ahead,
    delegatemetrics,
    rulemetrics,
    sourcemetrics,
)
from adapter.server.serve.accessmetrics import access_families
from adapter.server.serve.apiserviceowner import APIServiceOwner
from adapter.server.serve.coverage import IDLE_FOR, Coverage
from adapter.server.serve.delegatemetrics import delegate_families
from adapter.server.serve.gpuledger import STATES, Account
from adapter.server.serve.lifetimes import Lifetimes
from adapter.server.serve.memory import ClusterMemory
from adapter.server.serve.pipeline import PipelineSwitcher
from adapter.server.serve.reasons import ABSENCES, REJECTS, TASKS
from adapter.server.serve.rulemetrics import rule_families
from adapter.server.serve.security import Security
from adapter.server.serve.sourcemetrics import source_families
from apiservice.delegate.delegation import Delegation
from apiservice.http.options import ServingStats
from apiservice.http.server import Server
from apiservice.runtime.background import Background
from apiservice.selfmetrics import requeststats
from apiservice.selfmetrics.families import counter, gauge, histogram
from apiservice.selfmetrics.looplag import LoopLag

if TYPE_CHECKING:
    from adapter.server.ahead.learner import Learner

BUILD: Final = gauge(
    "gma_build_info", "1, labeled with the version of this process.", "version", "component"
)
REJECTED: Final = counter(
    "gma_rejects_total", "Samples and values that were left out.", "reason", known=REJECTS
)
ABSENT: Final = counter(
    "gma_absent_total",
    "Pods that had no value when an answer was prepared.",
    "reason",
    known=ABSENCES,
)
GPU_PODS: Final = gauge(
    "gma_gpu_pods",
    "Ready pods whose spec requests a GPU. Each should have a value. Counted once a minute; of "
    "more than 10,000 pods less often.",
)
MEASURED: Final = gauge(
    "gma_gpu_pods_measured", "Those of gma_gpu_pods that have a value of gpu_utilization."
)
UNMEASURED: Final = gauge(
    "gma_gpu_pods_unmeasured",
    "Those of gma_gpu_pods that have no value of gpu_utilization.",
    "reason",
    known=ABSENCES,
)
ATTRIBUTED: Final = gauge(
    "gma_attributed_devices",
    "Devices by how their utilization is allocated to pods, once per pod.",
    "attribution",
    known=tuple(sorted((*map(str, Attribution), LEFT_OUT))),
)
SHARING: Final = gauge(
    "gma_sharing_nodes",
    "Nodes whose devices several pods share, by the evidence for it.",
    "evidence",
    known=tuple(map(str, Evidence)),
)
IDLE: Final = gauge(
    "gma_idle_devices",
    "Devices on which no field has shown work for at least the time of the label. Counted once a "
    "minute; a restart starts the time again.",
    "held",
    "at_least",
    known=IDLE_FOR,
)
GPU_SECONDS: Final = counter(
    "gma_gpu_seconds_total",
    "GPU-seconds that pods held: used, idle, or unknown while the utilization is not known. A MIG "
    "instance and a share count as their part of a GPU. Counted once a minute; time during which "
    "the process did not run is not counted. See docs/costs.md.",
    *Account._fields,
    "state",
    known=STATES,
)
UNSIZED: Final = gauge(
    "gma_gpu_unsized_pods",
    "Pods that hold GPUs, without a part in gma_gpu_seconds_total, because neither their manifest "
    "nor a value shows how much they hold.",
)
EXPORTERS: Final = gauge("gma_exporters", "Exporters whose samples are in the store.")
SILENT: Final = gauge(
    "gma_exporters_stale",
    "Those of gma_exporters whose samples are older than the age limit. They are not served.",
)
YOUNGEST: Final = gauge("gma_exporter_age_min_seconds", "Age of the newest page in the store.")
OLDEST: Final = gauge("gma_exporter_age_max_seconds", "Age of the oldest page in the store.")
DEVICES: Final = gauge("gma_snapshot_devices", "Devices in the store.")
NAMED: Final = gauge("gma_snapshot_pods", "Pods that samples in the store name.")
SERIES: Final = gauge(
    "gma_snapshot_series", "Device series in the store: each device once per container that has it."
)
SYNCED: Final = gauge(
    "gma_watch_synced", "1 after the first complete list of the collection.", "collection"
)
HEARD: Final = gauge(
    "gma_watch_age_seconds",
    "Time since the last message from the API server about the collection.",
    "collection",
)
UNREAD: Final = counter(
    "gma_watch_left_out_total",
    "Objects of the collection that are left out, because they cannot be read or more than 32 KiB "
    "of one would be kept. The log names the first.",
    "collection",
)
PODS: Final = gauge("gma_pods", "Pods in the index.")
LAG: Final = histogram(
    "gma_event_loop_lag_seconds",
    "Delay of the event loop for work that is due. Every request waits for as long.",
)
CONFIG: Final = gauge("gma_config_ok", "0 while the configuration file on disk is rejected.")
RELOADS: Final = counter(
    "gma_config_reloads_total", "Changes of the configuration that were applied."
)
FOREIGN: Final = gauge(
    "gma_external_other_adapter",
    "1 while the APIService of external metrics points to another Service. Absent if this is not "
    "known or if external metrics are off.",
)
PROMISES: Final = gauge(
    "gma_promises", "Promises of workloads whose capacity is learned, those of restarts included."
)
FORGOTTEN: Final = counter(
    "gma_promises_forgotten_total",
    "Promises that were forgotten, because their namespace or all together ask for too many.",
)
REMEMBERED: Final = gauge(
    "gma_memory_ok",
    "0 while the ConfigMap of what was learned cannot be read or written; the log says why. Absent "
    "without one.",
)
BACKGROUND: Final = counter(
    "gma_background_failures_total",
    "Unexpected failures of background tasks. The task runs again after a pause.",
    "task",
    known=TASKS,
)
RECORDING: Final = gauge(
    "gma_recording_active", "1 while the recording goes on; 0 once it ended; the log says why."
)
RECORDED: Final = gauge("gma_recording_file_bytes", "Size of the recording's file.")
UNRECORDED: Final = counter(
    "gma_recording_left_out_total", "Events that are too long for the recording."
)
HISTORY: Final = gauge(
    "gma_history_bytes", "Bytes that the history of HPAs and workloads takes (view.history_bytes)."
)
UNKEPT: Final = gauge(
    "gma_history_left_out",
    "HPAs and workloads of the last minute of which no point is kept: there is no room for more.",
)
OWN: Final = (
    *(BUILD, REJECTED, ABSENT, GPU_PODS, MEASURED, UNMEASURED, ATTRIBUTED, SHARING, IDLE),
    *(GPU_SECONDS, UNSIZED),
    *(EXPORTERS, SILENT, YOUNGEST, OLDEST, DEVICES, NAMED, SERIES),
    *(SYNCED, HEARD, UNREAD, PODS, LAG, CONFIG, RELOADS, FOREIGN, BACKGROUND),
    *(PROMISES, FORGOTTEN, REMEMBERED),
)
FAMILIES: Final = (
    *requeststats.FAMILIES,
    *accessmetrics.FAMILIES,
    *OWN,
    *sourcemetrics.FAMILIES,
    *rulemetrics.FAMILIES,
    *kedametrics.FAMILIES,
    *delegatemetrics.FAMILIES,
    *ahead.FAMILIES,
    *(RECORDING, RECORDED, UNRECORDED, HISTORY, UNKEPT),
)
"""All metrics of ``serve``, except the ``process_…`` metrics."""


@dataclass(frozen=True, slots=True)
class MetricSources:
    """The parts from which metrics are collected."""

    pipelines: PipelineSwitcher
    provider: GpuMetricsProvider
    objects: ObjectLookup
    server: Server
    security: Security
    lifetimes: Lifetimes
    watch: ConfigWatch
    coverage: Coverage
    lag: LoopLag
    owner: APIServiceOwner | None = None
    """Watches the APIService of external metrics. None if that is off."""
    keda: KedaStats | None = None
    """None if KEDA is off."""
    background: Background = field(default_factory=Background)
    """Runs the tasks of the process."""
    probes: ServingStats | None = None
    """Counters of the probe listener's limits. None if there is no such listener."""
    rules: RuleService | None = None
    """None without a rules file."""
    delegation: Delegation | None = None
    """None without delegates."""
    recorder: Recorder | None = None
    """None without a recording."""
    ratios: PromisedRatios | None = None
    """None in tests of other parts."""
    memory: ClusterMemory | None = None
    """Keeps what was learned. None if that is off."""
    history: HistoryRing | None = None
    """None if the view API is off."""
    ahead: Learner | None = None
    """None if nothing looks ahead."""


def register(
    registry: CollectorRegistry, parts: MetricSources, clock: Callable[[], float] = time.time
) -> None:
    """Add the metrics of the adapter and of the process to a registry."""
    ProcessCollector(registry=registry)
    registry.register(_Adapter(parts, clock))


class _Adapter(Collector):
    def __init__(self, parts: MetricSources, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._clock = clock

    def describe(self) -> Iterator[Metric]:
        """Yield nothing at registration, because the parts are not running yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        parts, now = self._parts, self._clock()
        yield BUILD.rows([((__version__, "serve"), 1)])
        yield from _values(parts.pipelines, now)
        yield from _coverage(parts.coverage)
        yield ABSENT.by(parts.provider.absent)
        yield from source_families(parts.pipelines.current, now)
        yield from _cluster(parts.objects, now)
        yield from access_families(parts.server, parts.probes, parts.security, parts.lifetimes)
        yield LAG.durations([((), parts.lag.seconds)])
        yield CONFIG.one(not parts.watch.problem)
        yield RELOADS.one(parts.watch.reloads)
        yield BACKGROUND.by(parts.background.failures)
        if parts.ratios is not None:
            yield PROMISES.one(parts.ratios.size)
            yield FORGOTTEN.one(parts.ratios.forgotten)
        if parts.memory is not None:
            yield REMEMBERED.one(not parts.memory.problem)
        if parts.keda is not None:
            yield from keda_families(parts.keda)
        if parts.rules is not None:
            yield from rule_families(parts.rules)
        if parts.delegation is not None:
            yield from delegate_families(parts.delegation)
        if parts.ahead is not None:
            yield from ahead.ahead_families(parts.ahead)
        if parts.recorder is not None:
            yield RECORDING.one(not parts.recorder.stopped)
            yield RECORDED.one(parts.recorder.size)
            yield UNRECORDED.one(parts.recorder.left_out)
        if parts.history is not None:
            yield HISTORY.one(parts.history.size)
            yield UNKEPT.one(parts.history.left_out)
        if parts.owner is not None and parts.owner.foreign is not None:
            yield FOREIGN.one(parts.owner.foreign)


def _values(pipelines: PipelineSwitcher, now: float) -> Iterator[Metric]:
    store = pipelines.current.store
    yield REJECTED.by(store.rejects.totals)
    yield SHARING.by(store.sharing_nodes)
    exporters, devices, pods, all_series = store.size
    yield EXPORTERS.one(exporters)
    yield SILENT.one(store.count_silent(now))
    ages = store.ages(now)
    if ages is not None:
        youngest, oldest = ages
        yield YOUNGEST.one(youngest)
        yield OLDEST.one(oldest)
    yield DEVICES.one(devices)
    yield NAMED.one(pods)
    yield SERIES.one(all_series)


def _coverage(coverage: Coverage) -> Iterator[Metric]:
    counted = coverage.last
    if counted is None:
        return
    yield IDLE.pairs(coverage.idle, ("true", "false"))
    if coverage.attributed is not None:
        yield ATTRIBUTED.by(coverage.attributed)
    yield GPU_PODS.one(counted.pods)
    yield MEASURED.one(counted.measured)
    yield UNMEASURED.by(counted.missing)
    yield GPU_SECONDS.rows(coverage.ledger.rows())
    yield UNSIZED.one(coverage.ledger.unsized)


def _cluster(objects: ObjectLookup, now: float) -> Iterator[Metric]:
    watched: dict[str, Fed] = {
        "pods": objects.pod_index,
        "services": objects.services,
        "nodes": objects.nodes,
    }
    if objects.hpas is not None:
        watched["hpas"] = objects.hpas
    yield SYNCED.rows(((name,), collection.synced) for name, collection in watched.items())
    yield HEARD.rows(
        ((name,), collection.age(now)) for name, collection in watched.items() if collection.synced
    )
    yield UNREAD.rows(((name,), collection.left_out) for name, collection in watched.items())
    yield PODS.one(len(objects.pod_index))

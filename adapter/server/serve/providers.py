"""Build what answers the APIs: the catalogue's metrics, those of rules, and the view API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adapter.answers.api.external import GpuExternalMetrics
from adapter.answers.api.provider import GpuMetricsProvider
from adapter.answers.history.ring import HistoryRing
from adapter.answers.promises.ratios import PromisedRatios
from adapter.answers.rules.ruleproviders import CustomWithRules, ExternalWithRules
from adapter.answers.rules.service import RuleService
from adapter.answers.view.devices import Devices
from adapter.answers.view.gpuhistories import GPUHISTORIES, GpuHistories
from adapter.answers.view.gpunodes import GPUNODES, GpuNodes
from adapter.answers.view.gpupods import GPUPODS, GpuPods
from adapter.answers.view.gpupools import GPUPOOLS, GpuPools
from adapter.answers.view.gpus import GPUS, Gpus
from adapter.answers.view.gpuworkloads import GPUWORKLOADS, GpuWorkloads
from adapter.answers.view.historyhours import HISTORYHOURS, HistoryHours
from adapter.answers.view.minutes import MinuteRecorder
from adapter.answers.view.snapshots import CurrentValues
from adapter.answers.view.standings import NodeStandings
from adapter.config.settings import Settings
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.metricsapi import VIEW_GROUP
from adapter.server.serve.ahead import build_ahead, loads_part
from adapter.server.serve.build import Loop
from adapter.server.serve.memory import ClusterMemory, MemoryPart, cluster_memory
from adapter.server.serve.pastreader import past_reader
from adapter.server.serve.pipeline import PipelineSwitcher
from adapter.server.serve.rules import build_rules
from apiservice.documents.health import Check
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider
from apiservice.view.resource import ServedResource, ViewGroup

if TYPE_CHECKING:
    from adapter.server.ahead.learner import Learner

VERSION: Final = "v1alpha1"


class ViewApi(NamedTuple):
    """The view API of one process."""

    group: ViewGroup
    history: HistoryRing
    loops: Sequence[Loop]
    """What keeps the history."""


def build_view(
    settings: Settings,
    values: CurrentValues,
    objects: ObjectLookup,
    client: Any,
    ratios: PromisedRatios | None = None,
) -> ViewApi | None:
    """Return the view API; None if it is off, so that HPAs are not read."""
    if objects.hpas is None:
        return None
    pods, hpas, devices = objects.pod_index, objects.hpas, Devices()
    standings = NodeStandings(pods, objects.nodes)
    workloads = GpuWorkloads(values, pods, hpas)
    history = HistoryRing(settings.view.history_bytes)
    gpus = Gpus(values, pods, devices, standings)
    nodes = GpuNodes(values, pods, devices, standings)
    pools = GpuPools(gpus, nodes, standings, history)
    histories = GpuHistories(history, pods, hpas, workloads)
    group = ViewGroup(
        VIEW_GROUP,
        VERSION,
        (
            ServedResource(GPUS, gpus),
            ServedResource(GPUNODES, nodes),
            ServedResource(GPUPOOLS, pools, pools.whole),
            ServedResource(GPUPODS, GpuPods(values, pods, devices, hpas, ratios)),
            ServedResource(GPUWORKLOADS, workloads),
            ServedResource(GPUHISTORIES, histories, histories.whole),
            ServedResource(HISTORYHOURS, HistoryHours(history)),
        ),
    )
    stale_after = settings.cluster.stale_after
    recorder = MinuteRecorder(history, values, pods, hpas, workloads, pools, stale_after)
    reader = past_reader(client, history)
    return ViewApi(group, history, (recorder.run, *([reader.run] if reader else ())))


def view_groups(view: ViewApi | None, rules: RuleService | None) -> Sequence[ViewGroup]:
    """Return the groups of read-only resources: the view API, and ``metrics.k8s.io``."""
    groups = (view.group if view else None, rules.resource_group if rules else None)
    return [group for group in groups if group is not None]


class Providers(NamedTuple):
    """The providers of one process."""

    gpu: GpuMetricsProvider
    """The catalogue's custom metrics."""
    custom: CustomMetricsProvider
    external: ExternalMetricsProvider | None
    """None if external metrics are off."""
    rules: RuleService | None
    """None without a rules file."""
    ratios: PromisedRatios
    """What all APIs of the process learn together."""
    ahead: Learner | None
    """Learns loads ahead of demand; None if that is off."""
    memory: ClusterMemory | None
    """Keeps over restarts what was learned; None if that is off."""

    @property
    def loops(self) -> Iterator[tuple[str, Loop]]:
        """What keeps the providers current, by the name of the task."""
        if self.rules is not None:
            yield "rules", self.rules.run
        if self.memory is not None:
            yield "memory", self.memory.run
        if self.ahead is not None:
            yield "ahead", self.ahead.run

    @property
    def checks(self) -> Sequence[Check]:
        """What readiness waits for: the first discovery of series, successful or not."""
        rules = self.rules
        if rules is None:
            return ()
        waits = "the series of the rules have not been discovered yet"
        return (Check("rules", lambda: None if rules.settled else waits, expected=True),)


def build_providers(
    settings: Settings,
    pipelines: PipelineSwitcher,
    objects: ObjectLookup,
    client: Any,
) -> Providers:
    """Return the providers.

    Raises:
        ConfigError: the rules file cannot be used at all, or a credential cannot be used.
    """
    ratios = PromisedRatios(objects.pod_index)
    gpu = GpuMetricsProvider(pipelines, pipelines, objects, ratios)
    custom: CustomMetricsProvider = gpu
    external: ExternalMetricsProvider | None = None
    if settings.external.enabled:
        external = GpuExternalMetrics(pipelines, pipelines, objects, gpu.absent, ratios)
    rules = build_rules(settings, objects, client)
    if rules is not None:
        prefer = settings.rules.prefer == "rules"
        beside = CustomWithRules(gpu, rules.custom, prefer_rules=prefer)
        rules.shared["custom"] = lambda: beside.both
        custom = beside
        if external is not None:
            both = ExternalWithRules(external, rules.external, prefer_rules=prefer)
            rules.shared["external"] = lambda: both.both
            external = both
    ahead = build_ahead(settings, pipelines, objects)
    parts = [MemoryPart("promises", ratios.merge)]
    parts += [] if ahead is None else [loads_part(ahead)]
    memory = cluster_memory(settings.memory, client, parts)
    return Providers(gpu, custom, external, rules, ratios, ahead, memory)

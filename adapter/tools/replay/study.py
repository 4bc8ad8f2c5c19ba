"""One replay: read a recording, compare it with the controller, and try other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from adapter.answers.promises.workload import PromisedWorkload
from adapter.figures import count
from adapter.hpa import ControllerOptions, HpaSpec, MetricKind, MetricSpec
from adapter.hpa.podreplicas import Tolerances
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.divisible import Divisible, divisible
from adapter.pipeline.catalog.promise import Promise
from adapter.pipeline.cluster.gpuresources import devices
from adapter.server.recording.events import Losses, Recording
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.agreement import Agreement, compare
from adapter.tools.replay.defects import Defects
from adapter.tools.replay.demand import RecordedDemand, demands, lacking_share, require_demand
from adapter.tools.replay.failures import BlindTime, outage_of
from adapter.tools.replay.nodestudy import NodeOptions, NodeStudy, study_nodes
from adapter.tools.replay.options import Failure
from adapter.tools.replay.outcome import ReplayOutcome, outcome_of
from adapter.tools.replay.queuemetric import QueueEvidence, queue_of
from adapter.tools.replay.scrutiny import Scrutiny, note_syncs, saturated_times
from adapter.tools.replay.simulation import Moment, SimulatedWorld, simulate
from adapter.tools.replay.syncs import RecordedSync, Syncs
from adapter.tools.replay.variants import Tried, Variant, variants

BUSY: Final = 0.9
"""Share of the highest value that a pod can carry without requests that wait for long."""
_ASSUMED_BOOT: Final = 60.0
"""Seconds, if no new pod got a value in the recording."""


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What to try, and how to judge it."""

    tried: Tried = field(default_factory=Tried)
    metric: str = ""
    """Of the HPA; empty for the first one that work is divided into."""
    boot: float | None = None
    """Seconds from the decision until a new pod has a value; None for the recorded median."""
    limit: float | None = None
    """Load of a pod, in the metric's unit, above which time counts as over the limit; None for the
    HPA's own target and its tolerance."""
    capable: bool = False
    """Without ``limit``, take what a pod can carry: 90 % of the highest value, or the highest load
    of the recording if the metric has none."""
    allowed: float = 600.0
    """Seconds a day that may be over the limit."""
    gpu_hour: float | None = None
    """Price of a GPU-hour."""
    failure: Failure | None = None
    """To inject."""
    nodes: NodeOptions | None = None
    """The headroom of nodes to try."""
    controller: ControllerOptions = field(default_factory=ControllerOptions)


@dataclass(frozen=True, slots=True)
class VariantRun:
    """One variant, and what it comes to."""

    variant: Variant
    outcome: ReplayOutcome
    moments: Sequence[Moment]
    failed: FailedRun | None = None


@dataclass(frozen=True, slots=True)
class FailedRun:
    """The same with the failure."""

    outcome: ReplayOutcome
    moments: Sequence[Moment]
    fewer: int
    """Replicas, at most, fewer than without the failure."""
    more: int
    """And more."""


@dataclass(frozen=True, slots=True)
class Study:
    """The result of a replay."""

    spec: HpaSpec
    metric: MetricSpec
    start: float
    """Epoch seconds."""
    end: float
    syncs: int
    boot: float
    boots: int
    """Pods that got their first value in the recording; 0 if the time is an assumption."""
    gpus: float
    """GPUs of one replica; 0 if no pod of the recording requests one."""
    limit: int
    """Thousandths."""
    recorded: ReplayOutcome
    """What really happened."""
    recorded_moments: Sequence[Moment]
    agreement: Agreement
    runs: Sequence[VariantRun]
    """The HPA's own settings first."""
    absent: Counter[str]
    """Why pods had no value, over all syncs."""
    losses: Losses
    defects: Defects
    """What is missing in the recording, with its times."""
    saturated: Defects
    """When the pods did as much as they can."""
    outage: BlindTime | None = None
    """What the failure does to the values."""
    nodes: NodeStudy | None = None
    """The node pool, if headroom was to be tried."""
    queue: QueueEvidence | None = None
    """How requests waited, for utilization of servers that show it."""
    remarks: Sequence[str] = ()
    """What the replay leaves out."""
    servers: bool = False
    """A page of a server was read."""
    lacking: float = 0.0
    """Share of the recorded demand that has no value, because some of the pods had none."""


class Trial:
    """What one HPA of a recording needs to try other settings.

    Args:
        begin: see :class:`adapter.tools.replay.virtualcluster.VirtualCluster`.

    Raises:
        ClientError: the recording has nothing of this HPA, or its metric cannot be replayed.
        RecordingError: the recording cannot be read.
    """

    def __init__(
        self,
        recording: Recording,
        spec: HpaSpec,
        options: StudyOptions,
        begin: Callable[[Promise], PromisedWorkload] = PromisedWorkload,
    ) -> None:
        self._recording = recording
        self._whole = spec
        self._options = options
        self._defects = Defects()
        period = options.controller.sync_period
        reader = Syncs(spec, period, begin)
        scrutiny = Scrutiny(spec, self._defects)
        self._syncs = syncs = list(reader.of(scrutiny.watch(recording.events())))
        if not syncs:
            raise ClientError(
                f"the recording has no sync of HPA {spec.namespace}/{spec.name}: check the name, "
                "and that its status is in it for longer than one sync (`serve`: view.enabled)"
            )
        self._remarks: list[str] = []
        self.index, self.kind = _metric(spec, options.metric, reader.catalog, self._remarks)
        self.spec = replace(spec, metrics=(spec.metrics[self.index],))
        """The HPA with the one metric that is replayed."""
        self._servers = scrutiny.servers
        self._queue: QueueEvidence | None = None
        highest = self.kind.highest
        if scrutiny.servers and highest is not None:
            self._queue = queue_of(recording, self.spec, highest, period)
        self._work = work = demands(spec, syncs, self.index, highest)
        require_demand(self.spec, syncs, work)
        note_syncs(syncs, work, period, self._defects)
        self._boot, self._boots = _boot(syncs, self.index, options.boot)
        self._limit = _limit(self.spec, self.kind, work, options)
        self._gpus = _gpus(syncs)
        self._world = SimulatedWorld(self._boot, self.kind.highest, options.controller)
        self._outage: BlindTime | None = None
        if options.failure is not None:
            failure = options.failure
            self._outage = outage_of(failure, recording, spec, period, self.index, syncs, work)

    def run(self, variant: Variant) -> VariantRun:
        """Return what one variant comes to."""
        moments = self._moments(variant, None)
        outcome = self._outcome(moments)
        if self._outage is None:
            return VariantRun(variant, outcome, moments)
        failed = self._moments(variant, self._outage)
        apart = [a.replicas - b.replicas for a, b in zip(moments, failed, strict=True)]
        without = FailedRun(
            self._outcome(failed),
            failed,
            fewer=max(0, *apart),
            more=max(0, *(-difference for difference in apart)),
        )
        return VariantRun(variant, outcome, moments, without)

    def _moments(self, variant: Variant, outage: BlindTime | None) -> list[Moment]:
        start = self._syncs[0].seen.replicas
        return list(simulate(variant.spec, self._work, self._world, start, outage))

    def _outcome(self, moments: Sequence[Moment]) -> ReplayOutcome:
        return outcome_of(moments, self._limit, self._gpus, self._options.controller.sync_period)

    def study(self, runs: Sequence[VariantRun]) -> Study:
        """Return the result. The first run is that of the HPA's own settings."""
        syncs, happened = self._syncs, _recorded_moments(self._syncs, self._work)
        nodes, wanted = None, self._options.nodes
        if wanted is not None:
            nodes = study_nodes(self.spec, self._work, syncs, wanted, self._world, self._gpus)
        absent: Counter[str] = Counter()
        for sync in syncs:
            absent.update(sync.absent)
        return Study(
            spec=self.spec,
            metric=self.spec.metrics[0],
            start=syncs[0].time,
            end=syncs[-1].time,
            syncs=len(syncs),
            boot=self._boot,
            boots=self._boots,
            gpus=self._gpus,
            limit=self._limit,
            recorded=self._outcome(happened),
            recorded_moments=happened,
            agreement=compare(self._whole, syncs, self._options.controller),
            runs=runs,
            absent=absent,
            losses=self._recording.losses,
            defects=self._defects,
            saturated=saturated_times(syncs, self._work, self._options.controller.sync_period),
            outage=self._outage,
            nodes=nodes,
            queue=self._queue,
            remarks=self._remarks,
            servers=self._servers,
            lacking=lacking_share(self._work),
        )


def study(recording: Recording, spec: HpaSpec, options: StudyOptions) -> Study:
    """Replay one HPA with each combination of the settings to try; raises as :class:`Trial`."""
    trial = Trial(recording, spec, options)
    window = options.controller.downscale_stabilization
    return trial.study(
        [trial.run(variant) for variant in variants(trial.spec, options.tried, window)]
    )


def _metric(
    spec: HpaSpec, wanted: str, catalog: Catalog, remarks: list[str]
) -> tuple[int, Divisible]:
    """Return the metric to replay: its index, and how work is divided into it."""
    choices: list[tuple[int, Divisible]] = []
    for index, metric in enumerate(spec.metrics):
        kind = divisible(metric.name, catalog.metrics) if metric.kind is MetricKind.PODS else None
        if kind is not None and wanted in ("", metric.name):
            choices.append((index, kind))
    names = ", ".join(f"{metric.kind} {metric.name}" for metric in spec.metrics)
    if not choices:
        why = f"{wanted} is not one" if wanted else f"it has {names}"
        raise ClientError(
            f"HPA {spec.namespace}/{spec.name} has no metric of type Pods that work is divided "
            f"into, such as gpu_utilization or inference_requests_running: {why}"
        )
    index, kind = choices[0]
    if len(spec.metrics) > 1:
        name = spec.metrics[index].name
        remarks.append(
            f"the HPA has {count(len(spec.metrics), 'metric')} ({names}): the table is about "
            f"{name} alone"
        )
    return index, kind


def _boot(syncs: Sequence[RecordedSync], index: int, given: float | None) -> tuple[float, int]:
    """Return the seconds from creation until the first value, and how many pods show it."""
    times: dict[str, float] = {}
    old = {pod.uid for pod in syncs[0].pods}
    for sync in syncs:
        values = sync.seen.values[index]
        by_pod = values if isinstance(values, Mapping) else {}
        for pod in sync.pods:
            if pod.ref.name in by_pod and pod.uid not in old and pod.born:
                times.setdefault(pod.uid, max(0.0, sync.time - pod.born))
    if given is not None:
        return given, len(times)
    return (median(times.values()), len(times)) if times else (_ASSUMED_BOOT, 0)


def _limit(
    spec: HpaSpec, kind: Divisible, work: Sequence[RecordedDemand], options: StudyOptions
) -> int:
    if options.limit is not None:
        return round(options.limit * 1000)
    if options.capable and kind.highest is not None:
        return round(BUSY * kind.highest)
    if options.capable:
        loads = [row.total // row.measured for row in work if row.total is not None]
        return max(loads, default=0)
    tolerances = Tolerances.of(spec.behavior, options.controller.tolerance)
    return round(spec.metrics[0].target.milli * (1 + tolerances.up))


def _gpus(syncs: Sequence[RecordedSync]) -> float:
    """Return the devices that one replica requests; the newest pod decides."""
    for sync in reversed(syncs):
        for pod in sync.pods:
            if pod.gpus:
                return float(sum(devices(pod.gpus).values()))
    return 0.0


def _recorded_moments(
    syncs: Sequence[RecordedSync], work: Sequence[RecordedDemand]
) -> list[Moment]:
    moments = []
    for sync, demand in zip(syncs, work, strict=True):
        replicas = sum(not pod.deleting and not pod.finished for pod in sync.pods)
        load = demand.total // demand.measured if demand.total is not None else None
        moments.append(Moment(sync.time, replicas, demand.measured, load, demand.saturated))
    return moments

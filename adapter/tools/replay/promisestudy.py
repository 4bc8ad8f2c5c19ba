"""Scale one HPA of a recording on a latency promise: what it keeps, can take, and would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.answers.promises.capacity import PodCapacity, middle
from adapter.answers.promises.ratio import describe_unknown
from adapter.hpa import HpaSpec, MetricKind, MetricSpec, MetricTarget, TargetKind
from adapter.hpa import quantity as quantities
from adapter.pipeline.catalog.increases import Quantile
from adapter.pipeline.catalog.promise import (
    LATENCIES,
    SLO_RATIO,
    LatencyBound,
    Promise,
    PromiseError,
    describe_seconds,
    promise_in,
)
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.server.recording.events import Recording
from adapter.tools.client.errors import ClientError
from adapter.tools.generate.presets import PROMISED
from adapter.tools.replay.judgement import a_day
from adapter.tools.replay.servedlatencies import ServedLatencies
from adapter.tools.replay.serverreading import ServerReading, SettledWorkload
from adapter.tools.replay.study import Study, StudyOptions, Trial, VariantRun
from adapter.tools.replay.variants import Variant
from apiservice.labels.manifest import selector_text
from apiservice.labels.selector import EVERYTHING, SelectorError, parse

TARGET: Final = int(quantities.parse(PROMISED.target) * 1000)
"""That of the recipe, in thousandths."""
_NAMES: Final[Mapping[Latency, str]] = {latency: key for key, latency in LATENCIES.items()}


class StatedPromise(NamedTuple):
    """A promise, and who states it."""

    labels: Mapping[str, str]
    """As in the selector of a metric: ``ttft_p90`` -> ``1s``."""
    bounds: Promise
    own: MetricSpec | None = None
    """The metric of the HPA that states it; None for the command line."""


class MissedBound(NamedTuple):
    """What was later than one bound of a promise, in the recording."""

    bound: LatencyBound
    late: float
    """Values of the histogram that were later, at least."""
    values: float
    """All values."""
    exact: bool
    """The histogram has this bound. Otherwise more may have been later."""
    quantile: Quantile | None
    """The promised one; None without a value."""

    @property
    def share(self) -> float:
        """Of the values, 0-1."""
        return self.late / self.values if self.values else 0.0

    @property
    def kept(self) -> bool:
        """Whether the bound was kept, as well as the histogram shows it."""
        within = self.quantile is not None and self.quantile.value <= self.bound.seconds
        return self.share <= self.bound.tolerance and (self.exact or within)


@dataclass(frozen=True, slots=True)
class PromiseAnswer:
    """What the recording says of latencies, and of a promise if one is stated."""

    served: ServedLatencies
    stated: StatedPromise | None = None
    missed: Sequence[MissedBound] = ()
    capacities: Mapping[str, PodCapacity | None] | None = None
    """Type of GPU, empty if it is not known -> what a pod can take; None if nobody knows."""
    lowest: Mapping[str, float] = field(default_factory=dict)
    """Type of GPU -> the lowest load of a pod that was seen."""
    study: Study | None = None
    """The recorded replicas, measured by the capacity."""
    run: VariantRun | None = None
    """The HPA on the promise. None if the evidence does not support it."""
    doubt: str = ""
    """Why there is no run."""

    @property
    def kept(self) -> bool:
        """Whether the recorded replicas kept the promise, over all of the time."""
        return all(row.kept for row in self.missed)


def stated_promise(
    spec: HpaSpec, labels: Mapping[str, str], promise: Promise
) -> StatedPromise | None:
    """Return the promise of the command line, else that of the HPA's metric; None without one.

    Raises:
        ClientError: that of the HPA cannot be meant.
    """
    if promise:
        return StatedPromise(labels, promise)
    for metric in spec.metrics:
        if metric.kind is not MetricKind.PODS or metric.name != SLO_RATIO:
            continue
        try:
            bounds = promise_in(parse(selector_text(metric.selector)).requirements)
        except (PromiseError, SelectorError) as error:
            raise ClientError(f"HPA {spec.namespace}/{spec.name}: {error}") from None
        written = {bound.key: describe_seconds(bound.seconds) for bound in bounds}
        return StatedPromise(written, bounds, metric)
    return None


def latencies_of(recording: Recording, spec: HpaSpec) -> PromiseAnswer:
    """Return what the pods of an HPA show of latencies; raises RecordingError."""
    reading = ServerReading(spec, (), EVERYTHING)
    reading.read(recording)
    return PromiseAnswer(reading.served)


def study_promise(
    recording: Recording, spec: HpaSpec, stated: StatedPromise, options: StudyOptions
) -> PromiseAnswer:
    """Learn the capacity at a promise, and replay the HPA on it with the recipe's target.

    Raises:
        ClientError: the recording has nothing of this HPA.
        RecordingError: the recording cannot be read.
    """
    manifest = {"matchLabels": dict(stated.labels)}
    reading = ServerReading(spec, stated.bounds, parse(selector_text(manifest)))
    reading.read(recording)
    answer = PromiseAnswer(
        reading.served, stated, tuple(_measure_bounds(reading.served, stated.bounds))
    )
    unseen = [row.bound for row in answer.missed if not row.values]
    if unseen:
        names = " and ".join(_NAMES[bound.latency] for bound in unseen)
        return replace(
            answer,
            doubt=f"no recorded page of its servers counts {names} in a histogram: "
            "docs/inference.md#latencies-and-tokens names the servers that have it",
        )
    capacities = reading.workload.capacities()
    lessons = reading.workload.lessons()
    lowest = {gpu: middle(min(lesson.steps)) for gpu, lesson in lessons.items() if lesson.steps}
    answer = replace(answer, capacities=capacities, lowest=lowest)
    if not any(capacities.values()):
        return replace(answer, doubt=_explain_unknown(reading, capacities))
    metric = MetricSpec(
        MetricKind.PODS, SLO_RATIO, MetricTarget(TargetKind.AVERAGE_VALUE, TARGET), manifest
    )
    made = replace(spec, metrics=(metric,))
    trial = Trial(
        recording,
        made,
        replace(options, limit=1.0),
        lambda promise: SettledWorkload(promise, capacities),
    )
    run = _run(trial, made, options)
    return replace(answer, study=trial.study([run]), run=run)


def _run(trial: Trial, made: HpaSpec, options: StudyOptions) -> VariantRun:
    """Return the HPA on the promise, with a higher maximum if the load needs one."""
    settings = f"{SLO_RATIO} {PROMISED.target}"
    run = trial.run(Variant(made, settings))
    if a_day(run, run.outcome.over) <= options.allowed:
        return run
    if run.outcome.highest < made.max_replicas:
        return run
    more = replace(made, max_replicas=2 * made.max_replicas)
    higher = trial.run(Variant(more, f"{settings}, max {more.max_replicas}"))
    return higher if higher.outcome.over < run.outcome.over else run


def _measure_bounds(served: ServedLatencies, promise: Promise) -> Sequence[MissedBound]:
    rows = []
    for bound in promise:
        whole = served.whole(bound.latency)
        if whole is None:
            rows.append(MissedBound(bound, 0.0, 0.0, exact=False, quantile=None))
            continue
        exact = whole.below(bound.seconds) is not None
        late = whole.over(bound.seconds) or 0.0
        quantile = whole.quantile(bound.share)
        rows.append(MissedBound(bound, late, whole.count, exact, quantile))
    return rows


def _explain_unknown(reading: ServerReading, capacities: Mapping[str, PodCapacity | None]) -> str:
    """Return why no capacity is known."""
    if not capacities:
        return "the servers' pages show neither running nor waiting requests"
    evidence = {gpu: reading.workload.evidence(gpu) for gpu in capacities}
    return describe_unknown(reading.workload.promise, max(evidence.values()))

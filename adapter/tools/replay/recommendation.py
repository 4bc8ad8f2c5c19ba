"""Settings for one HPA, from what a recording shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapter.hpa import HpaSpec
from adapter.pipeline.catalog.promise import Promise
from adapter.server.recording.events import Recording
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.judgement import Judgement, a_day, judge
from adapter.tools.replay.promisestudy import (
    PromiseAnswer,
    latencies_of,
    stated_promise,
    study_promise,
)
from adapter.tools.replay.queuemetric import QueueEvidence, running_metric
from adapter.tools.replay.study import Study, StudyOptions, Trial, VariantRun
from adapter.tools.replay.variants import Tried, Variant, difference, variants

_SHARES: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Targets to try, as shares of the highest value."""
_FACTORS: Final = (0.5, 0.75, 1.25, 1.5, 2.0)
"""Targets to try of a metric without a highest value, as multiples of the present one."""
_WINDOWS: Final = (60.0, 300.0, 600.0)
"""Seconds of the stabilization window for scaling down."""
_WORTH: Final = 0.98
"""Share of the GPU-hours to which a further change has to reduce them."""


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The same HPA on the requests that run in a pod."""

    evidence: QueueEvidence
    run: VariantRun


@dataclass(frozen=True, slots=True)
class HpaAdvice:
    """What to do with one HPA, by other settings of its own metric."""

    study: Study
    """The present settings, and the best others if there are any."""
    judgement: Judgement
    queue: QueueAnswer | None = None
    """Set for utilization of servers that show their queue: it takes the place of the rest."""


@dataclass(frozen=True, slots=True)
class HpaAnswer:
    """All that a recording says of one HPA."""

    spec: HpaSpec
    promise: PromiseAnswer | None
    """What its servers keep; None if no page of a server was read."""
    advice: HpaAdvice | None
    """None if a promise takes its place, or if there is a problem."""
    problem: str = ""
    """Why the HPA's own metric cannot be replayed."""


def answer(
    recording: Recording,
    spec: HpaSpec,
    options: StudyOptions,
    labels: Mapping[str, str],
    promise: Promise,
) -> HpaAnswer:
    """Answer for one HPA: on a promise if one is stated, else by settings of its own metric.

    Args:
        labels: of the promise of the command line; empty without one.
        promise: the same, read.

    Raises:
        ClientError: the recording has nothing of this HPA, or neither its metric nor its servers
            say anything.
        RecordingError: the recording cannot be read.
    """
    stated = stated_promise(spec, labels, promise)
    if stated is not None:
        return HpaAnswer(spec, study_promise(recording, spec, stated, options), None)
    advice, problem = None, ""
    try:
        advice = recommend(recording, spec, options)
    except ClientError as error:
        problem = str(error)
    if advice is not None and not advice.study.servers:
        return HpaAnswer(spec, None, advice)
    promise_answer = latencies_of(recording, spec)
    if advice is None and not promise_answer.served.latencies():
        raise ClientError(problem)
    return HpaAnswer(spec, promise_answer, advice, problem)


def recommend(recording: Recording, spec: HpaSpec, options: StudyOptions) -> HpaAdvice:
    """Try other settings of one HPA.

    Raises:
        ClientError: the recording has nothing of this HPA, or its metric cannot be replayed.
        RecordingError: the recording cannot be read.
    """
    trial = Trial(recording, spec, options)
    now = trial.run(Variant(trial.spec, "now", now=True))
    best = _search(trial, now, options)
    study = trial.study([now, best] if best is not now else [now])
    judgement = judge(study, options.allowed)
    if study.queue is None or not study.queue.enough:
        return HpaAdvice(study, judgement)
    return HpaAdvice(study, judgement, _queue(recording, trial.spec, study.queue, options))


def _search(trial: Trial, now: VariantRun, options: StudyOptions) -> VariantRun:
    """Return the cheapest settings: first the target, then what else is worth a change."""
    target, highest = trial.spec.metrics[0].target.milli, trial.kind.highest
    targets = (
        [round(factor * target) for factor in _FACTORS]
        if highest is None
        else [round(share * highest) for share in _SHARES]
    )
    best = _best_run(trial, now, Tried(targets=[target, *targets]), options)
    if not _is_within_allowance(best, options):
        best = _best_run(trial, best, Tried(highs=[2 * trial.spec.max_replicas]), options)
        best = _best_run(trial, best, Tried(targets=[target, *targets]), options)
    for tried in (Tried(lows=[1]), Tried(windows=_WINDOWS)):
        best = _best_run(trial, best, tried, options)
    return best


def _best_run(trial: Trial, start: VariantRun, tried: Tried, options: StudyOptions) -> VariantRun:
    """Return the best of some settings that differ from those of a run."""
    window = options.controller.downscale_stabilization
    best = start
    for made in variants(start.variant.spec, tried, window)[1:]:
        text = difference(made.spec, trial.spec, window)
        if text:
            run = trial.run(Variant(made.spec, text))
            best = run if _is_better(run, best, options) else best
    return best


def _is_better(run: VariantRun, best: VariantRun, options: StudyOptions) -> bool:
    if not _is_within_allowance(best, options):
        return run.outcome.over < best.outcome.over
    return _is_within_allowance(run, options) and (
        run.outcome.gpu_seconds < _WORTH * best.outcome.gpu_seconds
    )


def _is_within_allowance(run: VariantRun, options: StudyOptions) -> bool:
    return a_day(run, run.outcome.over) <= options.allowed


def _queue(
    recording: Recording, spec: HpaSpec, evidence: QueueEvidence, options: StudyOptions
) -> QueueAnswer:
    metric = running_metric(evidence.target)
    made = replace(spec, metrics=(metric,))
    trial = Trial(recording, made, replace(options, limit=evidence.level / 1000))
    return QueueAnswer(evidence, trial.run(Variant(made, metric.name)))


def reasons(advice: HpaAdvice) -> Sequence[str]:
    """Return why the recording does not support a recommendation; a queue needs no sum."""
    return () if advice.queue is not None else advice.judgement.doubts

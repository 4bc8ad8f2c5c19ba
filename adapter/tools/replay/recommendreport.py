"""The report of ``replay recommend``: a row for each HPA, the evidence, and the manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adapter.config.process.logs import silence_logs
from adapter.config.process.output import Screen, table
from adapter.figures import age, count, decimal, number
from adapter.hpa import ControllerOptions, HpaSpec
from adapter.pipeline.catalog.promise import Promise
from adapter.server.recording.events import RecordingError
from adapter.tools.client.access import Json
from adapter.tools.client.command import FINE, UNSEEN, complain, show
from adapter.tools.client.errors import ClientError
from adapter.tools.generate.promiseoptions import take_promise
from adapter.tools.idle.prices import PriceList, load
from adapter.tools.replay.hpasource import read_hpas, spec_of
from adapter.tools.replay.inputs import check_inputs, recording_of
from adapter.tools.replay.judgement import a_day
from adapter.tools.replay.manifests import format_yaml, with_promise, with_settings
from adapter.tools.replay.outcome import ReplayOutcome
from adapter.tools.replay.promisereport import (
    advice_lines,
    latency_lines,
    others_line,
    promise_json,
    promise_lines,
)
from adapter.tools.replay.promisestudy import PromiseAnswer
from adapter.tools.replay.queuereport import queue_json
from adapter.tools.replay.recommendation import HpaAdvice, HpaAnswer, answer, reasons
from adapter.tools.replay.report import ReplayReport
from adapter.tools.replay.size import SizeAnswer, size_of
from adapter.tools.replay.sizereport import size_json, size_lines
from adapter.tools.replay.study import Study, StudyOptions, VariantRun

_HEADER = ("HPA", "NOW", "RECOMMENDED", "GPU-H", "OVER-LIMIT", "CHANGES")


@dataclass(frozen=True, slots=True)
class AdvisedHpa:
    """One HPA, and what to do with it."""

    manifest: Json
    answer: HpaAnswer | None
    problem: str = ""
    """Why nothing is known of it."""
    size: SizeAnswer = field(default_factory=SizeAnswer)
    """Which smaller GPUs would have been enough for its pods."""

    @property
    def name(self) -> str:
        """Namespace and name."""
        meta = self.manifest["metadata"]
        return f"{meta['namespace']}/{meta['name']}"

    @property
    def advice(self) -> HpaAdvice | None:
        """What other settings of its own metric do."""
        return self.answer.advice if self.answer is not None else None

    @property
    def promise(self) -> PromiseAnswer | None:
        """What its servers keep, and the stated promise."""
        return self.answer.promise if self.answer is not None else None

    @property
    def promised(self) -> PromiseRun | None:
        """The HPA on the stated promise; None without one, or without evidence."""
        promise = self.promise
        if promise is None or promise.study is None or promise.run is None:
            return None
        return PromiseRun(promise, promise.study, promise.run)


class PromiseRun(NamedTuple):
    """An answer with its replay."""

    answer: PromiseAnswer
    study: Study
    """Of the recorded replicas."""
    run: VariantRun


@dataclass(frozen=True, slots=True)
class RecommendReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    hpas: Sequence[AdvisedHpa]
    allowed: float
    """Seconds a day that may be over the limit."""
    prices: PriceList
    """Of GPUs."""

    @property
    def status(self) -> int:
        """See the port: 0, because a recommendation is not a fault of the cluster."""
        return 0

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        lines = table([self._row(hpa) for hpa in self.hpas], _HEADER)
        for hpa in self.hpas:
            lines += ["", screen.style(hpa.name, "bold")]
            for text in self.evidence(hpa):
                lines += screen.wrap(f"- {text}", hanging="  ")
            manifest = _manifest(hpa)
            if manifest is not None:
                lines += ["", "# apply this manifest, or commit it:", "---"]
                lines += format_yaml(manifest).splitlines()
        return lines

    def json(self) -> Json:
        """See the port."""
        return {"items": [self._item(hpa) for hpa in self.hpas]}

    def _item(self, hpa: AdvisedHpa) -> Json:
        meta = hpa.manifest["metadata"]
        item: Json = {
            "namespace": meta["namespace"],
            "name": meta["name"],
            "evidence": list(self.evidence(hpa)),
            "recommended": _manifest(hpa),
            "size": size_json(hpa.size, self.prices),
        }
        if hpa.promise is not None:
            item["promise"] = promise_json(hpa.promise)
        advice = hpa.advice
        if advice is not None:
            report = ReplayReport(advice.study, advice.judgement, self.allowed, None, hpa.manifest)
            item["replay"] = report.json()
            if advice.queue is not None:
                item["queue"] = queue_json(advice.queue.evidence)
        return item

    def _row(self, hpa: AdvisedHpa) -> tuple[str, ...]:
        if hpa.promised is not None:
            return _promised_row(hpa, hpa.promised)
        if hpa.answer is None:
            return (hpa.name, *("-" for _ in _HEADER[1:]))
        advice = hpa.advice
        if advice is None:
            return (hpa.name, _settings(hpa.answer.spec), *("-" for _ in _HEADER[2:]))
        now, chosen = advice.study.runs[0], _chosen_run(advice)
        settings = _settings(now.variant.spec)
        if chosen is None:
            keeps = "keep" if not reasons(advice) else "-"
            over, changes = age(now.outcome.over), str(now.outcome.changes)
            hours = _hours(now.outcome, advice.study)
            return (hpa.name, settings, keeps, hours, over, changes)
        text = chosen.variant.text if advice.queue is None else _target_of(chosen)
        return (hpa.name, settings, text, *_change(now.outcome, chosen.outcome, advice.study))

    def evidence(self, hpa: AdvisedHpa) -> Iterator[str]:
        """Yield what the row rests on; first, what the servers keep."""
        if hpa.answer is None:
            yield hpa.problem
            yield from size_lines(hpa.size, self.prices)
            return
        promise, spec = hpa.promise, hpa.answer.spec
        if promise is not None:
            yield from latency_lines(promise)
            yield from promise_lines(promise, self.allowed)
            if promise.run is not None:
                yield from others_line(spec)
        if hpa.answer.problem:
            yield hpa.answer.problem
        if hpa.advice is not None:
            yield from self._settings_evidence(hpa.advice)
        yield from size_lines(hpa.size, self.prices)
        if promise is not None:
            yield from advice_lines(promise, spec)

    def _settings_evidence(self, advice: HpaAdvice) -> Iterator[str]:
        study, queue = advice.study, advice.queue
        agreement, now = study.agreement, study.runs[0]
        yield (
            f"{age(now.outcome.seconds)} of recorded time, {count(study.syncs, 'sync')}; the "
            f"replay decided as the controller at {agreement.equal} of {agreement.compared}"
        )
        if queue is not None:
            evidence = queue.evidence
            yield (
                f"the pods show their queue: requests waited at {evidence.waiting} of "
                f"{count(evidence.syncs, 'sync')}, and up to {number(evidence.level / 1000)} ran "
                "in each pod while none waited. Utilization says that a GPU works, and not how "
                "much work waits, so scale on the requests that run"
            )
        else:
            limit = number(study.limit / 1000)
            yield (
                f"the limit is {limit} a pod, for at most {age(self.allowed)} a day; the present "
                f"settings are above it for {age(a_day(now, now.outcome.over))} a day"
            )
            best = advice.judgement.best
            if best is None:
                yield "no settings that were tried stay within the limit"
            elif best.variant.now and not reasons(advice):
                yield "no settings that were tried save 2 % of the GPU-hours within the limit"
        yield from study.remarks
        for text in reasons(advice):
            yield f"no recommendation: {text}"
        defects = len(list(study.defects))
        if defects:
            yield f"{count(defects, 'defect')} of the recording; `replay hpa` lists them"


def _promised_row(hpa: AdvisedHpa, promised: PromiseRun) -> tuple[str, ...]:
    _, study, run = promised
    text = "keep" if _manifest(hpa) is None else run.variant.text
    settings = _settings(hpa.answer.spec) if hpa.answer is not None else ""
    return (hpa.name, settings, text, *_change(study.recorded, run.outcome, study))


def _hours(outcome: ReplayOutcome, study: Study) -> str:
    return decimal(outcome.gpu_seconds / 3600, 1) if study.gpus else "?"


def _change(now: ReplayOutcome, then: ReplayOutcome, study: Study) -> tuple[str, ...]:
    """Return the cells of what changes: GPU-hours, time over the limit, changes of replicas."""
    return (
        f"{_hours(now, study)} -> {_hours(then, study)}",
        f"{age(now.over)} -> {age(then.over)}",
        f"{now.changes} -> {then.changes}",
    )


def _chosen_run(advice: HpaAdvice) -> VariantRun | None:
    return advice.queue.run if advice.queue is not None else advice.judgement.recommended


def _manifest(hpa: AdvisedHpa) -> Json | None:
    """Return the manifest to apply; None to keep the present one."""
    if hpa.promised is not None:
        made = with_promise(hpa.manifest, hpa.promised.run.variant.spec)
        return None if _keeps(hpa.promised) else made
    if hpa.advice is None:
        return None
    chosen = _chosen_run(hpa.advice)
    if chosen is None:
        return None
    old = "" if hpa.advice.queue is None else hpa.advice.study.metric.name
    return with_settings(hpa.manifest, chosen.variant.spec, old)


def _keeps(promised: PromiseRun) -> bool:
    """Return whether an HPA that states the promise itself is good as it is."""
    answer, study, run = promised
    metric = answer.stated.own if answer.stated is not None else None
    if metric is None:
        return False
    spec = run.variant.spec
    if spec.max_replicas != study.spec.max_replicas:
        return False
    if metric.target.milli == spec.metrics[0].target.milli:
        return True
    return answer.kept and run.outcome.gpu_seconds >= study.recorded.gpu_seconds


def _settings(spec: HpaSpec) -> str:
    return f"{_target(spec)}, {spec.min_replicas}-{spec.max_replicas}"


def _target(spec: HpaSpec) -> str:
    metric = spec.metrics[0]
    return f"{metric.name} {number(metric.target.milli / 1000)}"


def _target_of(run: VariantRun) -> str:
    return _target(run.variant.spec)


@silence_logs()
def run(given: Mapping[str, Any]) -> int:
    """Replay the HPAs and print; return the exit status."""
    options = StudyOptions(
        boot=given["boot"],
        limit=given["limit"],
        capable=True,
        allowed=given["allow"],
        controller=ControllerOptions(sync_period=given["sync_period"]),
    )
    given = dict(given)
    labels, promise = take_promise(given)
    try:
        check_inputs(given)
        prices = load(given["prices"])
        hpas = [
            _advise_hpa(given, manifest, options, labels, promise, prices)
            for manifest in read_hpas(given)
        ]
        if all(hpa.answer is None and not hpa.size.sizes for hpa in hpas):
            raise ClientError(hpas[0].problem)
    except (ClientError, RecordingError) as error:
        complain(ClientError(str(error)))
        return UNSEEN
    report = RecommendReport(hpas, options.allowed, prices)
    show(report, given["output"])
    return FINE


def _advise_hpa(
    given: Mapping[str, Any],
    manifest: Json,
    options: StudyOptions,
    labels: Mapping[str, str],
    promise: Promise,
    prices: PriceList,
) -> AdvisedHpa:
    """Return the answer for one HPA. One that cannot be replayed does not end the others."""
    size = SizeAnswer()
    try:
        spec = spec_of(manifest)
        recording = recording_of(given, spec, latencies=True)
        size = size_of(recording, spec, prices)
        return AdvisedHpa(manifest, answer(recording, spec, options, labels, promise), size=size)
    except ClientError as error:
        return AdvisedHpa(manifest, None, str(error), size)

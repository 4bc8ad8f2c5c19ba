"""The report of ``replay recommend``: a row for each HPA, the evidence, and the manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.config.process.logs import silent
from adapter.config.process.output import Screen, table
from adapter.figures import age, count, decimal, number
from adapter.hpa import ControllerOptions, HpaSpec
from adapter.server.recording.events import RecordingError
from adapter.tools.client.access import Json
from adapter.tools.client.command import FINE, UNSEEN, complain, show
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.hpasource import read_hpas, spec_of
from adapter.tools.replay.inputs import check_inputs, recording_of
from adapter.tools.replay.judgement import a_day
from adapter.tools.replay.manifests import changed, written
from adapter.tools.replay.queuereport import queue_json
from adapter.tools.replay.recommendation import HpaAdvice, reasons, recommend
from adapter.tools.replay.report import ReplayReport
from adapter.tools.replay.study import StudyOptions, VariantRun

_HEADER = ("HPA", "NOW", "RECOMMENDED", "GPU-H", "OVER-LIMIT", "CHANGES")


@dataclass(frozen=True, slots=True)
class AdvisedHpa:
    """One HPA, and what to do with it."""

    manifest: Json
    found: HpaAdvice | None
    problem: str = ""
    """Why it cannot be replayed."""

    @property
    def name(self) -> str:
        """Namespace and name."""
        meta = self.manifest["metadata"]
        return f"{meta['namespace']}/{meta['name']}"


@dataclass(frozen=True, slots=True)
class RecommendReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    hpas: Sequence[AdvisedHpa]
    allowed: float
    """Seconds a day that may be over the limit."""

    @property
    def status(self) -> int:
        """See the port: 0, because a recommendation is not a fault of the cluster."""
        return 0

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        found = table([self._row(each) for each in self.hpas], _HEADER)
        for each in self.hpas:
            found += ["", screen.style(each.name, "bold")]
            for text in self.evidence(each):
                found += screen.wrap(f"- {text}", hanging="  ")
            manifest = _manifest(each)
            if manifest is not None:
                found += ["", "# apply this manifest, or commit it:", "---"]
                found += written(manifest).splitlines()
        return found

    def json(self) -> Json:
        """See the port."""
        return {"items": [self._item(each) for each in self.hpas]}

    def _item(self, each: AdvisedHpa) -> Json:
        meta = each.manifest["metadata"]
        found: Json = {
            "namespace": meta["namespace"],
            "name": meta["name"],
            "evidence": list(self.evidence(each)),
            "recommended": _manifest(each),
        }
        if each.found is not None:
            report = ReplayReport(
                each.found.study, each.found.judgement, self.allowed, None, each.manifest
            )
            found["replay"] = report.json()
            if each.found.queue is not None:
                found["queue"] = queue_json(each.found.queue.evidence)
        return found

    def _row(self, each: AdvisedHpa) -> tuple[str, ...]:
        if each.found is None:
            return (each.name, *("-" for _ in _HEADER[1:]))
        now, chosen = each.found.study.runs[0], _chosen(each.found)
        settings = _settings(now.variant.spec)
        if chosen is None:
            keeps = "keep" if not reasons(each.found) else "-"
            over, changes = age(now.outcome.over), str(now.outcome.changes)
            return (each.name, settings, keeps, self._hours(now, each.found), over, changes)
        return (
            each.name,
            settings,
            chosen.variant.text if each.found.queue is None else _of_queue(each.found),
            f"{self._hours(now, each.found)} -> {self._hours(chosen, each.found)}",
            f"{age(now.outcome.over)} -> {age(chosen.outcome.over)}",
            f"{now.outcome.changes} -> {chosen.outcome.changes}",
        )

    def _hours(self, run: VariantRun, found: HpaAdvice) -> str:
        if not found.study.gpus:
            return "?"
        return decimal(run.outcome.gpu_seconds / 3600, 1)

    def evidence(self, each: AdvisedHpa) -> Iterator[str]:
        """Yield what the row rests on."""
        if each.found is None:
            yield each.problem
            return
        study, queue = each.found.study, each.found.queue
        agreement, now = study.agreement, study.runs[0]
        yield (
            f"{age(now.outcome.seconds)} of recorded time, {count(study.syncs, 'sync')}; the "
            f"replay decided as the controller at {agreement.equal} of {agreement.compared}"
        )
        if queue is not None:
            seen = queue.evidence
            yield (
                f"the pods show their queue: requests waited at {seen.waiting} of "
                f"{count(seen.syncs, 'sync')}, and up to {number(seen.level / 1000)} ran in each "
                "pod while none waited. Utilization says that a GPU works, and not how much work "
                "waits, so scale on the requests that run"
            )
        else:
            limit = number(study.limit / 1000)
            yield (
                f"the limit is {limit} a pod, for at most {age(self.allowed)} a day; the present "
                f"settings are above it for {age(a_day(now, now.outcome.over))} a day"
            )
            best = each.found.judgement.best
            if best is None:
                yield "no settings that were tried stay within the limit"
            elif best.variant.now and not reasons(each.found):
                yield "no settings that were tried save 2 % of the GPU-hours within the limit"
        yield from study.remarks
        for text in reasons(each.found):
            yield f"no recommendation: {text}"
        defects = len(list(study.defects))
        if defects:
            yield f"{count(defects, 'defect')} of the recording; `replay hpa` lists them"


def _chosen(found: HpaAdvice) -> VariantRun | None:
    return found.queue.run if found.queue is not None else found.judgement.recommended


def _manifest(each: AdvisedHpa) -> Json | None:
    """Return the manifest to apply; None to keep the present one."""
    if each.found is None:
        return None
    chosen = _chosen(each.found)
    if chosen is None:
        return None
    old = "" if each.found.queue is None else each.found.study.metric.name
    return changed(each.manifest, chosen.variant.spec, old)


def _settings(spec: HpaSpec) -> str:
    metric = spec.metrics[0]
    target = number(metric.target.milli / 1000)
    return f"{metric.name} {target}, {spec.min_replicas}-{spec.max_replicas}"


def _of_queue(found: HpaAdvice) -> str:
    queue = found.queue
    return "" if queue is None else _settings(queue.run.variant.spec).partition(",")[0]


@silent()
def run(given: Mapping[str, Any]) -> int:
    """Replay the HPAs and print; return the exit status."""
    options = StudyOptions(
        boot=given["boot"],
        limit=given["limit"],
        capable=True,
        allowed=given["allow"],
        controller=ControllerOptions(sync_period=given["sync_period"]),
    )
    try:
        check_inputs(given)
        found = [_recommended(given, manifest, options) for manifest in read_hpas(given)]
        if all(each.found is None for each in found):
            raise ClientError(found[0].problem)
    except (ClientError, RecordingError) as error:
        complain(ClientError(str(error)))
        return UNSEEN
    report = RecommendReport(found, options.allowed)
    show(report, given["output"])
    return FINE


def _recommended(given: Mapping[str, Any], manifest: Json, options: StudyOptions) -> AdvisedHpa:
    """Return the answer for one HPA. One that cannot be replayed does not end the others."""
    try:
        spec = spec_of(manifest)
        return AdvisedHpa(manifest, recommend(recording_of(given, spec), spec, options))
    except ClientError as error:
        return AdvisedHpa(manifest, None, str(error))

"""The report of a replay: a table, what it rests on, and the manifest to apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from adapter.config.process.output import Screen, table
from adapter.figures import age, count, decimal, number
from adapter.hpa import HpaSpec
from adapter.tools.client.access import Json
from adapter.tools.replay.judgement import Judgement, verdict
from adapter.tools.replay.manifests import format_yaml, with_settings
from adapter.tools.replay.nodereport import NODE_HEADER, node_basis, node_json, node_rows
from adapter.tools.replay.outcome import ReplayOutcome
from adapter.tools.replay.queuereport import (
    QUEUE_HEADER,
    QUEUE_TITLE,
    queue_basis,
    queue_json,
    queue_rows,
    saturated_text,
)
from adapter.tools.replay.study import FailedRun, Study, VariantRun

HEADER: Final = (
    *("SETTINGS", "GPU-H", "COST", "OVER-LIMIT", "LONGEST", "CHANGES", "REPLICAS"),
    "VERDICT",
)

FAILED: Final = "with the failure"
"""How a row with the failure begins."""


class ReportRow(NamedTuple):
    """A row of the table."""

    cells: tuple[str, ...]
    best: bool = False
    """These settings are recommended."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    study: Study
    judgement: Judgement
    allowed: float
    """Seconds a day that may be over the limit."""
    gpu_hour: float | None
    """Price of a GPU-hour."""
    manifest: Json
    """The HPA."""

    @property
    def status(self) -> int:
        """See the port: 0, because a replay finds no fault of the cluster."""
        return 0

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        lines = [
            screen.style(line, "bold") if not i else line for i, line in enumerate(self.head())
        ]
        lines += ["", *table([row.cells for row in self.rows()], HEADER), ""]
        for text in self.basis():
            lines += screen.wrap(text, hanging="  ")
        lines += self._nodes(screen)
        lines += self._queue(screen)
        recommended = self.judgement.recommended
        if recommended is not None:
            lines += ["", "# apply this manifest, or commit it:"]
            lines += self.yaml(recommended.variant.spec).splitlines()
        elif self.judgement.doubts:
            lines += ["", "no recommendation:"]
            for text in self.judgement.doubts:
                lines += screen.wrap(f"- {text}", hanging="  ")
        return lines

    def _nodes(self, screen: Screen) -> list[str]:
        nodes = self.study.nodes
        if nodes is None:
            return []
        lines = ["", screen.style("Nodes, with the present settings", "bold"), ""]
        lines += [*table(list(node_rows(nodes, self.gpu_hour)), NODE_HEADER), ""]
        for text in node_basis(nodes):
            lines += screen.wrap(text, hanging="  ")
        return lines

    def _queue(self, screen: Screen) -> list[str]:
        queue = self.study.queue
        if queue is None:
            return []
        lines = ["", screen.style(QUEUE_TITLE, "bold"), ""]
        lines += [*table(list(queue_rows(queue)), QUEUE_HEADER), ""]
        for text in queue_basis(queue):
            lines += screen.wrap(text, hanging="  ")
        return lines

    def json(self) -> Json:
        """See the port."""
        study = self.study
        body: Json = {
            "namespace": study.spec.namespace,
            "name": study.spec.name,
            "metric": study.metric.name,
            "start": _instant(study.start),
            "end": _instant(study.end),
            "syncs": study.syncs,
            "limit": study.limit / 1000,
            "bootSeconds": study.boot,
            "bootPods": study.boots,
            "gpusPerReplica": study.gpus,
            "agreement": {
                "compared": study.agreement.compared,
                "equal": study.agreement.equal,
                "equalValues": study.agreement.exact,
                "atTheEndOfAWindow": study.agreement.edges,
                "differences": [
                    {"time": _instant(row.time), "replay": row.ours, "controller": row.theirs}
                    for row in study.agreement.differences
                ],
            },
            "recorded": self._figures(self.study.recorded),
            "variants": [self._variant(run) for run in self._runs],
            "doubts": list(self.judgement.doubts),
            "remarks": list(study.remarks),
            "podsWithoutValue": dict(study.absent),
            "defects": [
                {
                    "reason": stretch.reason,
                    "about": stretch.about,
                    "start": _instant(stretch.start),
                    "end": _instant(stretch.end),
                }
                for stretch in study.defects
            ],
            "defectsNotListed": dict(study.defects.more),
            "saturated": [
                {"start": _instant(stretch.start), "end": _instant(stretch.end)}
                for stretch in study.saturated
            ],
            "recordingLosses": {**study.losses.lines, "damaged": study.losses.damaged},
        }
        if study.outage is not None:
            start, blind, end = map(_instant, study.outage)
            body["failure"] = {"start": start, "noValueFrom": blind, "end": end}
        if study.nodes is not None:
            body["nodePool"] = node_json(study.nodes, self.gpu_hour)
        if study.queue is not None:
            body["queue"] = queue_json(study.queue)
        if self.judgement.recommended is not None:
            body["recommended"] = with_settings(
                self.manifest, self.judgement.recommended.variant.spec
            )
        return body

    @property
    def _runs(self) -> list[VariantRun]:
        return list(self.study.runs)

    def _verdict(self, run: VariantRun) -> str:
        return verdict(run, self.judgement, self.allowed)

    def rows(self) -> list[ReportRow]:
        """Return the rows of the table: what happened, then each variant."""
        rows = [self._row("recorded", self.study.recorded, "what happened")]
        for run in self._runs:
            row = self._row(run.variant.text, run.outcome, self._verdict(run))
            rows.append(row._replace(best=run is self.judgement.recommended))
            if run.failed is not None:
                rows.append(self._row(f"  {FAILED}", run.failed.outcome, _difference(run.failed)))
        return rows

    def head(self) -> Iterator[str]:
        """Yield what was replayed."""
        study, spec = self.study, self.study.spec
        span = f"{_minute(study.start)} to {_minute(study.end)} UTC"
        yield f"HPA {spec.namespace}/{spec.name}: {span}, {count(study.syncs, 'sync')}"
        target, limit = number(study.metric.target.milli / 1000), number(study.limit / 1000)
        yield f"metric {study.metric.name}, target {target}; the limit is {limit} a pod"

    def _row(self, text: str, outcome: ReplayOutcome, remark: str) -> ReportRow:
        hours = outcome.gpu_seconds / 3600
        cells = (
            text,
            _hours(hours) if self.study.gpus else "?",
            self._cost(hours),
            age(outcome.over),
            age(outcome.longest_over),
            str(outcome.changes),
            f"{outcome.lowest}-{outcome.highest}",
            remark,
        )
        return ReportRow(cells)

    def _cost(self, hours: float) -> str:
        if self.gpu_hour is None or not self.study.gpus:
            return "-"
        return decimal(hours * self.gpu_hour, 2)

    def basis(self) -> Iterator[str]:
        """Yield what the figures rest on."""
        study, now = self.study, self.study.runs[0].outcome
        agreement = study.agreement
        yield from self._outage()
        edges = f", {agreement.edges} of them at the end of a window"
        yield (
            f"the values equal those in the HPA's status at {agreement.exact} of "
            f"{count(agreement.checked, 'sync')}"
        )
        yield (
            f"the replay of the present settings decided as the controller at {agreement.equal} of "
            f"{count(agreement.compared, 'sync')}{edges if agreement.edges else ''}"
        )
        for row in agreement.differences[:3]:
            time = f"{datetime.fromtimestamp(row.time, UTC):%F %T}"
            yield f"- at {time}: {row.ours}, the controller {row.theirs}"
        if study.boots:
            pods = count(study.boots, "pod")
            yield f"a new pod has a value after {age(study.boot)}, the median of {pods}"
        else:
            yield (
                f"no new pod got a value in the recording: it is assumed to take "
                f"{age(study.boot)}; --boot sets it"
            )
        if not study.gpus:
            yield (
                "GPU-hours are not known: no pod of the recording requests GPUs as a resource, "
                "such as nvidia.com/gpu"
            )
        for line in study.saturated.lines():
            yield line
            yield saturated_text(study.queue)
        if now.unknown:
            yield (
                f"for {age(now.unknown)} no pod had a value: the replicas are held, and whether "
                "that time is over the limit is not known"
            )
        if study.absent:
            reasons = ", ".join(f"{why} {times}" for why, times in study.absent.most_common(5))
            yield f"pods without a value, by reason and summed over the syncs: {reasons}"
        losses = study.losses
        yield from study.defects.lines()
        for why, times in losses.lines.items():
            yield f"{count(times, 'line')} or series could not be read ({why})"
        yield from study.remarks

    def _outage(self) -> Iterator[str]:
        """Yield what the HPA sees during the failure."""
        outage = self.study.outage
        if outage is None:
            return
        day = f"{datetime.fromtimestamp(outage.start, UTC):%F}"
        start, blind, end = map(_second, outage)
        start = f"{day} {start}"
        if outage.start == outage.end:
            yield f"the failure at {start} changes no value that the HPA sees"
        elif outage.blind >= outage.end:
            yield f"the failure at {start}: old values bridge it until {end}"
        elif outage.blind > outage.start:
            yield (
                f"the failure at {start}: the HPA sees old values until {blind}, and none until "
                f"{end}: it then holds the replicas"
            )
        else:
            yield (
                f"the failure at {start}: the HPA sees no value until {end}, and holds the replicas"
            )

    def _variant(self, run: VariantRun) -> Json:
        body = self._run_json(run)
        if run.failed is not None:
            body["withFailure"] = {
                **self._figures(run.failed.outcome),
                "replicasFewer": run.failed.fewer,
                "replicasMore": run.failed.more,
            }
        return body

    def _run_json(self, run: VariantRun) -> Json:
        spec = run.variant.spec
        return {
            "settings": run.variant.text,
            "target": spec.metrics[0].target.milli / 1000,
            "minReplicas": spec.min_replicas,
            "maxReplicas": spec.max_replicas,
            "verdict": self._verdict(run),
            **self._figures(run.outcome),
        }

    def _figures(self, outcome: ReplayOutcome) -> Json:
        hours = outcome.gpu_seconds / 3600
        figures: Json = {
            "overLimitSeconds": outcome.over,
            "longestOverLimitSeconds": outcome.longest_over,
            "changes": outcome.changes,
            "lowestReplicas": outcome.lowest,
            "highestReplicas": outcome.highest,
            "unknownSeconds": outcome.unknown,
            "saturatedSeconds": outcome.saturated,
        }
        if self.study.gpus:
            figures["gpuHours"] = hours
            if self.gpu_hour is not None:
                figures["cost"] = hours * self.gpu_hour
        return figures

    def yaml(self, made: HpaSpec) -> str:
        """Return the HPA's manifest with these settings."""
        return format_yaml(with_settings(self.manifest, made))


def _difference(failed: FailedRun) -> str:
    """Return how the replicas differ from those without the failure."""
    if not failed.fewer and not failed.more:
        return "no difference"
    sizes = (("fewer", failed.fewer), ("more", failed.more))
    return f"up to {' or '.join(f'{size} {word}' for word, size in sizes if size)}"


def _hours(hours: float) -> str:
    return decimal(hours, 1) if hours >= 10 else number(hours)


def _instant(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _minute(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def _second(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")

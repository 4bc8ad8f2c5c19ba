"""The evidence for ``pod_autoscaling``: what was seen, which steps it proves, and its documents.

The requirement, its steps and the fields of PRODUCT.yaml are those of cncf/k8s-ai-conformance
(``docs/AIConformance-1.37.yaml``, ``instructions.md``) and kubernetes-sigs/ai-conformance
(KAR-0057). A platform may not change ``id``, ``description`` and ``level``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adapter.config.process.output import Screen
from adapter.hpa.quantity import parse
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.tools.client.command import BLOCKED, FINE

Json = dict[str, Any]
ID: Final = "pod_autoscaling"
DESCRIPTION: Final = (
    "If the platform supports the HorizontalPodAutoscaler, it must function correctly for pods "
    "utilizing accelerators. This includes the ability to scale these Pods based on custom metrics "
    "relevant to AI/ML workloads."
)
MOST_ROWS: Final = 200
"""Rows of the timeline: the first ones."""


class ScaledPod(NamedTuple):
    """A pod of the HPA's target."""

    name: str
    node: str
    running: bool
    accelerators: Mapping[str, int]
    """Resource -> devices; empty for a resource claim."""
    classes: frozenset[str] = frozenset()
    """Device classes of its claims that may be of accelerators."""
    unread: str = ""
    """Why it is not known if its claims are of accelerators; empty if it is, or has none."""


class HpaLook(NamedTuple):
    """What one look saw."""

    time: float
    """Epoch seconds."""
    hpa: ShownHpa
    pods: Sequence[ScaledPod]

    @property
    def running(self) -> int:
        """Pods that run on a node."""
        return sum(pod.running and bool(pod.node) for pod in self.pods)

    @property
    def state(self) -> tuple[object, ...]:
        """What a step may follow from: looks with the same state prove the same."""
        loads = (self.load(metric) for metric in self.hpa.metrics if metric.custom)
        sides = tuple(None if load is None else (load > 1, load < 1) for load in loads)
        unread = sum(bool(pod.unread) for pod in self.pods)
        return (self.hpa.current, self.hpa.desired, self.running, sides, unread)

    def load(self, metric: ShownMetric) -> float | None:
        """Return the metric's value divided by its target; None without a value."""
        now = next((m for m in self.hpa.metrics if m[:2] == metric[:2]), None)
        try:
            target = float(parse(now.target)) if now is not None else 0.0
            return float(parse(now.current)) / target if now and target > 0 else None
        except ValueError:
            return None


class Step(NamedTuple):
    """One step of the requirement."""

    title: str
    proof: str
    """What was seen; empty if the step is not proven."""
    missing: str = ""
    """Why it is not."""


class _SizeChange(NamedTuple):
    """A change of the replicas. The fields are numbers of looks."""

    before: int
    """The last one with the old size."""
    after: int
    """The first one with the new size, which follows it."""
    cause: int
    """The one of both at which the metric explains the change."""


@dataclass(frozen=True, slots=True)
class ConformanceEvidence:
    """The result of watching an HPA; implements the port of :mod:`adapter.tools.client.command`."""

    server: str
    """Version of Kubernetes, ``v1.37.2``."""
    simulation: Sequence[str]
    """Signs that nodes or accelerators are simulated; empty if none was seen."""
    unlooked: Sequence[str]
    """What could not be looked at for such signs."""
    apis: Sequence[str]
    """Versions of custom.metrics.k8s.io that the cluster serves."""
    looks: Sequence[HpaLook]
    """At least one, in order: those at which something had changed."""

    @property
    def status(self) -> int:
        """1 if a step is not proven."""
        return FINE if all(step.proof for step in self.steps()) else BLOCKED

    @property
    def metric(self) -> ShownMetric | None:
        """The custom metric that the HPA scales on."""
        return next((metric for metric in self.looks[-1].hpa.metrics if metric.custom), None)

    def steps(self) -> list[Step]:
        """Return the steps, each with its proof."""
        return [self._setup(), self._accelerators(), *self._scaling_steps()]

    def _setup(self) -> Step:
        title = "A custom metric reaches the HPA"
        metric = self.metric
        if not self.apis:
            return Step(title, "", "the cluster serves no custom.metrics.k8s.io")
        if metric is None:
            return Step(title, "", "the HPA has no Pods, Object or External metric")
        valued = [look for look in self.looks if look.load(metric) is not None]
        if not valued:
            return Step(title, "", f"the HPA never had a value of {metric.name}")
        value = next(m.current for m in valued[0].hpa.metrics if m[:2] == metric[:2])
        return Step(
            title,
            f"custom.metrics.k8s.io ({', '.join(self.apis)}) is served, and the HPA reads "
            f"{metric.type} metric `{metric.name}`: {value}, target {metric.target}",
        )

    def _accelerators(self) -> Step:
        title = "Each pod requests an accelerator"
        pods = self._pods()
        if not pods:
            return Step(title, "", "no pod was seen")
        without = [pod for pod in pods.values() if not (pod.accelerators or pod.classes)]
        plain = sorted(pod.name for pod in without if not pod.unread)
        if plain:
            return Step(title, "", f"no: {', '.join(plain[:3])}")
        if without:
            names = ", ".join(sorted(pod.name for pod in without)[:3])
            return Step(title, "", f"the device classes of the claims are not known: {names}")
        kinds = {
            f"{count} {resource}"
            for pod in pods.values()
            for resource, count in pod.accelerators.items()
        }
        kinds |= {
            f"a resource claim of {' and '.join(sorted(pod.classes))}"
            for pod in pods.values()
            if pod.classes
        }
        return Step(title, f"{len(pods)} pods, each with {' or '.join(sorted(kinds))}")

    def _pods(self) -> dict[str, ScaledPod]:
        """Return name -> pod of all looks, as the last one that could read its claims saw it."""
        pods: dict[str, ScaledPod] = {}
        for look in self.looks:
            pods |= {pod.name: pod for pod in look.pods if not pod.unread or pod.name not in pods}
        return pods

    @property
    def not_looked_at(self) -> Sequence[str]:
        """What could not be looked at, with the reasons."""
        reasons = sorted({pod.unread for pod in self._pods().values() if pod.unread})
        return [*self.unlooked, *(f"device classes of claims ({reason})" for reason in reasons)]

    def _scaling_steps(self) -> list[Step]:
        up, down = "The HPA scales out, and the new pods run", "The HPA scales in"
        metric = self.metric
        if metric is None:
            return [Step(up, "", "there is no custom metric"), Step(down, "", "as above")]
        rise = self._change(metric, 0, out=True)
        if rise is None:
            missing = f"no rise of the replicas was seen while {metric.name} was above target"
            return [
                Step(up, "", missing + self._why_full()),
                Step(down, "", "it has to follow a rise"),
            ]
        higher = self.looks[rise.after].hpa.current or 0
        later = range(rise.after, len(self.looks))
        served = [index for index in later if self.looks[index].running >= higher]
        proof = self._words(metric, rise)
        if not served:
            rose = Step(up, "", f"{proof}, but {higher} pods never ran at one time")
            return [rose, Step(down, "", "it has to follow a rise")]
        nodes = {pod.node for pod in self.looks[served[0]].pods if pod.running}
        rose = Step(up, f"{proof}; {higher} pods ran on {len(nodes)} nodes with accelerators")
        fall = self._change(metric, rise.after, out=False)
        if fall is None:
            missing = f"no fall of the replicas was seen while {metric.name} was below target"
            return [rose, Step(down, "", missing)]
        return [rose, Step(down, self._words(metric, fall))]

    def _why_full(self) -> str:
        """Return why the HPA could not rise, if it always was at its maximum; else empty."""
        if any((look.hpa.current or 0) < look.hpa.high for look in self.looks):
            return ""
        return (
            f": it is at maxReplicas ({self.looks[-1].hpa.high}) and cannot rise; raise "
            "maxReplicas, or begin while it has fewer replicas"
        )

    def _change(self, metric: ShownMetric, start: int, *, out: bool) -> _SizeChange | None:
        """Return the first change of size after a look that the metric explains.

        It does so at the last look before or at the first one after: a load of long before may
        have nothing to do with it.
        """
        for after in range(start + 1, len(self.looks)):
            before = after - 1
            old, new = self.looks[before].hpa.current, self.looks[after].hpa.current
            if old is None or new is None or old == new or (new > old) is not out:
                continue
            for index in (before, after):
                load = self.looks[index].load(metric)
                if load is not None and (load > 1 if out else load < 1):
                    return _SizeChange(before, after, index)
        return None

    def _words(self, metric: ShownMetric, change: _SizeChange) -> str:
        cause, after = self.looks[change.cause], self.looks[change.after]
        shown = next(m for m in cause.hpa.metrics if m[:2] == metric[:2])
        return (
            f"{self.looks[change.before].hpa.current} to {after.hpa.current} replicas, "
            f"seen at {_clock(after.time)} UTC, with `{metric.name}` at {shown.current} of "
            f"{shown.target} at {_clock(cause.time)} UTC"
        )

    def lines(self, screen: Screen) -> list[str]:
        """Return the evidence as Markdown."""
        last = self.looks[-1].hpa
        lines = [
            f"# {ID}: HPA {last.namespace}/{last.name}",
            "",
            f"Kubernetes {self.server}, {_day(self.looks[0].time)}. {self._where()}",
            "",
            "| Step | Result | Seen |",
            "|---|---|---|",
        ]
        for step in self.steps():
            result = "PASS" if step.proof else "FAIL"
            lines.append(f"| {step.title} | {result} | {_cell(step.proof or step.missing)} |")
        lines += ["", "## Timeline", "", *self._timeline(), "", "## PRODUCT.yaml", "", "```yaml"]
        return [*lines, *self._product(), "```"]

    def _where(self) -> str:
        if self.simulation:
            return f"**Simulated, not evidence for a platform**: {'; '.join(self.simulation)}."
        text = "Real, as far as can be seen: no sign of a simulated node or exporter."
        unlooked = "; ".join(self.not_looked_at)
        return f"{text} Not looked at: {unlooked}." if unlooked else text

    def _timeline(self) -> list[str]:
        metric = self.metric
        lines = [
            "| UTC | Metric | Target | Replicas | Wanted | Running |",
            "|---|---|---|---|---|---|",
        ]
        for look in self.looks[:MOST_ROWS]:
            now = next((m for m in look.hpa.metrics if metric and m[:2] == metric[:2]), None)
            cells = (
                _clock(look.time),
                now.current if now and now.current else "-",
                now.target if now else "-",
                *(str(n) if n is not None else "-" for n in (look.hpa.current, look.hpa.desired)),
                str(look.running),
            )
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        return lines

    def _product(self) -> list[str]:
        proven = self.status == FINE and not self.simulation
        return [
            "spec:",
            "  schedulingOrchestration:",
            f"  - id: {ID}",
            f"    description: {json.dumps(DESCRIPTION)}",
            "    level: MUST",
            f"    status: {'Implemented' if proven else json.dumps('')}",
            f"    evidence: [{f'{ID}.md' if proven else ''}]",
            f"    notes: {json.dumps(self._notes())}",
        ]

    def _notes(self) -> str:
        failed = [step.title for step in self.steps() if not step.proof]
        if failed:
            return f"Not proven: {'; '.join(failed)}."
        if self.simulation:
            return "Proven on a simulation only."
        name = self.metric.name if self.metric else ""
        return f"HorizontalPodAutoscaler on the custom metric {name}."

    def json(self) -> Json:
        """Return the steps for programs."""
        last = self.looks[-1].hpa
        return {
            "id": ID,
            "namespace": last.namespace,
            "hpa": last.name,
            "kubernetesVersion": self.server,
            "simulated": list(self.simulation),
            "notLookedAt": list(self.not_looked_at),
            "passed": self.status == FINE,
            "steps": [
                {
                    "title": step.title,
                    "passed": bool(step.proof),
                    "seen": step.proof or step.missing,
                }
                for step in self.steps()
            ],
            "product": "\n".join(self._product()) + "\n",
        }


def _day(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

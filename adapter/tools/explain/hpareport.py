"""The explanation of an HPA: what it decides, which rule decides, and what blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.answers.judgement.states import HpaJudgement, ScalingState
from adapter.config.process.output import Colour, Screen
from adapter.figures import count
from adapter.hpa import Decision
from adapter.tools.client.access import Json
from adapter.tools.explain import hpatext
from adapter.tools.explain.headroom import HeadroomRow
from adapter.tools.explain.hpaparts import Block, MetricLines
from adapter.tools.explain.past import NO_PAST, ReadPast

_COLOURS: dict[str, Colour] = {"good": "green", "warning": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class HpaReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    namespace: str
    name: str
    target: str
    """``Deployment llm``."""
    replicas: int | None
    low: int
    high: int
    verdict: str
    judgement: HpaJudgement | None = None
    """The state, as every list shows it; None while the report is made."""
    why: str = ""
    """Which rule decided, in one sentence."""
    decision: Decision | None = None
    """None if it could not be computed; then ``verdict`` follows the HPA's status."""
    metrics: Sequence[MetricLines] = ()
    blocks: Sequence[Block] = ()
    waits: Sequence[Block] = ()
    """What holds for now and passes without anybody."""
    remarks: Sequence[str] = ()
    """What is not known, or a guess."""
    headroom: Sequence[HeadroomRow] = ()
    """What `nodepool` holds for the workload."""
    past: ReadPast = NO_PAST
    status_conditions: Sequence[Json] = ()
    status_desired: int | None = None
    events: Sequence[Json] = field(default=())
    unseen: bool = False
    """A value could not be read, so ``verdict`` follows the HPA's status."""

    @property
    def status(self) -> int:
        """See the port: 1 if something blocks, 2 if a value could not be read."""
        return 1 if self.blocks else 2 * self.unseen

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        size = "size not known" if self.replicas is None else count(self.replicas, "replica")
        state = self.judgement
        colour = _COLOURS.get("" if state is None else state.level)
        verdict = screen.style(self.verdict, colour) if colour else self.verdict
        head = f"HPA {self.namespace}/{self.name} → {self.target}"
        lines = [f"{head}   {size}, {self.low}..{self.high}   {verdict}"]
        if state is not None:
            lines += screen.wrap(f"state: {_state(state)}", "  ", "      ")
        if self.why:
            lines += screen.wrap(self.why, "  ")
        if self.past.text:
            lines += screen.wrap(self.past.text, "  ", "      ")
        for metric in self.metrics:
            lines += hpatext.metric_lines(metric, screen)
        lines += [""] if self.metrics else []
        for block in self.blocks:
            lines += screen.wrap(f"{screen.mark('bad')} blocks: {block.text}", "  ", "      ")
            lines += hpatext.fixes(block.fix, block.then)
        for wait in self.waits:
            lines += screen.wrap(f"{screen.mark('warning')} waits: {wait.text}", "  ", "      ")
            lines += hpatext.fixes(wait.fix)
        for row in self.headroom:
            lines += screen.wrap(f"headroom: {row.text}", "  ", "      ")
        lines += self._controller(screen)
        for remark in self.remarks:
            lines += screen.wrap(f"note: {remark}", "  ", "      ")
        return lines + hpatext.events(self.events, screen, brief=True)

    def _controller(self, screen: Screen) -> list[str]:
        """Return what the controller's own status says; the words of the API are kept."""
        if not self.status_conditions:
            return []
        desired = "" if self.status_desired is None else f"desired {self.status_desired}; "
        rows = [f"{row['type']} {row['status']} {row['reason']}" for row in self.status_conditions]
        return screen.wrap(f"status: {desired}{', '.join(rows)}", "  ", "      ")

    def json(self) -> Json:
        """See the port."""
        state = self.judgement
        fields: Json = {
            "namespace": self.namespace,
            "name": self.name,
            "target": self.target,
            "minReplicas": self.low,
            "maxReplicas": self.high,
            "verdict": self.verdict,
            **({} if state is None else {"state": state.state, "level": state.level}),
            **({} if state is None else {"summary": state.text}),
            "why": self.why,
            "metrics": [metric.json() for metric in self.metrics],
            "blocks": [block.json() for block in self.blocks],
            "waits": [wait.json() for wait in self.waits],
            "remarks": list(self.remarks),
            "headroom": [row.json() for row in self.headroom],
            **self.past.json(),
            "controller": {
                "conditions": list(self.status_conditions),
                **({} if self.status_desired is None else {"desiredReplicas": self.status_desired}),
            },
            "events": list(self.events),
        }
        if self.replicas is not None:
            fields["replicas"] = self.replicas
        if self.decision is not None:
            fields["desiredReplicas"] = self.decision.desired
            fields["conditions"] = [
                {"type": row.type, "status": str(row.status), "reason": row.reason}
                for row in self.decision.conditions
            ]
        return fields


def _state(judgement: HpaJudgement) -> str:
    if judgement.state is ScalingState.STUCK:
        return f"stuck: {judgement.by}"  # what blocks is below in full
    says_state = judgement.text.startswith(judgement.state.value)
    return judgement.text if says_state else f"{judgement.state.value}: {judgement.text}"

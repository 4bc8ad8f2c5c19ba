"""The explanation of an HPA: what it decides, which rule decides, and what blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.answers.judgement.states import HpaJudgement
from adapter.config.process.output import Screen
from adapter.hpa import Decision
from adapter.tools.client.access import Json
from adapter.tools.explain import hpatext
from adapter.tools.explain.gpupod import Why
from adapter.tools.explain.headroom import HeadroomRow


@dataclass(frozen=True, slots=True)
class Block:
    """Something that keeps the HPA from what its metrics ask for."""

    text: str
    fix: str = ""
    then: str = ""
    """A command for the case that the fix shows no cause."""

    def json(self) -> Json:
        """The fields that are known."""
        found = {"message": self.text, "fix": self.fix, "then": self.then}
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class PodLine:
    """One pod in one metric."""

    name: str
    state: str
    """``counted``, ``missing``, ``unready``, ``ignored`` or ``other`` (not a pod of the target)."""
    value: str = ""
    node: str = ""
    how: tuple[str, ...] = ()
    """Devices, attribution, age and window."""
    why: Why | None = None
    note: str = ""

    def json(self) -> Json:
        """The fields that are known."""
        found: Json = {"name": self.name, "state": self.state, "value": self.value}
        found |= {"node": self.node, "how": list(self.how), "note": self.note}
        if self.why is not None:
            found["why"] = self.why.json()
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class MetricLines:
    """One metric of the HPA."""

    name: str
    """As the controller names it: ``pods metric gpu_utilization``."""
    target: str
    value: str = ""
    asks: int | None = None
    rule: str = ""
    arithmetic: str = ""
    error: str = ""
    pods: Sequence[PodLine] = ()
    more: int = 0
    """Further pods whose value counts, which are not listed."""
    more_left_out: int = 0
    """Further pods without a value that counts, which are not listed."""

    def json(self) -> Json:
        """The fields that are known."""
        found: Json = {"name": self.name, "target": self.target, "value": self.value}
        found |= {"rule": self.rule, "arithmetic": self.arithmetic, "error": self.error}
        found["pods"] = [pod.json() for pod in self.pods]
        found |= {"morePods": self.more, "morePodsLeftOut": self.more_left_out}
        found = {key: value for key, value in found.items() if value}
        return found | ({"asks": self.asks} if self.asks is not None else {})


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
        return hpatext.lines(self, screen)

    def json(self) -> Json:
        """See the port."""
        state = self.judgement
        found: Json = {
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
            "controller": {
                "conditions": list(self.status_conditions),
                **({} if self.status_desired is None else {"desiredReplicas": self.status_desired}),
            },
            "events": list(self.events),
        }
        if self.replicas is not None:
            found["replicas"] = self.replicas
        if self.decision is not None:
            found["desiredReplicas"] = self.decision.desired
            found["conditions"] = [
                {"type": row.type, "status": str(row.status), "reason": row.reason}
                for row in self.decision.conditions
            ]
        return found

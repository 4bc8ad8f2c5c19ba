"""The parts of an HPA's explanation: what blocks, its metrics, and their pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.tools.client.access import Json
from adapter.tools.explain.gpupod import Why


@dataclass(frozen=True, slots=True)
class Block:
    """Something that keeps the HPA from what its metrics ask for."""

    text: str
    fix: str = ""
    then: str = ""
    """A command for the case that the fix shows no cause."""

    def json(self) -> Json:
        """The fields that are known."""
        fields = {"message": self.text, "fix": self.fix, "then": self.then}
        return {key: value for key, value in fields.items() if value}


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
        fields: Json = {"name": self.name, "state": self.state, "value": self.value}
        fields |= {"node": self.node, "how": list(self.how), "note": self.note}
        if self.why is not None:
            fields["why"] = self.why.json()
        return {key: value for key, value in fields.items() if value}


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
        fields: Json = {"name": self.name, "target": self.target, "value": self.value}
        fields |= {"rule": self.rule, "arithmetic": self.arithmetic, "error": self.error}
        fields["pods"] = [pod.json() for pod in self.pods]
        fields |= {"morePods": self.more, "morePodsLeftOut": self.more_left_out}
        fields = {key: value for key, value in fields.items() if value}
        return fields | ({"asks": self.asks} if self.asks is not None else {})

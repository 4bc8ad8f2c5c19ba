"""The states of an HPA, how bad each is, and the judgement that names one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

Level = Literal["good", "warning", "bad", "off"]


class ScalingState(StrEnum):
    """What an HPA does. The order is that of attention: the worst first."""

    STUCK = "stuck"
    """The controller has no value, no target or no right, and keeps the size."""
    STALE = "stale"
    """The HPA controller has not looked at the HPA for minutes, or KEDA at its ScaledObject."""
    BEHIND = "behind"
    """The workload does not follow: replicas that the HPA wants do not exist, or are not ready."""
    OVERLOADED = "overloaded"
    """A target is exceeded beyond the tolerance, and something keeps the HPA from scaling out."""
    IMPAIRED = "impaired"
    """It decides, but a named flaw of its manifest or of its surroundings spoils what it does."""
    INCOMPLETE = "incomplete"
    """It decides although a metric, or a pod of the target, has no value."""
    WAITING = "waiting"
    """The controller has not synced it yet, or a wanted pod waits for a node."""
    SCALING_OUT = "scales out"
    SCALING_IN = "scales in"
    HELD = "held"
    """Its metrics ask for fewer replicas, and a window, a rate, a policy or a bound keeps it."""
    HEALTHY = "healthy"
    """Every metric has a value within its target, and every replica that is wanted exists."""
    AT_ZERO = "at zero"
    """At 0 replicas, from which KEDA or an Object or External metric wakes it."""
    PAUSED = "paused"
    """At 0 replicas, set by hand: the HPA never wakes it. Or its ScaledObject is paused."""


LEVELS: Final[dict[ScalingState, Level]] = {
    ScalingState.STUCK: "bad",
    ScalingState.STALE: "bad",
    ScalingState.BEHIND: "bad",
    ScalingState.OVERLOADED: "warning",
    ScalingState.IMPAIRED: "warning",
    ScalingState.INCOMPLETE: "warning",
    ScalingState.WAITING: "warning",
    ScalingState.SCALING_OUT: "good",
    ScalingState.SCALING_IN: "good",
    ScalingState.HELD: "good",
    ScalingState.HEALTHY: "good",
    ScalingState.AT_ZERO: "off",
    ScalingState.PAUSED: "off",
}
ORDER: Final = tuple(ScalingState)
"""The worst first."""


@dataclass(frozen=True, slots=True)
class HpaJudgement:
    """The state of one HPA."""

    state: ScalingState
    text: str
    """One line: ``overloaded at 6, held by 2 pods that are not ready: gpu_utilization 100 of 70``.
    """
    by: str = ""
    """What holds or stops it: ``maxReplicas 8``, ``FailedGetScale``; empty if nothing does."""
    since: float | None = None
    """Epoch seconds since when the state holds, as far as the status shows it."""

    @property
    def level(self) -> Level:
        """How bad the state is."""
        return LEVELS[self.state]

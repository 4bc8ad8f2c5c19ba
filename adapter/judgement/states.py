"""The states of an HPA, how bad each is, and the judgement that names one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

Level = Literal["good", "warning", "bad", "off"]


class HpaState(StrEnum):
    """What an HPA does. The order is that of attention: the worst first."""

    STUCK = "stuck"
    """The controller has no value, no target or no right, and keeps the size."""
    STALE = "stale"
    """The HPA controller has not looked at the HPA for minutes."""
    BEHIND = "behind"
    """The workload does not follow: replicas that the HPA wants do not exist, or are not ready."""
    OVERLOADED = "overloaded"
    """A target is exceeded beyond the tolerance, and something keeps the HPA from scaling out."""
    MISCONFIGURED = "misconfigured"
    """It decides, but its manifest cannot do what it is for."""
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
    """At 0 replicas, set by hand: the HPA never wakes it."""


LEVELS: Final[dict[HpaState, Level]] = {
    HpaState.STUCK: "bad",
    HpaState.STALE: "bad",
    HpaState.BEHIND: "bad",
    HpaState.OVERLOADED: "warning",
    HpaState.MISCONFIGURED: "warning",
    HpaState.INCOMPLETE: "warning",
    HpaState.WAITING: "warning",
    HpaState.SCALING_OUT: "good",
    HpaState.SCALING_IN: "good",
    HpaState.HELD: "good",
    HpaState.HEALTHY: "good",
    HpaState.AT_ZERO: "off",
    HpaState.PAUSED: "off",
}
ORDER: Final = tuple(HpaState)
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The state of one HPA."""

    state: HpaState
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

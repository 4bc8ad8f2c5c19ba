"""The state of the controller that its metrics and its readiness show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.nodepool.act.orders import OrderOutcome
from adapter.nodepool.learn.idle import IdlePod
from adapter.nodepool.model.capacity import Pool
from adapter.nodepool.plan.order import Plan


@dataclass(slots=True)
class ControllerState:
    """Written by the loop alone."""

    started: float
    apply: bool
    rounds: int = 0
    broken: int = 0
    """Rounds that ended with an unexpected exception."""
    planned_at: float | None = None
    """Epoch seconds of the last plan; None before the first."""
    frozen: str = ""
    """Why nothing is planned; empty while it is."""
    plan: Plan | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    outcomes: tuple[OrderOutcome, ...] = ()
    method: str = ""
    """``CapacityBuffer``, ``Placeholder``, or empty while it is not decided."""
    method_reason: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    shortfalls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Headroom that the autoscaler cannot fill, by the workloads' namespace and the object's name,
    and why."""
    idle: tuple[IdlePod, ...] = ()
    round_seconds: float = 0.0
    """What the last round took."""
    ended_at: float | None = None
    """Epoch seconds when a round last ended, with or without a plan."""

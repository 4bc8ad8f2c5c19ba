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
    """State of the controller. Only the loop writes it."""

    started: float
    apply: bool
    rounds: int = 0
    broken: int = 0
    """Rounds that ended with an unexpected exception."""
    planned_at: float | None = None
    """Epoch seconds of the last plan; None before the first."""
    frozen: str = ""
    """Why planning is paused; empty if it is not."""
    plan: Plan | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    outcomes: tuple[OrderOutcome, ...] = ()
    method: str = ""
    """``CapacityBuffer``, ``Placeholder``, or empty until it is decided."""
    method_reason: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    shortfalls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Namespace of the workloads and name of the object -> why the autoscaler cannot fill it."""
    idle: tuple[IdlePod, ...] = ()
    round_seconds: float = 0.0
    """Duration of the last round."""
    ended_at: float | None = None
    """Epoch seconds when a round last ended, with or without a plan."""

"""Limits and durations of a plan. All are settings, which also have the defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.settings.nodepool import LimitSettings, NodepoolSettings

_DEFAULTS: Final = LimitSettings()
OTHER_POOLS = "*"
"""Key of :attr:`Limits.gpu_hour_prices` for all other pools."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits and durations of one plan.

    Raises:
        ValueError: a duration is not positive, or a limit is negative; the text names the field.
    """

    quantile: float = _DEFAULTS.quantile
    """Quantile of the growth of demand within a boot time."""
    boot_seconds: float = _DEFAULTS.boot_seconds
    """Boot time of a pool until its own is known."""
    hold_seconds: float = _DEFAULTS.hold_seconds
    """How long headroom is kept after it was last needed."""
    decay_seconds: float = _DEFAULTS.decay_seconds
    """Seconds between halvings of headroom after the hold."""
    stale_seconds: float = _DEFAULTS.stale_seconds
    """If demand is unknown for longer, its headroom decays to 0."""
    min_pods: int = _DEFAULTS.min_pods
    """Minimum headroom pods of a shape that an HPA scales, while its demand is known. Limits and
    budgets take precedence."""
    max_pods: int = _DEFAULTS.max_pods
    """Maximum headroom pods of one shape in one namespace."""
    max_gpus_per_pool: int = _DEFAULTS.max_gpus_per_pool
    """Maximum GPUs of headroom in one pool."""
    gpu_hours_per_day: float | None = None
    """Budget of each pool; None without a budget."""
    cost_per_day: float | None = None
    """Budget of each pool in the currency of :attr:`gpu_hour_prices`; None without a budget. With
    one, a pool without a price gets no headroom."""
    gpu_hour_prices: Mapping[str, float] = field(default_factory=dict)
    """Pool -> price of one GPU for one hour; ``*`` stands for all other pools."""
    lifeline_seconds: float = NodepoolSettings().lifeline
    """The lifeline: how long headroom may outlive the controller. Budgets charge every order for
    this time in advance, so that they include the headroom left by a stopped controller."""
    claim_namespaces: frozenset[str] = frozenset()
    """Namespaces that may have headroom with ResourceClaims."""
    enabled: bool = True
    """False, the kill switch, removes all headroom immediately."""

    def __post_init__(self) -> None:
        for name in ("boot_seconds", "decay_seconds", "lifeline_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give a time above 0")
        for name in ("hold_seconds", "stale_seconds", "min_pods", "max_pods", "max_gpus_per_pool"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give 0 or more")

    def price(self, pool: str) -> float | None:
        """Return the price of a GPU-hour in a pool; None if unknown."""
        return self.gpu_hour_prices.get(pool, self.gpu_hour_prices.get(OTHER_POOLS))

    def gpus_within_budget(self, pool: str, spent_hours: float) -> float:
        """Return the maximum GPUs that both budgets can pay for until the lifeline expires.

        Args:
            spent_hours: GPU-hours of headroom in the pool so far today.

        Returns:
            A whole number, or infinity without a budget.
        """
        budget = math.inf if self.gpu_hours_per_day is None else self.gpu_hours_per_day
        if self.cost_per_day is not None:
            price = self.price(pool)
            if price is None:
                return 0
            budget = min(budget, self.cost_per_day / price if price > 0 else math.inf)
        left = (budget - spent_hours) * 3600 / self.lifeline_seconds
        return max(0, math.floor(left)) if math.isfinite(left) else math.inf


def limits_of(settings: NodepoolSettings) -> Limits:
    """Return the limits from the settings."""
    return Limits(
        **settings.limits.model_dump(),
        lifeline_seconds=settings.lifeline,
        claim_namespaces=frozenset(settings.claim_namespaces),
        enabled=not settings.stop,
    )

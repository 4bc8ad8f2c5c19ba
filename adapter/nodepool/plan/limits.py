"""Limits and durations of a plan."""

from __future__ import annotations

import math
from typing import Final

from adapter.config.settings.nodepool import LimitSettings, NodepoolSettings
from adapter.config.settings.types import Interval

OTHER_POOLS: Final = "*"
"""Key of ``gpu_hour_prices`` for all other pools."""
DEFAULT_QUANTILE: Final = 0.8
_SUREST: Final = 0.995
_LEAST_SURE: Final = 0.05
"""Headroom for less is none: demand almost always rises by more."""


class Limits(LimitSettings):
    """The settings in ``nodepool.limits``, and the other limits of a plan."""

    lifeline_seconds: Interval = NodepoolSettings().lifeline
    """The lifeline: how long headroom may outlive the controller. Budgets charge every order for
    this time in advance, so that they include the headroom left by a stopped controller."""
    claim_namespaces: frozenset[str] = frozenset()
    """Namespaces that may have headroom with ResourceClaims."""
    buffers: bool = True
    """Whether headroom is ordered as CapacityBuffers. A buffer that does not fit ends the Cluster
    Autoscaler's wait for new GPU pods; a placeholder is itself a new pod."""
    enabled: bool = True
    """False, the kill switch, removes all headroom immediately."""

    def price(self, pool: str) -> float | None:
        """Return the price of a GPU-hour in a pool; None if unknown."""
        return self.gpu_hour_prices.get(pool, self.gpu_hour_prices.get(OTHER_POOLS))

    def quantile_for(self, pool: str, gpus_per_pod: int) -> float:
        """Return the probability with which headroom should suffice.

        A pod that finds no node waits about as long as one pod of headroom is kept for it. So the
        last pod of headroom pays while the probability that it is used is above the ratio of the
        two prices.
        """
        if self.waiting_minute_price is None:
            return DEFAULT_QUANTILE if self.quantile is None else self.quantile
        # Without a pool, the price of all other pools applies.
        price = self.price(pool) or 0.0
        risk = price * max(1, gpus_per_pod) / 60 / self.waiting_minute_price
        return min(_SUREST, max(_LEAST_SURE, 1 - risk))

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


def limits_of(settings: NodepoolSettings, *, buffers: bool = True) -> Limits:
    """Return the limits from the settings.

    Args:
        buffers: of :class:`Limits`.
    """
    return Limits(
        **settings.limits.model_dump(),
        lifeline_seconds=settings.lifeline,
        claim_namespaces=frozenset(settings.claim_namespaces),
        buffers=buffers,
        enabled=not settings.stop,
    )

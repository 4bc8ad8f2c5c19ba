"""Invalid limits are refused; budgets pay for whole GPUs only."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from pydantic import ValidationError

from adapter.config.settings.nodepool import LimitSettings
from adapter.nodepool.plan.limits import Limits

WRONG = {
    "a lifeline of 0": {"lifeline_seconds": 0},
    "a negative bound": {"max_pods": -1},
    "no number": {"hold_seconds": math.nan},
    "no such limit": {"max_nodes": 1},
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_a_plan_rejects_the_limits_that_the_settings_reject(given: dict[str, float]) -> None:
    (field,) = given
    with pytest.raises(ValueError, match=field):
        Limits.model_validate(given)


PAID = {
    "no budget": (Limits(), 5.0, math.inf),
    "nothing spent": (Limits(gpu_hours_per_day=2, lifeline_seconds=1800), 0.0, 4),
    "whole GPUs": (Limits(gpu_hours_per_day=2, lifeline_seconds=1800), 0.1, 3),
    "overspent": (Limits(gpu_hours_per_day=2), 3.0, 0),
    "free of charge": (Limits(cost_per_day=2, gpu_hour_prices={"*": 0}), 3.0, math.inf),
    "priced": (Limits(cost_per_day=2, gpu_hour_prices={"*": 4}, lifeline_seconds=900), 0.25, 1),
    "no price": (Limits(cost_per_day=2, gpu_hour_prices={"other": 1}), 0.0, 0),
}


@pytest.mark.parametrize(("limits", "spent", "gpus"), PAID.values(), ids=PAID)
def test_gpus_that_the_budget_pays_for(limits: Limits, spent: float, gpus: float) -> None:
    assert limits.gpus_within_budget("gpu", spent) == gpus


def priced(pool: str, gpus: int, **prices: float) -> float:
    limits = Limits(gpu_hour_prices={"*": 3.0, "dear": 12.0}, **prices)
    return limits.quantile_for(pool, gpus)


def test_the_quantile_follows_from_the_prices() -> None:
    """A GPU-minute for 0.05 and a waiting pod-minute for 0.25: a risk of 20 % pays."""
    assert priced("a", 1, waiting_minute_price=0.25) == pytest.approx(0.8)
    assert priced("a", 2, waiting_minute_price=0.25) == pytest.approx(0.6)
    assert priced("dear", 1, waiting_minute_price=0.25) == pytest.approx(0.2)
    assert priced("", 1, waiting_minute_price=0.25) == pytest.approx(0.8)


def test_extreme_prices_give_a_quantile_within_bounds() -> None:
    assert priced("a", 1, waiting_minute_price=0.001) == 0.05
    assert priced("a", 1, waiting_minute_price=1e9) == 0.995


def test_without_prices_the_quantile_is_the_stated_one_or_the_default() -> None:
    assert Limits().quantile_for("a", 1) == 0.8
    assert Limits(quantile=0.6).quantile_for("a", 1) == 0.6


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"quantile": 0.9, "waiting_minute_price": 1.0, "gpu_hour_prices": {"*": 2.0}},
            "waiting_minute_price and quantile exclude each other: remove one of them",
        ),
        (
            {"waiting_minute_price": 1.0, "gpu_hour_prices": {"a": 2.0}},
            'waiting_minute_price needs a price in gpu_hour_prices for every pool: add "*"',
        ),
        ({"waiting_minute_price": 0.0, "gpu_hour_prices": {"*": 2.0}}, "greater than 0"),
        ({"share": -0.1}, "greater than or equal to 0"),
    ],
)
def test_prices_and_shares_are_validated(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(problem)):
        LimitSettings(**settings)

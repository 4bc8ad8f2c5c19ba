"""Invalid limits are refused; budgets pay for whole GPUs only."""

from __future__ import annotations

import math

import pytest

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

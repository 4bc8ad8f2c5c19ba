"""Limits that make no sense are refused; budgets only ever pay for whole GPUs."""

from __future__ import annotations

import math

import pytest

from adapter.nodepool.plan.limits import Limits

WRONG = {
    "boot_seconds": "boot_seconds is 0: give a time above 0",
    "decay_seconds": "decay_seconds is 0: give a time above 0",
    "lifeline_seconds": "lifeline_seconds is 0: give a time above 0",
}


@pytest.mark.parametrize(("field", "text"), WRONG.items(), ids=WRONG)
def test_a_duration_of_0_is_refused(field: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Limits(**{field: 0})  # type: ignore[arg-type]  # a field by its name


@pytest.mark.parametrize("field", ["hold_seconds", "max_pods", "max_gpus_per_pool", "min_pods"])
def test_a_negative_limit_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is -1: give 0 or more"):
        Limits(**{field: -1})  # type: ignore[arg-type]  # a field by its name


def test_nan_is_refused_as_a_limit() -> None:
    with pytest.raises(ValueError, match="hold_seconds is nan"):
        Limits(hold_seconds=math.nan)


PAID = {
    "no budget": (Limits(), 5.0, math.inf),
    "nothing spent": (Limits(gpu_hours_per_day=2, lifeline_seconds=1800), 0.0, 4),
    "whole GPUs": (Limits(gpu_hours_per_day=2, lifeline_seconds=1800), 0.1, 3),
    "overspent": (Limits(gpu_hours_per_day=2), 3.0, 0),
    "free of charge": (Limits(cost_per_day=2, gpu_hour_prices={"*": 0}), 3.0, math.inf),
    "priced": (Limits(cost_per_day=2, gpu_hour_prices={"*": 4}, lifeline_seconds=900), 0.25, 1),
    "no price": (Limits(cost_per_day=2), 0.0, 0),
}


@pytest.mark.parametrize(("limits", "spent", "gpus"), PAID.values(), ids=PAID)
def test_gpus_that_the_budget_pays_for(limits: Limits, spent: float, gpus: float) -> None:
    assert limits.gpus_within_budget("gpu", spent) == gpus

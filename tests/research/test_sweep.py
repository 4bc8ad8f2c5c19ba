"""How policies are compared."""

from __future__ import annotations

import pytest

from research.sweep import (
    OURS,
    STATIC,
    Cost,
    Result,
    Setting,
    pending_at,
    sweep,
)
from research.traces import Part, Trace

SWEPT = {
    Setting(STATIC, 1): Cost(60, 12),
    Setting(STATIC, 2): Cost(20, 16),
    Setting(OURS, 0.5): Cost(50, 11),
}


def result(name: str = "a") -> Result:
    return Result(name, False, Cost(100, 10), Cost(0, 10.5), Cost(0, 30), SWEPT)


@pytest.mark.parametrize(
    ("family", "gpu_percent", "pending"),
    [
        pytest.param(STATIC, 100, 100, id="the reactive autoscaler itself"),
        pytest.param(STATIC, 120, 60, id="a setting"),
        pytest.param(STATIC, 110, 80, id="between reactive and the first setting"),
        pytest.param(STATIC, 140, 40, id="between two settings"),
        pytest.param(OURS, 120, None, id="no setting is so dear"),
    ],
)
def test_families_are_compared_at_the_same_cost(
    family: str, gpu_percent: float, pending: float | None
) -> None:
    assert pending_at(result(), family, gpu_percent) == pending


def test_each_trace_gets_each_setting() -> None:
    traces = [Trace(name, (70.0, 280.0) * 10, False, 0.0) for name in ("a", "b")]
    (first, second) = sweep(traces, [STATIC])
    assert first.swept == second.swept
    assert {setting.family for setting in first.swept} == {STATIC}
    assert first.reactive.pending > 0


def test_parts_of_a_trace_are_minutes_of_one_simulation() -> None:
    work = (70.0, 280.0) * 20
    halves = (Part("first", True, 0, 20), Part("second", False, 20, 40))
    split, whole = (Trace("a", work, False, 0.0, parts) for parts in (halves, ()))
    first, second, both = sweep([split, whole], [STATIC])
    assert [first.trace, second.trace, both.trace] == ["first", "second", "a"]
    assert first.tuned_on
    assert not second.tuned_on
    for setting, cost in both.swept.items():
        parts = (first.swept[setting], second.swept[setting])
        assert sum(part.pending for part in parts) == cost.pending
        assert sum(part.gpu_hours for part in parts) == pytest.approx(cost.gpu_hours)


def test_a_minute_is_covered_if_the_headroom_suffices_for_a_boot_time() -> None:
    """One step of two pods: the five minutes before it need two spare GPUs."""
    trace = Trace("a", (70.0,) * 20 + (210.0,) * 20, False, 0.0)
    (result,) = sweep([trace], [STATIC])
    minutes = 40 - 5
    assert result.reactive.covered == pytest.approx(1 - 5 / minutes)
    assert result.swept[Setting(STATIC, 1)].covered == pytest.approx(1 - 5 / minutes)
    assert result.swept[Setting(STATIC, 2)].covered == 1

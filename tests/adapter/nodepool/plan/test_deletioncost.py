"""Deletion costs: in buckets, only before a scale-in, and never against another writer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.utilization import smooth
from adapter.nodepool.plan.deletioncost import PodLoad, costs, nears_scale_in


def load(
    percent: float | None,
    name: str = "a",
    *,
    cost: str | None = None,
    ours: bool = True,
    node: int = 1,
    others: int = 0,
) -> PodLoad:
    return PodLoad(name, percent, node, others, cost, ours and cost is not None)


BUCKETS = {
    "idle": (load(0), 5),
    "rounded to the nearest": (load(34), 305),
    "busy": (load(100), 1005),
    "beyond what a percentage can be": (load(130), 1005),
    "unknown: it must not go because nobody looked": (load(None), 1005),
    "alone on a large node: that node empties first": (load(34, node=8), 300),
    "beside others on a large node": (load(34, node=8, others=3), 330),
    "beside more than a bucket has room for": (load(34, node=16, others=15), 390),
    "a bucket is left when it is far off": (load(38, cost="305"), 405),
    "and kept when it is not": (load(37, cost="305"), None),
    "a value that is not a number is replaced": (load(34, cost="many"), 305),
}


@pytest.mark.parametrize(("pod", "cost"), BUCKETS.values(), ids=BUCKETS)
def test_the_deletion_cost_of_a_pod(pod: PodLoad, cost: int | None) -> None:
    assert costs([pod], near=True).costs.get("a") == cost


def test_every_pod_of_the_workload_has_a_cost_once_one_has() -> None:
    change = costs([load(5, "a"), load(95, "b"), load(None, "c")], near=True)
    assert change.costs == {"a": 5, "b": 1005, "c": 1005}


def test_without_a_likely_scale_in_our_costs_are_removed() -> None:
    assert costs([load(5, "a", cost="5"), load(5, "b")], near=False).costs == {"a": None}


def test_our_costs_are_removed_if_another_writer_sets_costs() -> None:
    pods = [load(5, "a", cost="5"), load(95, "b", cost="7", ours=False), load(5, "c")]
    change = costs(pods, near=True)
    assert change.foreign == ("b",)
    assert change.costs == {"a": None}


NEAR = {
    "the HPA has decided": ((2, 3, 90.0, 70.0), True),
    "the load is well under the target": ((3, 3, 60.0, 70.0), True),
    "the load is at the target": ((3, 3, 66.0, 70.0), False),
    "the load is unknown": ((3, 3, None, 70.0), False),
    "one pod is left": ((1, 1, 0.0, 70.0), False),
    "it grows": ((4, 3, 90.0, 70.0), False),
}


@pytest.mark.parametrize(("seen", "is_near"), NEAR.values(), ids=NEAR)
def test_when_a_scale_in_is_likely(
    seen: tuple[int, int, float | None, float], is_near: bool
) -> None:
    desired, current, value, target = seen
    assert nears_scale_in(desired, current, value, target, 0.1, was=False) is is_near


def test_a_likely_scale_in_stays_likely_for_half_the_margin() -> None:
    assert nears_scale_in(3, 3, 66.0, 70.0, 0.1, was=True)
    assert not nears_scale_in(3, 3, 67.0, 70.0, 0.1, was=True)


SMOOTH = {
    "the first value": (None, 80.0, 80.0),
    "half of the way in a half-life": (40.0, 80.0, 60.0),
    "no value leaves what was known": (40.0, None, 40.0),
    "nothing is made of nothing": (None, None, None),
}


@pytest.mark.parametrize(("past", "value", "mean"), SMOOTH.values(), ids=SMOOTH)
def test_a_mean_moves_by_half_in_a_half_life(
    past: float | None, value: float | None, mean: float | None
) -> None:
    assert smooth(past, value, 60, 60) == mean


def test_a_clock_that_was_set_back_does_not_change_a_mean() -> None:
    assert smooth(40.0, 80.0, -86400, 60) == 40.0


loads = st.builds(
    PodLoad,
    st.text("ab", min_size=1, max_size=4),
    st.none() | st.floats(0, 100),
    st.integers(1, 16),
    st.integers(0, 15),
    st.none() | st.integers(0, 1095).map(str),
    st.just(True),
    st.booleans(),
)


@given(st.lists(loads, unique_by=lambda pod: pod.name), st.booleans())
def test_written_costs_are_not_written_again(pods: list[PodLoad], is_near: bool) -> None:
    change = costs(pods, near=is_near)
    written = {pod.name: pod.cost for pod in pods} | {
        name: None if cost is None else str(cost) for name, cost in change.costs.items()
    }
    after = [pod._replace(cost=written[pod.name]) for pod in pods]
    assert not costs(after, near=is_near).costs
    if is_near:
        sick = {pod.name for pod in pods if pod.unhealthy}
        for name, cost in written.items():
            assert int(cost or 0) in (range(-100, 0) if name in sick else range(1100))


@given(st.floats(0, 100), st.floats(0, 100))
def test_a_pod_with_clearly_lower_utilisation_never_has_a_higher_cost(
    one: float, other: float
) -> None:
    low, high = sorted((one, other))
    change = costs([load(low, "low", node=8, others=7), load(high, "high", node=8)], near=True)
    if high - low > 10:
        assert (change.costs["low"] or 0) < (change.costs["high"] or 0)


def test_a_pod_with_an_unhealthy_device_goes_before_an_idle_one() -> None:
    pods = [PodLoad("idle", 0.0, 8, 0), PodLoad("sick", 100.0, 8, 7, unhealthy=True)]
    pod_costs = costs(pods, near=True).costs
    assert (pod_costs["sick"] or 0) < (pod_costs["idle"] or 0)

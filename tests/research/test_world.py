"""The simulator: waits, costs, and the information of a policy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.plan.limits import Limits
from adapter.tools.replay.headroompolicies import (
    FixedHeadroom,
    NoHeadroom,
    PlannedHeadroom,
    ShareOfPods,
)
from adapter.tools.replay.nodeworld import HeadroomPolicy, NodeMoment, NodePhysics
from research.hpa import TOLERANCES
from research.policies import Oracle
from research.world import Outcome, ceiling, simulate
from tests.examples import bounded

BEGIN = 1_700_000_040.0
"""A whole minute."""
ONE, TWO, FOUR = 70.0, 140.0, 280.0
"""Work of a number of pods at the target."""


def run(work: Sequence[float], policy: HeadroomPolicy) -> Outcome:
    return simulate(work, BEGIN, policy)


def planned(work: Sequence[float], quantile: float = 0.8) -> PlannedHeadroom:
    limits = Limits(quantile=quantile, max_pods=99, max_gpus_per_pool=99)
    return PlannedHeadroom(limits, ceiling(work), BEGIN, TOLERANCES.up)


def oracle(work: Sequence[float]) -> Oracle:
    ample = run(work, FixedHeadroom(ceiling(work)))
    return Oracle(ample.replicas, BEGIN, NodePhysics().boot)


def test_a_constant_load_has_no_wait_and_pays_for_its_pods() -> None:
    outcome = run([TWO] * 60, NoHeadroom())
    assert outcome.pending_pod_seconds == 0
    assert outcome.gpu_hours == pytest.approx(2)


def test_a_pod_without_a_node_waits_for_the_autoscaler_and_for_the_boot() -> None:
    outcome = run([ONE] * 5 + [TWO] * 30, NoHeadroom())
    assert outcome.pending_pod_seconds == 30 + 300


def test_a_step_into_headroom_has_no_wait() -> None:
    work = [ONE] * 10 + [TWO] * 30
    assert run(work, FixedHeadroom(1)).pending_pod_seconds == 0


def test_with_headroom_pods_that_do_not_fit_are_handled_immediately() -> None:
    """A buffer that does not fit lifts the 30 s wait from all pending pods."""
    outcome = run([ONE] * 10 + [FOUR] * 30, FixedHeadroom(1))
    assert outcome.pending_pod_seconds == 2 * 300


def test_headroom_that_pods_took_is_ordered_again() -> None:
    work = [ONE] * 10 + [TWO] * 15 + [3 * ONE] * 15
    assert run(work, FixedHeadroom(1)).pending_pod_seconds == 0


def test_a_node_is_removed_ten_minutes_after_its_pod() -> None:
    """The HPA keeps the second pod for 5 minutes, the autoscaler its node for 10 more."""
    outcome = run([TWO] * 5 + [ONE] * 60, NoHeadroom())
    assert outcome.gpu_hours * 3600 == pytest.approx(65 * 60 + (5 + 5 + 10) * 60, abs=30)


def test_a_node_that_is_needed_again_stays() -> None:
    work = [TWO] * 5 + [ONE] * 10 + [TWO] * 5
    assert run(work, NoHeadroom()).pending_pod_seconds == 0


def test_headroom_for_pods_that_the_hpa_creates_in_steps_is_ordered_once() -> None:
    """The HPA doubles the pods each 15 s. The plan asks for all, and for less with each step."""
    work = [5 * ONE] * 5 + [40 * ONE] * 20
    outcome = run(work, planned(work, quantile=0.1))
    assert max(outcome.bills) / 60 <= 40 + 5
    assert outcome.pending_pod_seconds < run(work, NoHeadroom()).pending_pod_seconds


class _Noted(NoHeadroom):
    """Notes when it decides."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def headroom(self, moment: NodeMoment) -> int:
        self.at.append(moment.now - BEGIN)
        return super().headroom(moment)


def test_a_policy_decides_each_minute_and_when_the_number_of_pods_changes() -> None:
    noted = _Noted()
    run([ONE, ONE, 9 * ONE, 9 * ONE], noted)
    # The HPA goes from one pod to nine in three syncs.
    assert noted.at == [0, 60, 120, 135, 150, 180]


def test_a_share_of_the_pods_is_rounded_up() -> None:
    assert run([4 * ONE] * 3, ShareOfPods(0.3)).headroom == (2, 2, 2)


def test_the_oracle_has_no_wait_and_costs_less_than_any_fixed_size_without_wait() -> None:
    work = ([ONE] * 20 + [FOUR] * 20) * 3
    knowing, fixed = run(work, oracle(work)), run(work, FixedHeadroom(3))
    assert knowing.pending_pod_seconds == fixed.pending_pod_seconds == 0
    assert knowing.gpu_hours < fixed.gpu_hours


BURSTS = [*([ONE] * 29), FOUR] * 8
"""Four pods for one minute per half hour: longer than an unneeded node is kept."""


def test_the_plan_learns_recurring_bursts() -> None:
    reactive = run(BURSTS, NoHeadroom())
    ours = run(BURSTS, planned(BURSTS, quantile=0.9))
    assert ours.pending_pod_seconds < reactive.pending_pod_seconds / 2


def test_the_same_trace_gives_the_same_day() -> None:
    assert run(BURSTS, planned(BURSTS)) == run(BURSTS, planned(BURSTS))


loads = st.lists(st.integers(0, 700).map(float), min_size=41, max_size=80)


@bounded(4)
@given(loads)
def test_only_the_oracle_knows_the_future(work: list[float]) -> None:
    """Changes after minute 40 do not affect the time before."""
    other = work[:40] + work[:39:-1]
    for make in (planned, lambda _: ShareOfPods(0.3)):
        first, second = run(work, make(work)), run(other, make(other))
        assert first.headroom[:40] == second.headroom[:40]


@bounded(4)
@given(loads)
def test_no_policy_pays_less_than_its_running_pods(work: list[float]) -> None:
    for policy in (NoHeadroom(), FixedHeadroom(1), planned(work), oracle(work)):
        outcome = run(work, policy)
        asked = sum(outcome.replicas) * 15
        assert outcome.gpu_hours * 3600 >= asked - outcome.pending_pod_seconds

"""Queues of Jobs: headroom for the next Jobs, never for those that have ended.

The shapes of the load are those that users describe: one burst, arrays of some hundred pods,
batches by a CronJob, long training runs, and workflows whose every run has names of its own
(kubernetes/kubernetes#67779, aws/karpenter-provider-aws#3059 and #7586,
argoproj/argo-workflows#10654, aws/aws-parallelcluster#2454).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.arrivals import rise_chances, rise_since
from adapter.nodepool.learn.forecast import Forecast, ForecastRequest, forecast
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.capacity import Headroom
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.observation import JobPods, queues
from tests.adapter.nodepool.planning import GPU, capacity, order, pod
from tests.examples import bounded

DAY = 86400.0
MIDNIGHT = 20_000 * DAY
NOON = MIDNIGHT + DAY / 2
LEADS = [30, 60, 300, 600]


def asked(lead: float, quantile: float = 0.8) -> ForecastRequest:
    return ForecastRequest(lead, quantile, 0.2, queue=True)


def forecasts(
    pods: Sequence[int],
    lead: float,
    quantile: float = 0.8,
    begin: float = NOON,
    history: DemandHistory = EMPTY,
) -> list[Forecast]:
    """What is forecast in each minute of a queue."""
    by_minute = []
    for minute, present in enumerate(pods):
        now = begin + 60 * minute
        history = learn(history, DemandPoint(now, present))
        by_minute.append(forecast(history, present, asked(lead, quantile), now))
    return by_minute


def beyond(pods: Sequence[int], lead: float, quantile: float = 0.8) -> list[int]:
    """Pods that are expected beyond those that exist, minute by minute."""
    by_minute = forecasts(pods, lead, quantile)
    return [foreseen.pods - present for foreseen, present in zip(by_minute, pods, strict=True)]


def highest_rise(pods: Sequence[int], lead: float) -> int:
    """The largest rise that a queue has shown within one lead time."""
    ahead = int(lead // 60) + 1
    return max(
        (high - low for at, low in enumerate(pods) for high in pods[at : at + ahead + 1]), default=0
    )


def drawn(rate: float, minutes: float, size: int, seed: int, count: int = 720) -> list[int]:
    """Arrays of so many pods that arrive at random, each for a random time.

    Args:
        rate: arrays in a minute.
        minutes: mean duration.
    """
    draw = random.Random(seed)
    pods = [0] * count
    time = draw.expovariate(rate)
    while time < count:
        end = time + draw.expovariate(1 / minutes)
        for minute in range(int(time), min(count, int(end) + 1)):
            pods[minute] += size
        time += draw.expovariate(rate)
    return pods


ONE_BURST = [50] * 2 + [0] * 60
AFTER_IDLE = [0] * 5 + [10] * 10 + [0] * 60
HOURLY = ([0] * 5 + [20] * 10 + [0] * 45) * 8


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("pods", [ONE_BURST, AFTER_IDLE, [0] * 200 + ONE_BURST], ids=str)
def test_a_burst_that_has_ended_leaves_no_headroom(pods: Sequence[int], lead: float) -> None:
    assert set(beyond(pods, lead)) == {0}
    assert {foreseen.kept - foreseen.pods for foreseen in forecasts(pods, lead)} == {0}


@pytest.mark.parametrize("lead", LEADS)
def test_two_bursts_make_no_pattern(lead: float) -> None:
    assert set(beyond(ONE_BURST + ONE_BURST, lead, 0.95)) == {0}


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([8] * 300 + [0] * 60, id="a training run that ends"),
        pytest.param([0] * 30 + [8] * 300, id="a training run that goes on"),
        pytest.param(list(range(20)) + [20] * 100 + [0] * 60, id="an array that fills slowly"),
        pytest.param([0] * 10 + list(range(40, 0, -1)) + [0] * 60, id="an array that ends slowly"),
    ],
)
def test_long_jobs_leave_no_headroom(pods: Sequence[int], lead: float) -> None:
    """While an array fills, its rises may be expected to go on."""
    assert set(beyond(pods, lead)[-60:]) == {0}


@pytest.mark.parametrize("lead", [60, 300, 600])
def test_batches_at_an_interval_are_ordered_ahead_and_not_earlier(lead: int) -> None:
    extra = beyond(HOURLY, lead)[-60:]
    ahead = lead // 60 + 1
    due = [(minute - 5) % 60 >= 60 - ahead for minute in range(60)]
    assert [count == 20 for count in extra] == due
    assert {count for count, is_due in zip(extra, due, strict=True) if not is_due} == {0}


def test_batches_every_90_minutes_are_ordered_ahead() -> None:
    extra = beyond(([0] * 5 + [20] * 10 + [0] * 75) * 6, 300)
    assert extra[-90:][:5] == [20] * 5
    assert sum(extra[-90:]) == 20 * 6


def test_a_batch_that_is_due_says_why() -> None:
    foreseen = forecasts(HOURLY, 300)[-60 + 4]
    assert foreseen.code == "forecast"
    assert foreseen.text == (
        "at most 20 pods are expected within 5 min with 80% "
        "(+20 followed in 4 of 4 cases with the last such rise 59 min ago)"
    )


def test_a_batch_that_stays_away_is_not_expected_for_long() -> None:
    """Never so long after the last one did a batch come."""
    quiet = beyond(HOURLY + [0] * 30, 300)
    assert quiet[len(HOURLY) + 4] == 20
    assert set(quiet[len(HOURLY) + 6 :]) == {0}


def test_batches_that_come_a_little_early_or_late_are_ordered_ahead() -> None:
    """The hold of an order covers the last minutes, at which too few batches were so late."""
    draw = random.Random(2)
    pods = [0] * 720
    starts = [60 * hour + 5 + draw.randint(0, 4) for hour in range(12)]
    for start in starts:
        pods[start : start + 8] = [20] * 8
    extra = beyond(pods, 300)
    assert [max(extra[start - 4 : start - 1]) for start in starts[6:]] == [20] * 6
    assert sum(extra) <= 20 * 12 * len(starts)


def test_small_jobs_in_between_hide_no_batch() -> None:
    small = drawn(0.3, 3, 1, seed=5, count=len(HOURLY))
    pods = [few + many for few, many in zip(small, HOURLY, strict=True)]
    extra = beyond(pods, 300)
    assert all(extra[60 * hour + 4] >= 15 for hour in range(5, 8))
    assert max(extra[60 * 7 + 20 : 60 * 7 + 55]) < 10


@pytest.mark.parametrize("lead", [60, 300])
@pytest.mark.parametrize(
    ("rate", "minutes", "size"), [(2, 4, 1), (0.2, 4, 1), (0.2, 3, 5), (0.05, 5, 10), (0.02, 60, 1)]
)
def test_random_arrivals_are_covered_about_as_often_as_stated(
    rate: float, minutes: float, size: int, lead: float
) -> None:
    """Rare arrivals need no headroom, so the forecast of the present pods holds more often."""
    held, checks = 0, 0
    ahead = int(lead // 60) + 1
    for seed in range(3):
        pods = drawn(rate, minutes, size, seed)
        by_minute = forecasts(pods, lead)
        for minute in range(180, len(pods) - ahead, 2):
            held += max(pods[minute + 1 : minute + 1 + ahead]) <= by_minute[minute].pods
            checks += 1
    assert 0.7 <= held / checks <= 0.97


def days(count: int, at: int, pods: int, last: int) -> DemandHistory:
    """Days with one burst, for some minutes from a minute on, and nothing else."""
    history = EMPTY
    for day in range(count):
        for minute in range(1440):
            load = pods if at <= minute < at + last else 0
            history = learn(history, DemandPoint(MIDNIGHT + day * DAY + 60 * minute, load))
    return history


def test_a_burst_of_each_day_is_ordered_ahead_and_leaves_nothing() -> None:
    start = 9 * 60
    today = [0] * start + [30] * 3 + [0] * 30
    by_minute = forecasts(today, 300, begin=MIDNIGHT + 3 * DAY, history=days(3, start, 30, 3))
    assert [foreseen.pods for foreseen in by_minute[start - 5 : start]] == [30] * 5
    assert "+30 at this time on most of 3 earlier days" in by_minute[start - 1].text
    assert {foreseen.pods for foreseen in by_minute[start : start + 3]} == {30}
    assert {foreseen.pods for foreseen in by_minute[start + 3 :]} == {0}
    assert {foreseen.kept for foreseen in by_minute[start + 3 :]} == {0}


def headroom_after(ledger: Ledger, shape: Shape, pods: int, now: float, lead: float) -> int:
    """One round of the controller for a queue of Jobs with one pod each."""
    jobs = [JobPods("ml", shape, 1, 1, 0, {"gpu": 1})] * pods
    known = [JobPods(space, shape, 0, 0, 0) for (space, _), shape in ledger.queues.items()]
    ledger.learn(queues([*jobs, *known], ledger.histories, now), now)
    limits = Limits(boot_seconds=lead, hold_seconds=1, max_pods=100)
    return sum(
        order(row, limits=limits, now=now).replicas
        for row in queues([*jobs, *known], ledger.histories, now)
    )


@pytest.mark.parametrize("lead", LEADS)
def test_runs_with_requirements_of_their_own_make_no_pattern(lead: float) -> None:
    """Each run selects nodes by its own label, so each is a queue that never fills again."""
    ledger = Ledger()
    for minute, pods in enumerate(HOURLY):
        shape = pod(nodeSelector={"run": f"train-{minute // 60:x}f3"})
        now = NOON + 60 * minute
        assert headroom_after(ledger, shape, pods, now, lead) == 0


def test_a_queue_without_jobs_is_given_up_by_the_plan() -> None:
    ledger = Ledger()
    replicas = [
        headroom_after(ledger, GPU, pods, NOON + 60 * minute, 60)
        for minute, pods in enumerate(ONE_BURST)
    ]
    assert set(replicas) == {0}


def test_a_forecast_that_is_over_ends_an_order() -> None:
    """The order is held for its time, and then deleted: no Job is left."""
    history = EMPTY
    for minute, load in enumerate(ONE_BURST):
        history = learn(history, DemandPoint(NOON + 60 * minute, load))
    now = NOON + 60 * (len(ONE_BURST) - 1)
    ((queue,)) = queues([JobPods("ml", GPU, 0, 0, 0)], {}, now)
    queue = replace(queue, history=history)
    held = Headroom("ml", GPU, 34, 0, now - 121)
    limits = Limits(max_pods=100, max_gpus_per_pool=100)
    made = order(queue, at=capacity(held), limits=limits, now=now)
    assert made.replicas == 0


queues_of_pods = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 50)), max_size=20).map(
    lambda runs: [pods for minutes, pods in runs for _ in range(minutes)]
)


@bounded(100)
@given(queues_of_pods, st.sampled_from(LEADS), st.sampled_from([0.5, 0.8, 0.95]))
def test_no_more_is_expected_than_the_past_has_risen_within_one_lead(
    pods: list[int], lead: int, quantile: float
) -> None:
    """Both are compared with the pods that exist."""
    by_minute = forecasts(pods, lead, quantile)
    for minute, foreseen in enumerate(by_minute):
        most = highest_rise(pods[: minute + 1], lead)
        assert pods[minute] <= foreseen.pods <= foreseen.kept <= pods[minute] + most


@bounded(100)
@given(queues_of_pods, st.sampled_from(LEADS), st.sampled_from([0.5, 0.8, 0.95]))
def test_a_queue_without_jobs_expects_what_followed_earlier_pauses(
    pods: list[int], lead: int, quantile: float
) -> None:
    """At least two pauses so long, and three rises of the size: half of the past is over then."""
    known = len(pods)
    rises = sum(high > low for low, high in pairwise(pods))
    extra = beyond([*pods, *[0] * (known // 2 + 2)], lead, quantile)
    assert extra[-1] == 0
    if rises < 3:
        assert set(extra) <= {0}


@bounded(60)
@given(queues_of_pods.filter(bool), st.sampled_from(LEADS), st.randoms(use_true_random=False))
def test_chances_do_not_depend_on_the_order_of_minutes(
    pods: list[int], lead: float, draw: random.Random
) -> None:
    points = [DemandPoint(60.0 * minute, load) for minute, load in enumerate(pods)]
    mixed = draw.sample(points, len(points))
    chances = rise_chances(tuple(points), lead)
    assert rise_chances(tuple(mixed), lead) == chances
    assert all(0 < chance.probability <= 1 for chance in chances)
    assert all(chance.followed <= chance.cases for chance in chances)
    sizes = [chance.pods for chance in chances]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) <= 12


def test_a_rise_during_a_gap_is_not_learned() -> None:
    """Nobody looked for two hours each time, so when the load rose is unknown."""
    points = [
        DemandPoint(60.0 * (minute + 130 * run), 9 * (minute < 5))
        for run in range(8)
        for minute in range(10)
    ]
    assert rise_chances(tuple(points), 300) == ()


@bounded(60)
@given(queues_of_pods, st.integers(0, 100))
def test_the_rise_since_a_time_is_that_of_the_later_minutes(pods: list[int], first: int) -> None:
    points = [DemandPoint(60.0 * minute, load) for minute, load in enumerate(pods)]
    later = pods[first:]
    most = max((high - low for at, low in enumerate(later) for high in later[at:]), default=0)
    assert rise_since(points, 60.0 * first) == most

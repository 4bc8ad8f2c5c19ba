"""Properties of the plan for any demand and any cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.model.capacity import Capacity, Headroom, Pool, PoolNode, Trap
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY
from adapter.nodepool.model.reason import CODES
from adapter.nodepool.model.shape import gpus, key
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order, Plan
from adapter.nodepool.plan.plan import plan
from tests.adapter.nodepool.planning import GPU, NOW, applied, node, past, pod, pool

T = TypeVar("T")

POOLS = ("a", "b")
SHAPES = (
    pod(pool="a"),
    replace(GPU, node_selector=()),
    pod(gpus=2, cpu="2", pool="a"),
    replace(pod(gpus=4, cpu="1", pool="b"), priority=100),
    replace(pod(pool="b"), claims=("one",), claim_devices=1),
    replace(pod(pool="b"), claims=("many",), claim_devices=None),
    replace(GPU, requests=(("cpu", 1000), ("pods", 1000))),
)


SLOT = 600
PASTS = (
    EMPTY,
    past([3], SLOT),
    past(range(24, 0, -1), SLOT),
    past([9, 2] * 12, SLOT),
    past([30, *[0] * 20], SLOT),
)
ages = st.floats(-1000, 5000).map(lambda age: NOW - age)
"""Some times are from a clock that was ahead."""


@st.composite
def demands(draw: st.DrawFn) -> tuple[Demand, ...]:
    rows: list[Demand] = []
    for number in range(draw(st.integers(0, 4))):
        on = draw(st.sampled_from((*POOLS, None)))
        rows.append(
            Demand(
                workload=WorkloadRef(draw(st.sampled_from("xy")), "Deployment", f"w{number}"),
                shape=draw(st.sampled_from(SHAPES)),
                bound=draw(st.integers(0, 12)),
                pending=draw(st.integers(0, 6)),
                wanted=draw(st.none() | st.integers(0, 40)),
                max_replicas=draw(st.none() | st.integers(1, 40)),
                history=draw(st.sampled_from(PASTS)),
                known_at=draw(st.none() | ages),
                floor=draw(st.integers(0, 3)),
                parked=draw(st.booleans()),
                pools={} if on is None else {on: draw(st.integers(1, 5))},
                asked=draw(st.integers(0, 20)),
                coming=draw(st.integers(0, 20)),
            )
        )
    return tuple(rows)


@st.composite
def nodes(draw: st.DrawFn, example: PoolNode) -> tuple[PoolNode, ...]:
    made = []
    for number in range(draw(st.integers(0, 3))):
        used = draw(st.sampled_from((None, *SHAPES[:3])))
        made.append(
            replace(
                example,
                name=f"{example.pool}-{number}",
                used=dict(used.requests) if used else {},
                ready=draw(st.booleans()),
            )
        )
    return tuple(made)


@st.composite
def capacities(draw: st.DrawFn) -> Capacity:
    pools: list[Pool] = []
    all_nodes: list[PoolNode] = []
    for name in POOLS:
        size = draw(st.sampled_from((1, 4, 8)))
        example = replace(node("example", gpus=size), pool=name, labels={"pool": name})
        pool_nodes = draw(nodes(example))
        all_nodes.extend(pool_nodes)
        pools.append(
            pool(
                name,
                example=draw(st.sampled_from((example, None))),
                high=draw(st.none() | st.integers(len(pool_nodes), 8)),
                limits=draw(st.sampled_from(({}, {"nvidia.com/gpu": 6000}))),
                boot_seconds=draw(st.none() | st.floats(1, 1000)),
                backoff_until=draw(st.none() | st.floats(NOW - 100, NOW + 100)),
                traps=draw(st.frozensets(st.sampled_from(Trap), max_size=1)),
            )
        )
    held = [
        Headroom(
            draw(st.sampled_from("xy")),
            draw(st.sampled_from(SHAPES)),
            draw(st.integers(0, 12)),
            draw(st.integers(0, 20)),
            draw(ages),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    spent = {name: draw(st.floats(0, 12)) for name in POOLS}
    return Capacity(tuple(all_nodes), {drawn.name: drawn for drawn in pools}, tuple(held), spent)


bounds = st.builds(
    Limits,
    quantile=st.floats(0.01, 0.99),
    share=st.sampled_from((0.0, 0.2)),
    boot_seconds=st.floats(1, 1000),
    hold_seconds=st.floats(0.001, 2000),
    decay_seconds=st.floats(1, 1000),
    stale_seconds=st.floats(0.001, 1000),
    min_pods=st.integers(0, 3),
    max_pods=st.integers(0, 12),
    max_gpus_per_pool=st.integers(0, 16),
    gpu_hours_per_day=st.none() | st.floats(0.001, 12),
    cost_per_day=st.none() | st.floats(0.001, 40),
    gpu_hour_prices=st.sampled_from(({"*": 2.0}, {"a": 0.0, "b": 3.5})),
    lifeline_seconds=st.floats(60, 7200),
    claim_namespaces=st.sampled_from((frozenset(), frozenset({"x"}), frozenset({"x", "y"}))),
)


def place(order: Order) -> tuple[str, str]:
    return order.namespace, key(order.shape)


def numbers(made: Plan) -> dict[tuple[str, str], int]:
    return {place(order): order.replicas for order in made.orders}


def given_out(made: Plan) -> dict[tuple[str, str], int]:
    return {where: replicas for where, replicas in numbers(made).items() if replicas}


@given(demands(), capacities(), bounds)
def test_limits_and_budgets_are_never_exceeded(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    made = plan(rows, at, limits, NOW)
    held: dict[str, int] = defaultdict(int)
    for order in made.orders:
        assert 0 <= order.replicas <= limits.max_pods
        assert order.reasons
        assert {reason.code for reason in order.reasons} <= CODES.keys()
        if order.replicas:
            size = gpus(order.shape)
            assert size, "an order always has a known number of GPUs"
            held[order.pool] += order.replicas * size
    for name, devices in held.items():
        assert devices <= limits.max_gpus_per_pool
        hours = at.gpu_hours_spent[name] + devices * limits.lifeline_seconds / 3600
        if limits.gpu_hours_per_day is not None:
            assert hours <= limits.gpu_hours_per_day + 1e-6
        if limits.cost_per_day is not None:
            price = limits.price(name)
            assert price is not None
            assert hours * price <= limits.cost_per_day + 1e-6


@given(demands(), capacities(), bounds)
def test_no_workload_ever_exceeds_max_replicas(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    spare: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        most = row.max_replicas
        spare[row.workload.namespace, key(row.shape)] += (
            math.inf if most is None else max(0, most - row.present)
        )
    for order in plan(rows, at, limits, NOW).orders:
        assert order.replicas <= spare[place(order)]


@given(demands(), capacities(), bounds)
def test_no_pool_ever_exceeds_its_limits(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    new: dict[str, int] = defaultdict(int)
    for order in plan(rows, at, limits, NOW).orders:
        new[order.pool] += order.nodes or 0
    for name, known in at.pools.items():
        hosts = [host for host in at.nodes if host.pool == name]
        assert known.high is None or not new[name] or len(hosts) + new[name] <= known.high
        if known.example is not None and new[name]:
            for resource, most in known.limits.items():
                size = known.example.allocatable[resource]
                assert sum(host.allocatable[resource] for host in hosts) + new[name] * size <= most


@given(demands(), capacities(), bounds)
def test_a_pool_with_a_trap_gets_nothing_and_one_in_a_backoff_does_not_grow(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    for order in plan(rows, at, limits, NOW).orders:
        known = at.pools.get(order.pool)
        if known is None or known.traps & {Trap.MIG_MIXED, Trap.RENAMED_SHARED}:
            assert order.replicas == 0
        elif known.backoff_until is not None and known.backoff_until > NOW:
            assert order.replicas <= order.was


@given(demands(), capacities(), bounds, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits, chance: Random
) -> None:
    def mixed(seen: Iterable[T]) -> tuple[T, ...]:
        rows = list(seen)
        chance.shuffle(rows)
        return tuple(rows)

    pools = dict(mixed(at.pools.items()))
    other = Capacity(mixed(at.nodes), pools, mixed(at.headroom), at.gpu_hours_spent)
    made = plan(rows, at, limits, NOW)
    assert plan(mixed(rows), other, limits, NOW) == made


@given(demands(), capacities(), bounds)
def test_planning_again_at_the_same_time_changes_nothing(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    made = plan(rows, at, limits, NOW)
    again = plan(rows, applied(made, at), limits, NOW)
    assert given_out(again) == given_out(made)
    assert not any(order.nudge for order in again.orders)
    due = {place(order): order.needed_at for order in made.orders if order.replicas}
    assert due == {place(order): order.needed_at for order in again.orders if order.replicas}


@given(demands(), capacities(), bounds, st.integers(1, 20))
def test_raising_a_demand_never_lowers_its_order(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits, more: int
) -> None:
    before = numbers(plan(rows, at, limits, NOW))
    for number, row in enumerate(rows):
        if row.wanted is None:
            continue
        raised = replace(row, wanted=row.wanted + more)
        after = numbers(plan((*rows[:number], raised, *rows[number + 1 :]), at, limits, NOW))
        where = row.workload.namespace, key(row.shape)
        assert after[where] >= before[where]


@given(demands(), capacities(), bounds)
def test_a_forecast_never_lowers_an_order(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    for row in rows:
        if gpus(row.shape):
            (with_past,) = plan([row], replace(at, headroom=()), limits, NOW).orders
            forgot = replace(row, history=EMPTY)
            (without,) = plan([forgot], replace(at, headroom=()), limits, NOW).orders
            assert with_past.replicas >= without.replicas


@given(demands(), capacities(), bounds)
def test_the_kill_switch_leaves_nothing(
    rows: tuple[Demand, ...], at: Capacity, limits: Limits
) -> None:
    assert not any(
        numbers(plan(rows, at, limits.model_copy(update={"enabled": False}), NOW)).values()
    )


@given(st.integers(0, 40), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_pods_count_once_whether_they_are_bound_or_pending(
    want: int, bound: int, pending: int, was: int
) -> None:
    row = Demand(WorkloadRef("x", "Deployment", "w"), GPU, bound, pending, want, 60)
    held = Headroom("x", GPU, was, bound, NOW)
    at = Capacity((), {"gpu": pool()}, (held,))
    limits = Limits(share=0, max_pods=100, max_gpus_per_pool=100)
    (made,) = plan([row], at, limits, NOW).orders
    bound_row = replace(row, bound=bound + pending, pending=0)
    (same,) = plan([bound_row], at, limits, NOW).orders
    assert made.replicas == same.replicas
    # Existing orders and current demand bound the total: capacity never doubles.
    assert made.replicas + row.real <= max(want, row.real, bound + was)
    (later,) = plan([replace(row, pending=pending + 1)], at, limits, NOW).orders
    assert later.replicas >= made.replicas - 1
    assert later.replicas + row.real + 1 <= max(made.replicas + row.real, row.real + 1)


@given(
    st.integers(0, 500),
    st.lists(st.floats(0.1, 700), min_size=1, max_size=80),
    bounds,
    st.none() | st.floats(0, 5000),
)
def test_headroom_without_known_demand_ends_within_a_bounded_time(
    was: int, gaps: list[float], limits: Limits, known: float | None
) -> None:
    limits = limits.model_copy(update={"max_pods": 1000, "max_gpus_per_pool": 1000})
    row = Demand(
        WorkloadRef("x", "Deployment", "w"),
        GPU,
        2,
        0,
        None,
        None,
        known_at=None if known is None else NOW - known,
    )
    at = Capacity((), {"gpu": pool()}, (Headroom("x", GPU, was, 2, NOW),))
    frozen = 0.0 if known is None else limits.stale_seconds - known
    end = NOW + max(frozen, limits.hold_seconds) + limits.decay_seconds * (was.bit_length() + 1)
    now, most = NOW, was
    for gap in [*gaps, end - NOW]:
        now += gap
        made = plan([row], at, limits, now)
        (order,) = made.orders
        assert order.replicas <= most
        most = order.replicas
        at = applied(made, at)
        if now >= end:
            assert most == 0


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(0.01, 1)), min_size=1, max_size=60),
    st.floats(0.1, 8),
)
def test_a_day_of_rounds_never_exceeds_the_budget(
    rounds: list[tuple[int, float]], budget: float
) -> None:
    limits = Limits(gpu_hours_per_day=budget, lifeline_seconds=600)
    at, now, spent = Capacity((), {"gpu": pool()}), NOW, 0.0
    for want, share in rounds:
        row = Demand(WorkloadRef("x", "Deployment", "w"), GPU, 0, 0, want, 100)
        made = plan([row], replace(at, gpu_hours_spent={"gpu": spent}), limits, now)
        at = applied(made, at)
        # A controller that does not return leaves its headroom until the lifeline expires.
        gap = limits.lifeline_seconds * share
        spent += sum(order.replicas for order in made.orders) * gap / 3600
        now += gap
        assert spent <= budget + 1e-6

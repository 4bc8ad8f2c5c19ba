"""CPU of one round of the node pool controller: learn, forecast and plan for many workloads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapter.nodepool.act.ledgerstore import dump
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.learn.record import record
from adapter.nodepool.model.capacity import Capacity, Pool, PoolNode
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import DAY, DAYS, EMPTY, MINUTE, DemandHistory, DemandPoint
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from load.table import Goal, Run, Table

SIZES: Final = (1, 100, 500)
GOAL: Final = 500
"""Workloads whose round takes less than a second of CPU."""
ROUNDS: Final = 5
_HISTORIES: Final = 50
"""Days that differ; the workloads have them at different minutes."""
_MOST: Final = 12
_BEGIN: Final = 1_700_000_000.0 // MINUTE * MINUTE
_POOL: Final = "gpu"
_SHAPE: Final = Shape((("nvidia.com/gpu", 1000), ("pods", 1000)))
_NODE: Final = PoolNode(
    "new", _POOL, {}, (), {"nvidia.com/gpu": 1000, "pods": 110_000}, {}, True, _BEGIN
)


def rounds(run: Run) -> Table:
    """Measure a round of a new minute, and one of the same minute, at each size."""
    sizes = SIZES[:2] if run.quick else SIZES
    histories = [_history(seed) for seed in range(2 if run.quick else _HISTORIES)]
    costs = {size: _measure(size, histories) for size in sizes}
    new = costs[sizes[-1]][0]
    return Table(
        ("workloads", "new minute ms", "same minute ms", "ConfigMap kB"),
        tuple(
            (str(size), f"{new:.1f}", f"{same:.1f}", f"{stored / 1000:.0f}")
            for size, (new, same, stored) in costs.items()
        ),
        (Goal(f"a round for {GOAL} workloads below 1 s of CPU", f"{new / 1000:.2f} s", new < 1000),)
        if sizes[-1] == GOAL
        else (),
        (
            (
                f"CPU time, the longest of {ROUNDS} rounds: a round learns the newest minute of "
                "each workload, forecasts, and plans. Each workload has a namespace of its own, "
                f"six hours of minutes, and {DAYS} days. In the same minute, rounds use what they "
                "have calculated. Reading the cluster and the metrics is not part of it."
            ),
        ),
    )


def _measure(size: int, histories: Sequence[DemandHistory]) -> tuple[float, float, int]:
    """Return milliseconds of CPU of the longest rounds, and the bytes of the ConfigMap."""
    record.cache_clear()
    ledger = Ledger()
    for index in range(size):
        ledger.histories[_workload(index)] = _raise_history(
            histories[index % len(histories)], index
        )
    new, same = [], []
    for turn in range(1, ROUNDS + 1):
        now = _BEGIN + turn * MINUTE
        new.append(_round(ledger, size, turn, now))
        same.append(_round(ledger, size, turn, now + 15))
    return 1000 * max(new), 1000 * max(same), sum(map(len, dump(ledger).values()))


def _round(ledger: Ledger, size: int, turn: int, now: float) -> float:
    wanted = [2 + (7 * index + 3 * turn) % _MOST for index in range(size)]
    nodes = tuple(replace(_NODE, name=f"n{index}") for index in range(size))
    capacity = Capacity(nodes, {_POOL: Pool(_POOL, example=_NODE)}, ())
    begin = time.process_time()
    demand = [_demand(ledger, index, pods, now) for index, pods in enumerate(wanted)]
    ledger.learn(demand, now)
    demand = [_demand(ledger, index, pods, now) for index, pods in enumerate(wanted)]
    plan(demand, capacity, Limits(max_gpus_per_pool=10 * size), now)
    return time.process_time() - begin


def _demand(ledger: Ledger, index: int, wanted: int, now: float) -> Demand:
    ref = _workload(index)
    past = ledger.histories[ref]
    return Demand(ref, _SHAPE, wanted, 0, wanted, 4 * _MOST, history=past, known_at=now)


def _workload(index: int) -> WorkloadRef:
    return WorkloadRef(f"team-{index}", "Deployment", "inference")


def _history(seed: int) -> DemandHistory:
    """Return days that rise and fall, with a step every few minutes."""
    history = EMPTY
    for back in range((DAYS + 1) * DAY // MINUTE, 0, -1):
        hour = back // 60 % 24
        pods = 2 + (abs(hour - 12) + back * (seed + 3) // 7 % 4) % _MOST
        history = learn(history, DemandPoint(_BEGIN - back * MINUTE, pods))
    return history


def _raise_history(history: DemandHistory, pods: int) -> DemandHistory:
    """Return a history with more pods, which shares no calculation with the given one."""
    recent = tuple(point._replace(pods=point.pods + pods) for point in history.recent)
    return replace(history, recent=recent)

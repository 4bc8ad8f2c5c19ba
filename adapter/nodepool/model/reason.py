"""Why the plan is as it is: a code for metrics, a text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """One line of why, for people; ``code`` is stable and labels the metric."""

    code: str
    """One of :data:`CODES`."""
    text: str


def count_pods(count: int) -> str:
    """A number of pods in words: ``1 pod``, ``2 pods``."""
    return f"{count} pod" if count == 1 else f"{count} pods"


def count_gpus(count: float) -> str:
    """A number of GPUs in words."""
    return f"{count:.0f} GPU" if count == 1 else f"{count:.0f} GPUs"


CODES: Final[Mapping[str, str]] = {
    "need": "more pods are wanted now than there are",
    "growth": "demand has grown by as much within a boot time before",
    "trend": "demand is growing",
    "time_of_day": "demand was as high at this time of day before",
    "floor": "the workload's own least headroom",
    "min_pods": "the least headroom of every shape",
    "enough": "nothing is asked for",
    "coming": "the HPA creates the pods that are missing by itself",
    "unknown": "no metric could be read, and no headroom was ordered before",
    "consumed": "pods have come since the last order and count as its use",
    "held": "it was needed a while ago, and stays for the hold",
    "decayed": "the hold is over: it halves",
    "frozen": "demand is unknown for a moment: it stays as it was",
    "stale": "demand is unknown for long: it halves",
    "gone": "no workload has this shape any more",
    "max_replicas": "the workload may not have more pods",
    "stopped": "the kill switch is on",
    "claims": "the size of a DRA claim is unknown",
    "claim_namespace": "headroom with ResourceClaims is not allowed in its namespace",
    "no_gpu": "its pods hold no GPU",
    "no_pool": "no pool takes the shape",
    "trap": "the pool's nodes confuse the autoscaler",
    "backoff": "the autoscaler has backed off from the pool",
    "max_pods": "the cap of a shape",
    "max_gpus": "the cap of the pool",
    "budget": "the pool's budget of the day",
    "no_price": "a budget in money, but the pool has no price",
    "pool_full": "the pool cannot hold more",
}
"""Every code that a plan gives, and what it means."""

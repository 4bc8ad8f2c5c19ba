"""The reasons of a plan: a code for metrics, a text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter import figures


class Reason(NamedTuple):
    """One reason of an order or a note. ``code`` is stable and labels the metric."""

    code: str
    """One of :data:`CODES`."""
    text: str


def count_pods(count: int) -> str:
    """Return a number of pods as text: ``1 pod``, ``2 pods``."""
    return figures.count(count, "pod")


def count_gpus(count: float) -> str:
    """Return a number of GPUs as text."""
    return f"{count:.0f} GPU" if count == 1 else f"{count:.0f} GPUs"


CODES: Final[Mapping[str, str]] = {
    "need": "the workload wants more pods than exist",
    "forecast": "the workload may want more pods within a boot time",
    "unsure": "as `forecast`, but no probability is stated: too few checks, or too few that held",
    "share": "its forecast is missing, not checked, or would have cost more: a share of the pods",
    "floor": "the minimum headroom of the workload",
    "min_pods": "the minimum headroom of every shape",
    "enough": "no headroom is needed",
    "coming": "the HPA is about to create the missing pods",
    "unknown": "no metric could be read, and no headroom was ordered before",
    "consumed": "pods were created since the last order and use its headroom",
    "held": "the headroom was needed recently and is kept for the hold time",
    "decayed": "the hold time is over: the headroom is halved",
    "free": "free nodes exist, and the load may need them",
    "prompt": "pods wait for a node that has not been ordered, and headroom makes it urgent",
    "frozen": "demand has been unknown for a short time: the headroom is kept",
    "stale": "demand has been unknown for a long time: the headroom is halved",
    "ended": "no Job of the queue is left: headroom is deleted after one lead time, or the hold",
    "gone": "no workload has this shape any more",
    "max_replicas": "the workload may not have more pods",
    "stopped": "the kill switch is on",
    "claims": "the size of a DRA claim is unknown",
    "claim_namespace": "headroom with ResourceClaims is not allowed in the namespace",
    "no_gpu": "the pods hold no GPU",
    "no_pool": "no pool can run the shape",
    "trap": "the pool's nodes confuse the autoscaler",
    "backoff": "the autoscaler has backed off from the pool",
    "max_pods": "the limit of the shape",
    "max_gpus": "the limit of the pool",
    "budget": "the pool's budget of the day",
    "no_price": "a budget in money, but the pool has no price",
    "pool_full": "the pool has no room for more",
}
"""Every reason code of a plan, with its meaning."""

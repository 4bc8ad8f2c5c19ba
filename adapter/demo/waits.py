"""How long pods waited for a GPU. Pure.

Times are seconds of the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.demo.fleet import DemoPod


def wait(pod: DemoPod, now: float) -> float:
    """Return the seconds without a device: until it got one, was deleted, or until now."""
    ends = [end for end in (pod.bound, pod.deleted) if end is not None]
    return min(ends, default=now) - pod.created


def waited(pods: Sequence[DemoPod], now: float) -> float:
    """Return the pod-seconds without a device over all pods."""
    return sum(wait(pod, now) for pod in pods)


def longest(pods: Sequence[DemoPod], now: float) -> float:
    """Return the longest wait of one pod in seconds; 0.0 without pods."""
    return max((wait(pod, now) for pod in pods), default=0.0)


def running_after(pods: Sequence[DemoPod], count: int, start: float, end: float) -> float | None:
    """Seconds from ``start`` until ``count`` pods hold a device; None when not before ``end``."""
    moments = sorted(pod.bound for pod in pods if pod.bound is not None and pod.bound > start)
    for at in [start, *moments]:
        if at < end and sum(_runs(pod, at) for pod in pods) >= count:
            return at - start
    return None


def _runs(pod: DemoPod, at: float) -> bool:
    return pod.bound is not None and pod.bound <= at and (pod.deleted is None or at < pod.deleted)

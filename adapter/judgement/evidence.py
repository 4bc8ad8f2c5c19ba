"""What is known of an HPA when it is judged: of a list its status, of an explanation more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.causes.cause import Cause
from adapter.cluster.hpas import ShownHpa
from adapter.cluster.pod import Pod
from adapter.judgement.readings import MetricReading


class TargetPods(NamedTuple):
    """The pods of a scale target."""

    existing: int
    """Neither finished nor being deleted."""
    ready: int
    unscheduled: int = 0
    """Without a node."""
    waiting_since: float | None = None
    """Epoch seconds since when the pod that waits longest is not ready; None if all are ready."""
    without_value: int = 0
    """Ready pods without a value of a metric that the HPA reads of them."""
    trouble: str = ""
    """Why a container of a pod does not run: ``CrashLoopBackOff``; empty if none is known to fail.
    """

    @property
    def unready(self) -> int:
        """Pods that exist, and are not ready."""
        return self.existing - self.ready


NO_PODS: Final = TargetPods(0, 0)


def pods_of(pods: Iterable[Pod], without_value: int = 0) -> TargetPods:
    """Return what is known of pods.

    Args:
        pods: those of one scale target.
        without_value: ready pods without a value that the HPA reads.
    """
    existing = ready = homeless = 0
    waiting: float | None = None
    trouble = ""
    for pod in pods:
        if pod.deleting or pod.finished:
            continue
        existing += 1
        homeless += not pod.node
        if pod.ready:
            ready += 1
            continue
        trouble = trouble or pod.trouble
        since = pod.unready_since or pod.born
        if since and (waiting is None or since < waiting):
            waiting = since
    return TargetPods(existing, ready, homeless, waiting, without_value, trouble)


@dataclass(frozen=True, slots=True)
class HpaEvidence:
    """One HPA and what was read around it."""

    hpa: ShownHpa
    now: float
    metrics: Sequence[MetricReading] | None = None
    """Those of the HPA, if they have been read already."""
    pods: TargetPods | None = None
    """None if nobody looked."""
    causes: Sequence[Cause] = ()
    """Why wanted pods do not exist or do not serve, the most important first."""
    flaws: Sequence[str] = ()
    """What else spoils the HPA's work, such as a target in another unit, one line each."""
    frozen_since: float | None = None
    """Epoch seconds since when the controller's status differs from what it describes; None if it
    does not, or nobody looked."""

"""What is known of an HPA when it is judged: of a list its status, of an explanation more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.answers.causes.cause import Cause
from adapter.answers.judgement.readings import MetricReading
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.manifest import REJECTED_FOR
from adapter.pipeline.cluster.pod import Pod


class TargetPods(NamedTuple):
    """The pods of a scale target that are neither finished nor being deleted."""

    ready: int
    unready: int = 0
    unscheduled: int = 0
    """Without a node."""
    waiting_since: float | None = None
    """Epoch seconds since when the pod that waits longest is not ready; None if all are ready."""
    without_value: int = 0
    """Ready pods without a value of a metric that the HPA reads of them."""
    trouble: str = ""
    """Why a container of a pod does not run, or why the kubelet rejects pods: ``CrashLoopBackOff``,
    ``UnexpectedAdmissionError``; empty if none is known to fail."""
    exist: int | None = None
    """All pods; None while some may be unknown, or one is being deleted."""
    foreign: str = ""
    """Another workload whose pods have the same labels, so that a selector of the target matches
    them too: ``deployment.embed``."""
    labels: Mapping[str, str] | None = None
    """Those that all of the pods have; None if they are not known."""
    above: str = ""
    """What owns the scale target itself and sets its size: ``deployment.llm``."""
    reasons: str = ""
    """Why pods have no value, by codes: ``exporter_down,pod_not_ready``."""


NO_PODS: Final = TargetPods(0)


def pods_of(
    pods: Iterable[Pod],
    without_value: int = 0,
    *,
    complete: bool,
    rejected: Iterable[Pod] = (),
    now: float = 0.0,
) -> TargetPods:
    """Return what is known of pods.

    Args:
        pods: those of one scale target.
        without_value: ready pods without a value that the HPA reads.
        complete: there are no others.
        rejected: pods of the target that the kubelet did not admit or keep, however long ago.
        now: epoch seconds.
    """
    ready = unready = homeless = 0
    waiting: float | None = None
    trouble = ""
    for pod in pods:
        if pod.deleting or pod.finished:
            complete = complete and not pod.deleting
            continue
        homeless += not pod.node
        if pod.ready:
            ready += 1
            continue
        unready += 1
        trouble = trouble or pod.trouble
        since = pod.unready_since or pod.born
        if since and (waiting is None or since < waiting):
            waiting = since
    recent = (pod.trouble for pod in rejected if now - pod.born < REJECTED_FOR)
    trouble = trouble or next(recent, "")
    exist = ready + unready if complete else None
    return TargetPods(ready, unready, homeless, waiting, without_value, trouble, exist)


@dataclass(frozen=True, slots=True)
class HpaEvidence:
    """One HPA and what was read around it."""

    hpa: ShownHpa
    now: float
    metrics: Sequence[MetricReading] | None = None
    """Those of the HPA, if they have been read already."""
    pods: TargetPods | None = None
    """None if nobody looked, or none was found."""
    without_pods: bool = False
    """A complete list of the pods that can have a value has none of the target."""
    causes: Sequence[Cause] = ()
    """Why wanted pods do not exist or do not serve, the most important first."""
    triggers_read: bool = False
    """The triggers of its ScaledObject were looked at; ``causes`` says if none can wake it."""
    flaws: Sequence[str] = ()
    """What else spoils the HPA's work, such as a target in another unit, one line each."""
    frozen_since: float | None = None
    """Epoch seconds since when the controller's status differs from what it describes; None if it
    does not, or nobody looked."""

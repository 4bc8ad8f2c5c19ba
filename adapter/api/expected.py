"""Which of an object's pods ought to have a value, so that no sum is silently short.

For what is about devices: the pods that hold one. For what a server says of itself nothing in
a pod's spec tells it; those whose page was seen do, those that ask for theirs to be read, and
the siblings of such pods, since pods of one controller run one template.

A pod that is being deleted is nobody's replica any more (kube-controller-manager counts it
neither in ``status.replicas`` nor in a Pods metric), however long it drains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from adapter.catalog.metric import Metric, Scope
from adapter.cluster.optin import opted_in
from adapter.cluster.pod import Pod, PodRef
from adapter.cluster.workload import workloads
from apiservice.runtime.steps import Steps, parts

_STEP: Final = 64
"""Pods that are looked at in one step."""


class ServedPods(Protocol):
    """What has been seen of pods."""

    def serves(self, ref: PodRef) -> bool:
        """A page of the pod's own, an inference server's, has been seen since the pod lives."""


def expected_pods(pods: Sequence[Pod], metric: Metric, seen: ServedPods) -> Steps[Sequence[Pod]]:
    """The pods that ought to have a value of ``metric``, working now or not."""
    if metric.scope is Scope.DEVICE:
        holding: list[Pod] = []
        for some in parts(pods, _STEP):
            holding += [pod for pod in some if pod.holds_gpu and not pod.deleting]
            yield
        return holding
    known: set[PodRef] = set()
    families: set[object] = set()
    for some in parts(pods, _STEP):
        serving = [pod for pod in some if seen.serves(pod.ref) or opted_in(pod)]
        known.update(pod.ref for pod in serving)
        families.update(map(_family, serving))
        yield
    staying: list[Pod] = []
    for some in parts(pods, _STEP):
        staying += [
            pod
            for pod in some
            if not pod.deleting and (pod.ref in known or _family(pod) in families)
        ]
        yield
    return staying


def _family(pod: Pod) -> object:
    """The topmost workload that the pod is known to belong to; the pod itself if there is none."""
    above = workloads(pod)
    return (pod.ref.namespace, above[-1]) if above else pod.ref

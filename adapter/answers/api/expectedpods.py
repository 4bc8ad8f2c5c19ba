"""Determine which of an object's pods should have a value, so that no sum lacks a pod.

For a device metric, these are the pods that hold a device: by their spec, because a sample names
them, or because a sample names another pod of their controller. For a server metric, the spec of a
pod does not show it. These are the pods whose server page was seen, the pods that opt in, and other
pods of the same controller, because pods of one controller have one template.

A pod that is being deleted no longer counts as a replica, regardless of how long it drains:
kube-controller-manager counts it neither in ``status.replicas`` nor in a Pods metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from adapter.pipeline.catalog.metric import Metric, Scope
from adapter.pipeline.cluster.optin import has_opted_in
from adapter.pipeline.cluster.placeholder import working_pods
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.cluster.podgroups import family_of
from apiservice.runtime.steps import Steps, parts

_STEP: Final = 64
"""Pods that one step processes."""


class ServedPods(Protocol):
    """Knows which pods have had a server page, and which hold a GPU."""

    def holds(self, pod: Pod) -> bool:
        """Return whether a pod holds a GPU by its spec, or because a sample names it."""

    def serves(self, ref: PodRef) -> bool:
        """Return whether a server page of the pod has been seen in the pod's lifetime."""


def expected_pods(pods: Sequence[Pod], metric: Metric, served: ServedPods) -> Steps[Sequence[Pod]]:
    """Return the pods that should have a value of ``metric``, running or not.

    Placeholder pods are left out unless there are no others: they have no work.
    """
    pods = working_pods(pods)
    if metric.scope is Scope.DEVICE:
        return (yield from _gpu_pods(pods, served))
    refs: set[PodRef] = set()
    families: set[object] = set()
    for some in parts(pods, _STEP):
        serving = [pod for pod in some if served.serves(pod.ref) or has_opted_in(pod)]
        refs.update(pod.ref for pod in serving)
        families.update(map(family_of, serving))
        yield
    staying: list[Pod] = []
    for some in parts(pods, _STEP):
        staying += [
            pod
            for pod in some
            if not pod.deleting and (pod.ref in refs or family_of(pod) in families)
        ]
        yield
    return staying


def _gpu_pods(pods: Sequence[Pod], served: ServedPods) -> Steps[Sequence[Pod]]:
    holding: list[Pod] = []
    unsure: list[Pod] = []
    families: set[object] = set()
    for some in parts(pods, _STEP):
        for pod in some:
            if pod.holds_gpu:
                holding.append(pod)
            elif pod.may_hold_gpu:
                unsure.append(pod)
                if served.holds(pod):
                    families.add(family_of(pod))
        yield
    holding += [pod for pod in unsure if family_of(pod) in families]
    return [pod for pod in holding if not pod.deleting]

"""Ignore the labels of a sample that a tenant may have written.

dcgm-exporter copies the labels of pods to its samples (``--kubernetes-enable-pod-labels``), beside
the labels with which it names the device and the pod. So the owner of a pod can add a label
that looks like the exporter's: another spelling of the pod, or an instance of a device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from adapter.pipeline.cluster.pod import Find, Pod, PodRef
from adapter.pipeline.devices.assignment import Assignment
from adapter.pipeline.devices.device import IDENTIFYING, UUIDS
from adapter.pipeline.devices.location import KnownCluster
from adapter.pipeline.devices.state import Belief, Identity
from adapter.pipeline.exposition.cutlabels import drop_labels
from adapter.pipeline.exposition.podlabels import possible_pods

SEVERAL_PODS: Final = "several_pods"
"""The sample could name several pods that hold a GPU."""
POD_LABEL: Final = "pod_label"
"""A label of the device or its cluster repeats the pod's own label and is ignored."""

_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9_]")

Identify = Callable[[Mapping[str, str]], Identity]
"""Returns what a label set names."""


def form_belief(
    known: Identity, find: Find, identify: Identify, before: Belief | None = None
) -> Belief:
    """Return what a sample's labels name without a tenant's labels, and what was ignored.

    Args:
        known: what all of the labels name.
        identify: identifies a changed copy of the sample's labels.
        before: the result for the exporter's previous page.
    """
    if before is not None and before.known is known and _names_same_pods(before, find):
        return before
    if not known.assignable or known.serves:
        return Belief(known, (), known, (), known.key, lasts=True)
    named_pods = tuple(map(find, known.named))
    pods = [pod for pod in named_pods if pod is not None]
    written = _tenant_labels(pods, known.labels)
    left, aside = _identify_without(written, known, identify)
    identity, reasons = _drop_ambiguous_pod(_prefer_gpu_holder(left, find), pods, find)
    return Belief(known, named_pods, identity, aside + reasons, identity.key, lasts=not written)


def keeps_address(belief: Belief, cluster: KnownCluster) -> bool:
    """Return whether the pod that was found by its address still has it."""
    known = belief.known
    if not known.address:
        return True
    ref = None if known.assignment is None else known.assignment.pod
    return cluster.pod_at(known.address) == ref


def _names_same_pods(belief: Belief, find: Find) -> bool:
    known = belief.known
    if not known.assignable or known.serves:
        return True
    return belief.lasts and belief.pods == tuple(map(find, known.named))


def _prefer_gpu_holder(identity: Identity, find: Find) -> Identity:
    """Return the identity with another pod that the labels may name, if only that one has a GPU."""
    if not identity.otherwise or (
        identity.assignment is not None and _holds_gpu(identity.assignment, find)
    ):
        return identity
    other = next((other for other in identity.otherwise if _holds_gpu(other, find)), None)
    return identity if other is None else identity._replace(assignment=other)


def _holds_gpu(assignment: Assignment, find: Find) -> bool:
    pod = find(assignment.pod)
    return pod is not None and pod.holds_gpu


def _tenant_labels(pods: Iterable[Pod], labels: Mapping[str, str]) -> Collection[str]:
    """Return the labels that repeat a pod's own labels."""
    written = {name for pod in pods for name in _copied_labels(pod, labels)}
    if written:
        uuids = {name for name in UUIDS if name in labels}
        if len(uuids) == 1:
            # dcgm-exporter always writes one itself, so the pod label can only repeat it.
            written -= uuids
    return written


def _identify_without(
    written: Collection[str], identity: Identity, identify: Identify
) -> tuple[Identity, tuple[str, ...]]:
    """Return what the labels name without those that a tenant wrote."""
    if not written:
        return identity, ()
    left = identify(drop_labels(identity.labels, written))
    # Exporters write an identity of the device themselves, so the label was the exporter's.
    if left.device is None:
        return identity, ()
    return left._replace(labels=identity.labels), (POD_LABEL,)


def _drop_ambiguous_pod(
    identity: Identity, pods: Iterable[Pod], find: Find
) -> tuple[Identity, tuple[str, ...]]:
    """Remove the assignment if the labels could name several pods that hold a GPU."""
    holders = {pod.ref for pod in pods if pod.may_hold_gpu and not pod.finished}
    if identity.assignment is None or not _other_pods(
        holders, identity.assignment.pod, identity.labels, find
    ):
        return identity, ()
    nobody = identity._replace(assignment=None, target=None, replica=False)
    if identity.replica:  # the value is one pod's part, and meaningless without the pod
        return nobody._replace(device=None, flaw=SEVERAL_PODS), ()
    return nobody, (SEVERAL_PODS,)


def _other_pods(
    holders: Collection[PodRef], assigned: PodRef, labels: Mapping[str, str], find: Find
) -> Collection[PodRef]:
    """Return the pods besides the assigned one that the sample may be about."""
    others = set(holders) - {assigned}
    target = PodRef(labels.get("namespace", ""), labels.get("pod", ""))
    if others and find(target) is not None:
        # These two labels name one pod, often the exporter's. So the sample does not name a pod in
        # the exporter's namespace that has the name of the assigned pod.
        pods = possible_pods(labels, direct=False, mixed=False)
        others &= {PodRef(namespace, name) for namespace, name in pods}
    return others


def _copied_labels(pod: Pod, labels: Mapping[str, str]) -> Iterable[str]:
    for key, value in pod.labels.items():
        name = _UNNAMEABLE.sub("_", key)
        if name in IDENTIFYING and labels.get(name) == value:
            yield name

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
from adapter.pipeline.exposition.cutlabels import without
from adapter.pipeline.exposition.podlabels import possible_pods

SEVERAL_PODS: Final = "several_pods"
"""The sample could name several pods that hold a GPU."""
POD_LABEL: Final = "pod_label"
"""A label of the device or its cluster repeats the pod's own label and is ignored."""

_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9_]")

Identify = Callable[[Mapping[str, str]], Identity]
"""Returns what a label set names."""


def believed(known: Identity, find: Find, again: Identify, before: Belief | None = None) -> Belief:
    """Return what a sample's labels name without a tenant's labels, and what was ignored.

    Args:
        again: identifies a changed copy of the sample's labels.
        before: the result for the exporter's previous page.
    """
    if before is not None and before.known is known and _same_pods(before, find):
        return before
    if not known.assignable or known.serves:
        return Belief(known, (), known, (), known.key, lasts=True)
    found = tuple(map(find, known.named))
    pods = [pod for pod in found if pod is not None]
    written = _written(pods, known.labels)
    left, aside = _without(written, known, again)
    identity, reasons = _of_one(_existing(left, find), pods, find)
    return Belief(known, found, identity, aside + reasons, identity.key, lasts=not written)


def placed(belief: Belief, cluster: KnownCluster) -> bool:
    """Return whether the pod that was found by its address still has it."""
    known = belief.known
    if not known.address:
        return True
    found = None if known.assignment is None else known.assignment.pod
    return cluster.pod_at(known.address) == found


def _same_pods(belief: Belief, find: Find) -> bool:
    known = belief.known
    if not known.assignable or known.serves:
        return True
    return belief.lasts and belief.pods == tuple(map(find, known.named))


def _existing(known: Identity, find: Find) -> Identity:
    """Return the identity with another pod that the labels may name, if only that one has a GPU."""
    if not known.otherwise or (known.assignment is not None and _holds(known.assignment, find)):
        return known
    other = next((other for other in known.otherwise if _holds(other, find)), None)
    return known if other is None else known._replace(assignment=other)


def _holds(assignment: Assignment, find: Find) -> bool:
    pod = find(assignment.pod)
    return pod is not None and pod.holds_gpu


def _written(pods: Iterable[Pod], labels: Mapping[str, str]) -> Collection[str]:
    """Return the labels that repeat a pod's own labels."""
    written = {name for pod in pods for name in _copied(pod, labels)}
    if written:
        uuids = {name for name in UUIDS if name in labels}
        if len(uuids) == 1:
            # dcgm-exporter always writes one itself, so the pod label can only repeat it.
            written -= uuids
    return written


def _without(
    written: Collection[str], known: Identity, again: Identify
) -> tuple[Identity, tuple[str, ...]]:
    """Return what the labels name without those that a tenant wrote."""
    if not written:
        return known, ()
    left = again(without(known.labels, written))
    # Exporters write an identity of the device themselves, so the label was the exporter's.
    if left.device is None:
        return known, ()
    return left._replace(labels=known.labels), (POD_LABEL,)


def _of_one(known: Identity, pods: Iterable[Pod], find: Find) -> tuple[Identity, tuple[str, ...]]:
    """Remove the assignment if the labels could name several pods that hold a GPU."""
    holders = {pod.ref for pod in pods if pod.may_hold_gpu and not pod.finished}
    if known.assignment is None or not _others(holders, known.assignment.pod, known.labels, find):
        return known, ()
    nobody = known._replace(assignment=None, target=None, replica=False)
    if known.replica:  # the value is one pod's part, and meaningless without the pod
        return nobody._replace(device=None, flaw=SEVERAL_PODS), ()
    return nobody, (SEVERAL_PODS,)


def _others(
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


def _copied(pod: Pod, labels: Mapping[str, str]) -> Iterable[str]:
    for key, value in pod.labels.items():
        name = _UNNAMEABLE.sub("_", key)
        if name in IDENTIFYING and labels.get(name) == value:
            yield name

"""Which pods have a device now, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.pipeline.attribution.sharing import Share
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.store.snapshot import Snapshot


class AssignmentEvidence(StrEnum):
    """How it is known that a pod has a device; the surest first."""

    UID = "sample_uid"
    """A sample names the pod with its UID."""
    NAME = "sample_name"
    """A sample names the pod by namespace and name."""
    EARLIER = "earlier_sample"
    """The device is shared: an earlier sample named the pod, the newest names another one."""
    ONLY = "only_shared_device"
    """The device is shared, and the only one of its kind on the node of the pod."""
    SERVER = "server_page"
    """The page of the pod's own inference server describes the GPUs that it sees."""


EVIDENCES: Final = (
    "How it is known that the pod has the device: "
    "sample_uid (a sample names the pod with its UID), "
    "sample_name (a sample names the pod), "
    "earlier_sample (the device is shared, and an earlier sample named the pod), "
    "only_shared_device (the device is the only shared one of its kind on the pod's node) or "
    "server_page (the pod's own server describes the GPU)."
)


class HoldingPod(NamedTuple):
    """A pod that has a device."""

    pod: Pod
    container: str
    """Empty if the samples do not name one, or name several."""
    evidence: AssignmentEvidence


def holders(
    all_series: Sequence[DeviceSeries], share: Share | None, snapshot: Snapshot
) -> Sequence[HoldingPod]:
    """Return the pods that have a device now, by name."""
    if share is None and len(all_series) == 1:
        pod = _pod(all_series[0], snapshot)
        return () if pod is None else (_holding(pod, all_series[0]),)
    found: dict[PodRef, HoldingPod] = {}
    newest: dict[PodRef, float] = {}
    for series in all_series:
        pod = _pod(series, snapshot)
        if pod is None:
            continue
        found[pod.ref] = _both(found.get(pod.ref), _holding(pod, series))
        newest[pod.ref] = max(series.received, newest.get(pod.ref, 0.0))
    if share is None:
        return _uncontested(found, newest)
    earlier = {held.pod for held in snapshot.held(all_series[0].device.id)}
    for pod in share.pods:
        if pod.ref not in found:
            how = AssignmentEvidence.EARLIER if pod.ref in earlier else AssignmentEvidence.ONLY
            found[pod.ref] = HoldingPod(pod, "", how)
    return [found[ref] for ref in sorted(found)]


def _pod(series: DeviceSeries, snapshot: Snapshot) -> Pod | None:
    """Return the pod that a device series names, if it may have the device now."""
    pod = None if series.superseded else snapshot.cluster.believed(series)
    return pod if pod is not None and series.received > pod.born else None


def _holding(pod: Pod, series: DeviceSeries) -> HoldingPod:
    container = "" if series.assignment is None else series.assignment.container
    return HoldingPod(pod, container, evidence_of(series))


def _uncontested(
    found: Mapping[PodRef, HoldingPod], newest: Mapping[PodRef, float]
) -> Sequence[HoldingPod]:
    """Return the pods of a device that is not shared: of two exporters, the newer one counts."""
    last = max(newest.values(), default=0.0)
    return [found[ref] for ref in sorted(found) if newest[ref] == last]


def evidence_of(series: DeviceSeries) -> AssignmentEvidence:
    """Return how a device series shows that the pod has the device."""
    if series.sees:
        return AssignmentEvidence.SERVER
    named = series.assignment
    return AssignmentEvidence.UID if named is not None and named.uid else AssignmentEvidence.NAME


def _both(one: HoldingPod | None, other: HoldingPod) -> HoldingPod:
    """Return one holder for several containers of a pod."""
    if one is None:
        return other
    container = one.container if one.container == other.container else ""
    order = list(AssignmentEvidence)
    surest = min(one.evidence, other.evidence, key=order.index)
    return HoldingPod(one.pod, container, surest)

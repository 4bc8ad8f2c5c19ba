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
        return () if pod is None else (_holding_pod(pod, all_series[0]),)
    by_ref: dict[PodRef, HoldingPod] = {}
    newest: dict[PodRef, float] = {}
    for series in all_series:
        pod = _pod(series, snapshot)
        if pod is None:
            continue
        by_ref[pod.ref] = _merge_holders(by_ref.get(pod.ref), _holding_pod(pod, series))
        newest[pod.ref] = max(series.received, newest.get(pod.ref, 0.0))
    if share is None:
        return _newest_holders(by_ref, newest)
    earlier = {holding.pod for holding in snapshot.holdings_of(all_series[0].device.id)}
    for pod in share.pods:
        if pod.ref not in by_ref:
            how = AssignmentEvidence.EARLIER if pod.ref in earlier else AssignmentEvidence.ONLY
            by_ref[pod.ref] = HoldingPod(pod, "", how)
    return [by_ref[ref] for ref in sorted(by_ref)]


def _pod(series: DeviceSeries, snapshot: Snapshot) -> Pod | None:
    """Return the pod that a device series names, if it may have the device now."""
    pod = None if series.superseded else snapshot.cluster.believed_pod(series)
    return pod if pod is not None and series.received > pod.born else None


def _holding_pod(pod: Pod, series: DeviceSeries) -> HoldingPod:
    container = "" if series.assignment is None else series.assignment.container
    return HoldingPod(pod, container, evidence_of(series))


def _newest_holders(
    by_ref: Mapping[PodRef, HoldingPod], newest: Mapping[PodRef, float]
) -> Sequence[HoldingPod]:
    """Return the pods of a device that is not shared: of two exporters, the newer one counts."""
    last = max(newest.values(), default=0.0)
    return [by_ref[ref] for ref in sorted(by_ref) if newest[ref] == last]


def evidence_of(series: DeviceSeries) -> AssignmentEvidence:
    """Return how a device series shows that the pod has the device."""
    if series.sees:
        return AssignmentEvidence.SERVER
    holder = series.assignment
    return AssignmentEvidence.UID if holder is not None and holder.uid else AssignmentEvidence.NAME


def _merge_holders(first: HoldingPod | None, second: HoldingPod) -> HoldingPod:
    """Return one holder for several containers of a pod."""
    if first is None:
        return second
    container = first.container if first.container == second.container else ""
    order = list(AssignmentEvidence)
    surest = min(first.evidence, second.evidence, key=order.index)
    return HoldingPod(first.pod, container, surest)

"""Split the value of a shared device: compute the part that one pod gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from adapter.pipeline.attribution.holdings import Holders
from adapter.pipeline.attribution.policy import SharingPolicy
from adapter.pipeline.attribution.reading import Attribution
from adapter.pipeline.attribution.sharing import NodeSharing, Share, resource
from adapter.pipeline.catalog.metric import DeviceValue, Metric
from adapter.pipeline.cluster.gpuresources import MEMORY_PARTS, RENAMED_SUFFIX, core_part
from adapter.pipeline.cluster.nodelabels import NodeFacts
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.accounting import ACCOUNTED
from adapter.pipeline.devices.series import DeviceSeries

NOT_EXACT: Final = "not_exact"
"""The policy is ``exact`` and the value is not accounted per process."""
NO_WEIGHT: Final = "no_memory_weight"
"""The policy is ``memory`` and the memory of at least one sharing pod is not known."""

_MEMORY: Final = "memory"


class Accounting(NamedTuple):
    """What the catalogue states about values that are a pod's own."""

    exact: frozenset[str] = frozenset()
    """Fields whose samples measure a container's own part of a device."""
    memory: Metric | None = None
    """The metric of used memory."""


class NodeContext(NamedTuple):
    """What is known about the node of a pod."""

    facts: NodeFacts = NodeFacts()
    sharing: NodeSharing = NodeSharing()
    policy: SharingPolicy = SharingPolicy.COPY
    accounting: Accounting = Accounting()
    held: Holders = MappingProxyType({})
    """Device -> the pods that samples named for it."""
    reported: frozenset[str] = frozenset()
    """Fields that exporters report which are known to be on the pod's node."""
    normalized: bool = False
    """See :attr:`adapter.pipeline.attribution.policy.SharingOptions.normalized`."""


NO_CONTEXT: Final = NodeContext()
"""A context in which nothing is known."""


class Allocation(NamedTuple):
    """The part of a device's value that a pod gets."""

    value: float
    how: Attribution


def shared_series(
    all_series: Sequence[DeviceSeries], shares: Mapping[str, Share]
) -> Iterator[DeviceSeries]:
    """Yield the series of shared devices that name only one of the sharing pods at a time."""
    covered = {series.device.id for series in all_series if series.shared and not series.own}
    claims = {series.device.id: series.assignment for series in all_series}
    for device, share in shares.items():
        if device not in covered and share.whole is not None:
            assignment = claims.get(device)
            yield replace(share.whole, assignment=assignment, shared=True, superseded=False)


def is_exact(series: DeviceSeries, measured: DeviceValue, accounting: Accounting) -> bool:
    """Return whether the value measures the pod's own processes, even on a shared device."""
    if "+" not in measured.field:
        return accounts(series, measured.field, accounting)
    fields = measured.field.split("+")
    if accounting.exact.issuperset(fields):
        return True
    return series.per_process and ACCOUNTED.issuperset(fields)


def accounts(series: DeviceSeries, field: str, accounting: Accounting) -> bool:
    """Return whether a series' samples of a field measure the pod's own processes."""
    return field in accounting.exact or (series.per_process and field in ACCOUNTED)


def allocation(
    metric: Metric,
    measured: DeviceValue,
    series: DeviceSeries,
    share: Share | None,
    pod: Pod,
    context: NodeContext,
) -> Allocation | str:
    """Return the pod's part of a device's value, or the reason why it has none.

    Args:
        metric: the requested metric.
        measured: the device's value.
        series: the device series of the value.
        share: the pods that share the device, including this one; None if none are known.
        pod: the pod.
        context: of its node.
    """
    if is_exact(series, measured, context.accounting):
        return Allocation(measured.value, Attribution.EXACT)
    if context.policy is SharingPolicy.EXACT:
        return NOT_EXACT
    if context.policy is SharingPolicy.COPY or not metric.divisible:
        return Allocation(measured.value, Attribution.COPIED)
    pods = share.pods if share is not None else (pod,)
    if context.policy is SharingPolicy.EQUAL:
        return Allocation(measured.value / len(pods), Attribution.SPLIT)
    weights = _cached_weights(pods, share, context.accounting)
    total = sum(weights.values())
    if total <= 0:
        return NO_WEIGHT
    return Allocation(measured.value * (weights[pod.ref] / total), Attribution.SPLIT)


def _cached_weights(
    pods: Sequence[Pod], share: Share | None, accounting: Accounting
) -> Mapping[PodRef, float]:
    """Return the weights, computed once for all pods of a device."""
    if share is None:
        return _weights(pods, None, accounting)
    if _MEMORY not in share.weights:
        share.weights[_MEMORY] = _weights(pods, share, accounting)
    return share.weights[_MEMORY]


def _weights(
    pods: Sequence[Pod], share: Share | None, accounting: Accounting
) -> Mapping[PodRef, float]:
    """Return pod -> memory, all in one unit; empty if it is not known for all of them."""
    used = _used_memory(share, accounting)
    if all(pod.ref in used for pod in pods):
        return {pod.ref: used[pod.ref] for pod in pods}
    for name in MEMORY_PARTS:
        if all(pod.gpus.get(name) for pod in pods):
            return {pod.ref: float(pod.gpus[name]) for pod in pods}
    return {}


def _used_memory(share: Share | None, accounting: Accounting) -> dict[PodRef, float]:
    """Return pod -> its own used memory on the device, if that is accounted.

    A container's own values are added up. A value that is accounted per process is repeated for
    each of the pod's containers, so the largest is the pod's.
    """
    if share is None or accounting.memory is None:
        return {}
    used: dict[PodRef, dict[str, float]] = {}
    for series in share.all_series:
        measured = accounting.memory.read(series)
        if series.assignment is None or series.superseded or measured is None:
            continue
        if is_exact(series, measured, accounting):
            of_pod = used.setdefault(series.assignment.pod, {})
            part = series.assignment.container if series.own else ""
            of_pod[part] = max(measured.value, of_pod.get(part, 0.0))
    return {pod: sum(parts.values()) for pod, parts in used.items()}


NO_REQUEST: Final = "nothing_requested"
SHARE_UNKNOWN: Final = "requested_share_unknown"


def part_of_request(
    allocation: Allocation, pod: Pod | None, series: DeviceSeries, facts: NodeFacts, *, shared: bool
) -> Allocation | str:
    """Return the part divided by the pod's requested share of the device, or why it cannot be.

    Args:
        allocation: the pod's part.
        pod: None if the value is about the device, of which no pod requests a share.
        series: of the device.
        facts: of its node.
        shared: whether several pods have the device.
    """
    if pod is None:
        return NO_REQUEST
    share = core_part(pod.gpus, len(pod.containers))
    if shared and allocation.how is Attribution.COPIED:
        return SHARE_UNKNOWN  # the value includes the use by other pods
    if share is None:
        share = _replica(pod, series, facts) if shared else 1.0
    return SHARE_UNKNOWN if share is None else allocation._replace(value=allocation.value / share)


def _replica(pod: Pod, series: DeviceSeries, facts: NodeFacts) -> float | None:
    """Return 1 / the replicas that the node offers per device, if the pod requests one replica."""
    kind = resource(series, facts, pod.gpus)
    replicas = facts.replicas.get(kind, 0)
    requested = pod.gpus.get(kind, 0) + pod.gpus.get(kind + RENAMED_SUFFIX, 0)
    return 1.0 / replicas if replicas > 1 and requested == 1 else None

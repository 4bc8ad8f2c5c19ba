"""A pod's part of a shared device's value. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from adapter.attribution.holdings import Holders
from adapter.attribution.policy import SharingPolicy
from adapter.attribution.reading import Attribution
from adapter.attribution.sharing import NodeSharing, Share, resource
from adapter.catalog.metric import DeviceValue, Metric
from adapter.cluster.nodelabels import NodeFacts
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.accounting import ACCOUNTED
from adapter.devices.series import DeviceSeries

NOT_EXACT: Final = "not_exact"
"""The policy is ``exact`` and the value is not accounted per process."""
NO_WEIGHT: Final = "no_memory_weight"
"""The policy is ``memory`` and the sharers' memory is not known of all of them."""

_MEMORY: Final = "memory"
_ASKED: Final = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "volcano.sh/vgpu-memory")
"""Resources by which pods ask for a part of a device's memory; each in a unit of its own."""


class Accounting(NamedTuple):
    """What the catalogue says about values that are a pod's own."""

    exact: frozenset[str] = frozenset()
    """Fields whose samples are the container's own."""
    memory: Metric | None = None
    """Used memory."""


class NodeContext(NamedTuple):
    """What is known about where a pod runs."""

    facts: NodeFacts = NodeFacts()
    sharing: NodeSharing = NodeSharing()
    policy: SharingPolicy = SharingPolicy.COPY
    accounting: Accounting = Accounting()
    held: Holders = MappingProxyType({})
    """Device -> the pods that samples named for it."""
    reported: frozenset[str] = frozenset()
    """Fields that exporters report which are known to be on the pod's node."""
    normalized: bool = False
    """See :attr:`adapter.attribution.policy.SharingOptions.normalized`."""


NO_CONTEXT: Final = NodeContext()
"""Nothing is known."""


class Allocation(NamedTuple):
    """What a pod is given of a device's value."""

    value: float
    how: Attribution


def lent(all_series: Sequence[DeviceSeries], shares: Mapping[str, Share]) -> Iterator[DeviceSeries]:
    """The samples of shared devices whose samples name only one of their pods at a time."""
    own = {series.device.id for series in all_series if series.shared and not series.own}
    claims = {series.device.id: series.assignment for series in all_series}
    for device, share in shares.items():
        if device not in own and share.whole is not None:
            assignment = claims.get(device)
            yield replace(share.whole, assignment=assignment, shared=True, superseded=False)


def is_exact(series: DeviceSeries, measured: DeviceValue, accounting: Accounting) -> bool:
    """The sample is of the pod's own processes, however the device is shared."""
    fields = measured.field.split("+")
    if accounting.exact.issuperset(fields):
        return True
    return series.per_process and ACCOUNTED.issuperset(fields)


def allocation(
    metric: Metric,
    measured: DeviceValue,
    series: DeviceSeries,
    share: Share | None,
    pod: Pod,
    context: NodeContext,
) -> Allocation | str:
    """The pod's part of a shared device's sample, or why it has none.

    Args:
        metric: that is asked for.
        sample: the device's.
        all_series: that it is of.
        share: who shares the device, the pod among them; None where nobody else is known.
        pod: whose part.
        context: where it runs.
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
    weights = _remembered(pods, share, context.accounting)
    total = sum(weights.values())
    if total <= 0:
        return NO_WEIGHT
    return Allocation(measured.value * (weights[pod.ref] / total), Attribution.SPLIT)


def _remembered(
    pods: Sequence[Pod], share: Share | None, accounting: Accounting
) -> Mapping[PodRef, float]:
    """The weights, worked out once for all pods of a device."""
    if share is None:
        return _weights(pods, None, accounting)
    if _MEMORY not in share.weights:
        share.weights[_MEMORY] = _weights(pods, share, accounting)
    return share.weights[_MEMORY]


def _weights(
    pods: Sequence[Pod], share: Share | None, accounting: Accounting
) -> Mapping[PodRef, float]:
    """Pod -> memory, all in one unit; empty if it is not known of all of them."""
    used = _used(share, accounting)
    if all(pod.ref in used for pod in pods):
        return {pod.ref: used[pod.ref] for pod in pods}
    for name in _ASKED:
        if all(pod.gpus.get(name) for pod in pods):
            return {pod.ref: float(pod.gpus[name]) for pod in pods}
    return {}


def _used(share: Share | None, accounting: Accounting) -> dict[PodRef, float]:
    """Pod -> its own used memory on the device, where that is accounted.

    A container's own counts for the container; what is accounted per process stands on the
    sample of each of the pod's containers, so the largest is the pod's.
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

_CORES: Final = {
    "nvidia.com/gpucores": "nvidia.com/gpu",
    "volcano.sh/vgpu-cores": "volcano.sh/vgpu-number",
}
"""Percent of each device's cores -> devices; HAMi and Volcano."""


def of_request(
    allocation: Allocation, pod: Pod | None, series: DeviceSeries, facts: NodeFacts, *, shared: bool
) -> Allocation | str:
    """The pod's part divided by its requested share of the device, or why it cannot be.

    Args:
        given: the pod's part.
        pod: None where the question is about the device, of which nobody requests anything.
        all_series: of the device.
        facts: of its node.
        shared: several pods have the device.
    """
    if pod is None:
        return NO_REQUEST
    share = _cores(pod)
    if shared and allocation.how is Attribution.COPIED:
        return SHARE_UNKNOWN  # what the others do is in it
    if share is None:
        share = _replica(pod, series, facts) if shared else 1.0
    return SHARE_UNKNOWN if share is None else allocation._replace(value=allocation.value / share)


def _cores(pod: Pod) -> float | None:
    """The share that the spec names; None where it names none or several containers' sum."""
    for cores, devices in _CORES.items():
        percent = pod.gpus.get(cores, 0)
        if percent and (len(pod.containers) == 1 or pod.gpus.get(devices) == 1):
            return percent / 100.0
    return None


def _replica(pod: Pod, series: DeviceSeries, facts: NodeFacts) -> float | None:
    """One of the replicas that the node offers of a device, for a pod that asks for one."""
    kind = resource(series, facts)
    replicas = facts.replicas.get(kind, 0)
    asked = pod.gpus.get(kind, 0) + pod.gpus.get(kind + ".shared", 0)
    return 1.0 / replicas if replicas > 1 and asked == 1 else None

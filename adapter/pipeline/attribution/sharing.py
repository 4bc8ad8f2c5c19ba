"""Determine which pods share which device of a node, and the evidence for it.

Without ``--kubernetes-virtual-gpus``, the sample of a time-sliced device names one arbitrary pod of
those that share it. So a single sample shows neither that the device is shared nor the pods
that share it. The evidence is in the node's labels, in the pods' specs, and in samples that name
several living pods, at one time or one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from adapter.pipeline.attribution.holdings import Holders, Holding
from adapter.pipeline.catalog.migprofile import find_spelling
from adapter.pipeline.cluster.gpuresources import (
    MIG_PREFIX,
    NVIDIA_GPU,
    RENAMED_SUFFIX,
    is_hidden_partition,
    whole_devices,
)
from adapter.pipeline.cluster.nodelabels import NodeFacts
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import mismatch
from adapter.pipeline.devices.history import Frame, history
from adapter.pipeline.devices.series import DeviceSeries


class Evidence(StrEnum):
    """The evidence that a device is shared. The first that applies is reported."""

    REPLICAS = "node_replicas"
    """The node's labels state that several pods may have one device."""
    STRATEGY = "node_strategy"
    """The node's labels name a kind of sharing."""
    PRODUCT = "node_product"
    """The product name in the node's label ends in ``-SHARED``."""
    SPEC = "pod_spec"
    """A pod requests the renamed resource, or a partition whose samples are of the whole device."""
    GROUP = "reservation_pod"
    """Samples name the pod that reserves the device for a group of pods (KAI-Scheduler, Run:ai)."""
    ROWS = "rows"
    """Samples of one page name several pods, or a replica."""
    FLAPPING = "flapping_samples"
    """Samples named different pods, one after the other, and all of them still run."""


class Share(NamedTuple):
    """A shared device."""

    evidence: Evidence
    pods: tuple[Pod, ...]
    """Running pods that are known to share it."""
    all_series: tuple[DeviceSeries, ...]
    """All device series of the device."""
    whole: DeviceSeries | None
    """The device's own samples, regardless of the pod they name; None if there are none."""
    weights: dict[str, Mapping[PodRef, float]]
    """Cache of the weights for a division, by what is weighed."""


_NONE: Final[Mapping[str, Share]] = {}


class NodeSharing(NamedTuple):
    """The shared devices of a node."""

    devices: Mapping[str, Share] = {}
    of: Mapping[PodRef, Mapping[str, Share]] = {}
    """Pod -> the devices that it shares."""
    unplaced: frozenset[PodRef] = frozenset()
    """Pods that hold one of several shared devices, while no sample has named them for one."""
    sole: Mapping[PodRef, Sequence[DeviceSeries]] = {}
    """The only pod that holds a GPU of a node with one -> that device, which no sample assigns."""

    def shares_of(self, pod: Pod) -> Mapping[str, Share]:
        """Return the devices that a pod shares: device -> the pods that share it."""
        return self.of.get(pod.ref, _NONE) if self.of else _NONE


def node_sharing(
    all_series: Iterable[DeviceSeries], pods: Iterable[Pod], facts: NodeFacts, holdings: Holders
) -> NodeSharing:
    """Return which pods share which devices of a node.

    Args:
        all_series: of the node's devices, including those of earlier pods.
        pods: on the node.
        facts: from the node's labels.
        holdings: device -> living pods that samples named for it.
    """
    holding = [pod for pod in pods if pod.may_hold_gpu and not pod.finished]
    live = {pod.ref: pod for pod in holding if pod.phase == "Running"}
    requested = {name for pod in live.values() for name in pod.gpus}
    members = _members(live.values())
    devices = _devices(all_series)
    shares: dict[str, Share] = {}
    placed: set[PodRef] = set()
    kinds: dict[str, list[str]] = {}
    for device, its in devices.items():
        past = [holding for holding in holdings.get(device, ()) if _lives(holding, live)]
        holders = _named_pods(its, live, past)
        sharers = _in_groups(holders, live, members)
        placed |= sharers | holders
        kind = resource(its[0], facts, requested)
        kinds.setdefault(kind, []).append(device)
        evidence = _evidence(kind, its, past, live, requested, facts)
        if evidence is None and any(_asks_hidden_partition(live[ref]) for ref in holders):
            evidence = Evidence.SPEC
        if evidence is None and sharers != holders:
            evidence = Evidence.GROUP
        if evidence is not None:
            pods_of = _sort_pods(live, sharers)
            shares[device] = Share(evidence, pods_of, tuple(its), _whole_series(its), {})
    unplaced: set[PodRef] = set()
    for kind, of_kind in kinds.items():
        shared = [device for device in of_kind if device in shares]
        asking = {ref for ref, pod in live.items() if ref not in placed and asks(pod, kind)}
        if not shared or not asking:
            continue
        if len(of_kind) == 1 and facts.counts.get(kind, 1) <= 1:
            share = shares[shared[0]]
            everybody = asking | {pod.ref for pod in share.pods}
            shares[shared[0]] = share._replace(pods=_sort_pods(live, everybody))
        else:
            unplaced |= asking
    sole = {} if shares else _sole_holder(devices, holding, facts)
    return NodeSharing(shares, _by_pod(shares), frozenset(unplaced), sole)


def _members(pods: Collection[Pod]) -> Mapping[str, set[PodRef]]:
    """Return GPU group -> the pods that have a fraction of its device.

    One pod reserves the device of a group. If several pods with a device have its label, any owner
    of a namespace may have written it: then the group has no device, and its pods no value.
    """
    reserving = Counter(group for pod in pods if pod.gpus for group in pod.gpu_groups)
    members: dict[str, set[PodRef]] = {}
    for pod in pods:
        for group in () if pod.gpus else pod.gpu_groups:
            if reserving[group] == 1:
                members.setdefault(group, set()).add(pod.ref)
    return members


def _in_groups(
    holders: set[PodRef], live: Mapping[PodRef, Pod], members: Mapping[str, set[PodRef]]
) -> set[PodRef]:
    """Return the holders of a device, with the members of its group for a reservation pod."""
    reserving = {ref for ref in holders if live[ref].gpus and live[ref].gpu_groups}
    groups = {group for ref in reserving for group in live[ref].gpu_groups}
    fractions = set().union(*(members.get(group, set()) for group in groups))
    return (holders - reserving) | fractions if fractions else holders


def _sole_holder(
    devices: Mapping[str, Sequence[DeviceSeries]], holding: Sequence[Pod], facts: NodeFacts
) -> Mapping[PodRef, Sequence[DeviceSeries]]:
    """Return the only holder of a node's only device, if no sample assigns it to a pod.

    The node itself must state that it has one device: an exporter may not report all of them.
    """
    if len(devices) != 1 or len(holding) != 1 or facts.devices != 1 or facts.shared:
        return {}
    (pod,), (its,) = holding, devices.values()
    whole = pod.phase == "Running" and whole_devices(pod.gpus) == 1 == len(pod.gpus)
    # The node states the number of boards, not that of the instances of a board.
    if not whole or any(
        series.mig or series.assignment is not None or series.own for series in its
    ):
        return {}
    return {pod.ref: its}


def resource(series: DeviceSeries, facts: NodeFacts, requested: Iterable[str]) -> str:
    """Return the extended resource by which pods request such a device, before any renaming.

    Args:
        series: of the device.
        facts: from the node's labels.
        requested: resources that pods of the node request.
    """
    profile = series.device.mig_profile
    if not (series.mig and profile) or facts.mig_strategy == "single":
        return NVIDIA_GPU
    names = {*facts.counts, *facts.replicas}
    names |= {name.removesuffix(RENAMED_SUFFIX) for name in requested}
    profiles = {name.removeprefix(MIG_PREFIX) for name in names if name.startswith(MIG_PREFIX)}
    return MIG_PREFIX + find_spelling(profile.replace("+", "."), profiles)


def asks(pod: Pod, kind: str) -> bool:
    """Return whether the pod's spec requests this resource, under either of its names."""
    return kind in pod.gpus or kind + RENAMED_SUFFIX in pod.gpus


def asks_shared(pod: Pod) -> bool:
    """Return whether the pod's manifest shows that it shares a device: the name of a resource that
    it requests, or a GPU group."""
    return (
        bool(pod.gpu_groups)
        or any(name.endswith(RENAMED_SUFFIX) for name in pod.gpus)
        or _asks_hidden_partition(pod)
    )


def _asks_hidden_partition(pod: Pod) -> bool:
    return any(map(is_hidden_partition, pod.gpus))


def label_evidence(facts: NodeFacts, kind: str) -> Evidence | None:
    """Return the evidence in the node's labels that devices of this resource are shared."""
    if kind in facts.replicas:
        return Evidence.REPLICAS
    if facts.strategy and not facts.replicas:
        return Evidence.STRATEGY
    if facts.suffix and kind == NVIDIA_GPU:
        return Evidence.PRODUCT
    return None


def _evidence(
    kind: str,
    all_series: Sequence[DeviceSeries],
    past: Sequence[Holding],
    live: Mapping[PodRef, Pod],
    requested: Collection[str],
    facts: NodeFacts,
) -> Evidence | None:
    by_label = label_evidence(facts, kind)
    if by_label is not None:
        return by_label
    if kind + RENAMED_SUFFIX in requested:
        return Evidence.SPEC
    if any(series.shared for series in all_series):
        return Evidence.ROWS
    # A pod that terminates may have released its device before the API server shows it.
    return Evidence.FLAPPING if flaps(h for h in past if not live[h.pod].deleting) else None


def flaps(holdings: Iterable[Holding]) -> bool:
    """Return whether one exporter named several pods.

    If two exporters name one pod each, they contradict each other instead.
    """
    first: dict[str, PodRef] = {}
    return any(first.setdefault(holding.origin, holding.pod) != holding.pod for holding in holdings)


def _by_pod(shares: Mapping[str, Share]) -> dict[PodRef, dict[str, Share]]:
    by_pod: dict[PodRef, dict[str, Share]] = {}
    for device, share in shares.items():
        for pod in share.pods:
            by_pod.setdefault(pod.ref, {})[device] = share
    return by_pod


def _devices(all_series: Iterable[DeviceSeries]) -> dict[str, list[DeviceSeries]]:
    """Group device series by device, without boards that have MIG instances."""
    devices: dict[str, list[DeviceSeries]] = {}
    cut = set()
    for series in all_series:
        if series.serves:
            continue
        devices.setdefault(series.device.id, []).append(series)
        if series.mig:
            cut.add(series.device.board)
    return {device: its for device, its in devices.items() if device not in cut}


def _named_pods(
    all_series: Iterable[DeviceSeries], live: Mapping[PodRef, Pod], past: Iterable[Holding]
) -> set[PodRef]:
    holders = {holding.pod for holding in past}
    for series in all_series:
        assignment = series.assignment
        if assignment is None or series.superseded or assignment.pod not in live:
            continue
        pod = live[assignment.pod]
        if series.received > pod.born and mismatch(assignment, pod, series.node) is None:
            holders.add(assignment.pod)
    return holders


def _lives(holding: Holding, live: Mapping[PodRef, Pod]) -> bool:
    pod = live.get(holding.pod)
    return pod is not None and pod.uid == holding.uid


def _sort_pods(live: Mapping[PodRef, Pod], refs: Iterable[PodRef]) -> tuple[Pod, ...]:
    return tuple(live[ref] for ref in sorted(refs))


def _whole_series(all_series: Sequence[DeviceSeries]) -> DeviceSeries | None:
    """Combine all samples about the whole device into one device series."""
    of_device = [
        series
        for series in all_series
        if not series.own and (series.assignment is None or not series.per_process)
    ]
    if not of_device:
        return None
    newest = max(of_device, key=lambda series: series.received)
    if len(of_device) == 1:
        return newest
    frames: dict[float, Frame] = {}
    for series in sorted(of_device, key=lambda series: series.received):
        for time, frame in series.history.frames():
            frames.setdefault(time, {}).update(frame)
    return replace(newest, history=history(frames, inf, inf))

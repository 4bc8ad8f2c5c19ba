"""Group nodes into pools with free capacity, an example of the next node, and traps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from adapter.nodepool.learn.boots import BootTimes
from adapter.nodepool.model.capacity import Pool, PoolNode, Trap
from adapter.nodepool.seen.karpenter import NodePool
from adapter.nodepool.seen.nodes import ACCELERATOR_LABELS, NodeInfo
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.status import NodeGroup, groups_of, pool_name
from adapter.pipeline.cluster.gpuresources import MIG_PREFIX, NVIDIA_GPU, RENAMED_SUFFIX

_LONGEST_BOOT: Final = 1800.0
"""Seconds after which a node without devices counts as broken instead of booting."""
_MOMENT: Final = 60.0
"""Seconds: more than a round."""
_COUNT: Final = f"{NVIDIA_GPU}.count"
"""Labels of GPU Feature Discovery: devices of the node, or MIG instances with strategy single."""
_REPLICAS: Final = f"{NVIDIA_GPU}.replicas"


def with_pods(
    nodes: Iterable[NodeInfo], pods: Iterable[PodInfo], labels: Sequence[str], now: float
) -> tuple[PoolNode, ...]:
    """Return the nodes of GPU pools, without the requests of DaemonSets, with those of other pods.

    Nodes without devices are included while they may be booting.
    """
    daemons: dict[str, Counter[str]] = {}
    used: dict[str, Counter[str]] = {}
    holders: set[str] = set()
    for pod in pods:
        if not pod.node or pod.headroom:
            continue
        taken = (daemons if pod.daemon else used).setdefault(pod.node, Counter())
        for resource, milli in pod.shape.requests:
            taken[resource] += milli
        if pod.shape.claims:
            holders.add(pod.node)
    every = list(nodes)
    expected = _devices(every, labels)
    pool_nodes = []
    for node in every:
        pool = node.pool(labels)
        has = node.devices.keys()
        if not has and node.name not in holders and not expected.get(pool):
            continue
        complete = has >= expected.get(pool, frozenset()) and node.healthy
        if not complete and now - node.created > _LONGEST_BOOT and not (has and node.healthy):
            continue
        taken = daemons.get(node.name, Counter())
        allocatable = {name: milli - taken[name] for name, milli in node.allocatable.items()}
        pool_nodes.append(
            PoolNode(
                name=node.name,
                pool=pool,
                labels=node.labels,
                taints=node.taints,
                allocatable=allocatable,
                used=dict(used.get(node.name, {})),
                ready=complete,
                created=node.created,
            )
        )
    return tuple(pool_nodes)


def _devices(nodes: Iterable[NodeInfo], labels: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Return pool -> devices that all its nodes with devices have."""
    expected: dict[str, frozenset[str]] = {}
    for node in nodes:
        has = node.devices.keys()
        if has:
            pool = node.pool(labels)
            expected[pool] = frozenset(expected.get(pool, has) & has)
    return expected


def traps(node: NodeInfo) -> frozenset[Trap]:
    """Return the properties of a node that confuse an autoscaler (nodepool.md, GPU traps)."""
    node_traps = set()
    labelled = any(key in node.labels for key in ACCELERATOR_LABELS)
    mig = any(name.startswith(MIG_PREFIX) and n for name, n in node.allocatable.items())
    whole = node.allocatable.get(NVIDIA_GPU, 0)
    if labelled and mig and not whole:
        node_traps.add(Trap.MIG_MIXED)
    if node.allocatable.get(NVIDIA_GPU + RENAMED_SUFFIX, 0):
        node_traps.add(Trap.RENAMED_SHARED)
    count, replicas = _number(node.labels.get(_COUNT)), _number(node.labels.get(_REPLICAS))
    if whole and (whole > count * 1000 > 0 or replicas > 1):
        node_traps.add(Trap.TIME_SLICED)
    return frozenset(node_traps)


def _number(text: str | None) -> int:
    """Return the number of a label; 0 for one that is missing, or no number."""
    return int(text) if text and text.isascii() and text.isdigit() else 0


def pools(
    every: Iterable[NodeInfo],
    nodes: Sequence[PoolNode],
    groups: Sequence[NodeGroup],
    karpenter: Iterable[NodePool],
    boots: BootTimes,
    labels: Sequence[str],
    now: float,
) -> Mapping[str, Pool]:
    """Return the pools of GPU nodes, and pools that may get GPU nodes.

    Args:
        every: all nodes of the cluster, with or without GPUs.
        nodes: the nodes from :func:`with_pods`.
        groups: node groups of the cluster-autoscaler's status.
    """
    names: dict[str, list[str]] = {}
    odd: dict[str, set[Trap]] = {}
    for node in every:
        pool = node.pool(labels)
        names.setdefault(pool, []).append(node.name)
        odd.setdefault(pool, set()).update(traps(node))
    gpu = {node.pool for node in nodes} | {pool for pool, pool_traps in odd.items() if pool_traps}
    rows = {row.name: row for row in karpenter}
    limits = {name: row.limits for name, row in rows.items()}
    # A pool without nodes may be a GPU pool: only its autoscaler knows.
    gpu |= {name for name in limits if name not in names}
    taken = {group.name for name in names for group in groups_of(name, names[name], groups)}
    gpu |= {pool_name(group.name) for group in groups if group.name not in taken}
    by_name = {}
    for name in sorted(gpu):
        pool_groups = groups_of(name, names.get(name, ()), groups)
        by_name[name] = Pool(
            name=name,
            high=sum(group.high for group in pool_groups) if pool_groups else None,
            boot_seconds=boots.p90(name),
            # The status of a NodePool that is not Ready does not contain an end time.
            backoff_until=now + _MOMENT
            if name in rows and rows[name].problem
            else _backoff_end(pool_groups, now),
            traps=frozenset(odd.get(name, ())),
            example=_example(name, nodes),
            limits=limits.get(name, {}),
            coming=max(0, sum(group.target for group in pool_groups) - len(names.get(name, ()))),
            waits=name not in rows,
        )
    return by_name


def _backoff_end(groups: Sequence[NodeGroup], now: float) -> float | None:
    """Return when the first back-off of a pool's groups ends; None if one can grow already."""
    until = [group.refused_until(now) for group in groups]
    ends = [end for end in until if end is not None]
    return min(ends) if ends and len(ends) == len(until) else None


def _example(pool: str, nodes: Iterable[PoolNode]) -> PoolNode | None:
    ready = [node for node in nodes if node.pool == pool and node.ready]
    newest = max(ready, key=lambda node: (node.created, node.name), default=None)
    return replace(newest, used={}) if newest is not None else None

"""The status of the cluster-autoscaler: ConfigMap ``kube-system/cluster-autoscaler-status``.

Since 1.30 it is YAML, with the types of ``cluster-autoscaler/clusterstate/api/types.go``. The plain
text of older releases is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from adapter.pipeline.cluster import objects
from adapter.pipeline.cluster.objects import ConfigMap
from adapter.pipeline.cluster.table import Table
from apiservice.runtime.yamltext import YamlError, document
from apiservice.wire import instant

NAMESPACE = "kube-system"
NAME = "cluster-autoscaler-status"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

_BACKOFF = 300.0
"""Seconds: default of ``--initial-node-group-backoff-duration``. The status has the start of a
back-off, but not its end."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """One node group. A pool may have several, such as one per zone."""

    name: str
    high: int
    target: int
    """Nodes requested from the cloud."""
    healthy: bool
    backing_off: bool
    backoff: str
    """Reason of the back-off: error code and message."""
    since: float | None
    """Epoch seconds when the group's scale-up last changed its status."""

    def refused_until(self, now: float) -> float | None:
        """Return until when no scale-up is expected; None if the group does not back off.

        This is the start plus the usual duration. While the status still shows the back-off after
        that, it is extended minute by minute.
        """
        if not self.backing_off:
            return None
        return max((self.since or now) + _BACKOFF, now + 60.0)


@dataclass(frozen=True, slots=True)
class AutoscalerStatus:
    """The content of the ConfigMap."""

    groups: tuple[NodeGroup, ...]
    written: float | None
    """Epoch seconds when the cluster-autoscaler last checked its groups."""
    problem: str = ""
    """Why the content cannot be used."""

    @property
    def key(self) -> str:
        """The name of the ConfigMap."""
        return NAME


AutoscalerStatusTable = Table[str, AutoscalerStatus]


class _Backoff(msgspec.Struct, rename="camel"):
    error_code: str = ""
    error_message: str = ""


class _ScaleUp(msgspec.Struct, rename="camel"):
    status: str = ""
    backoff_info: _Backoff | None = None
    last_transition_time: str | None = None


class _Health(msgspec.Struct, rename="camel"):
    status: str = ""
    cloud_provider_target: int = 0
    max_size: int = 0
    last_probe_time: str | None = None


class _Group(msgspec.Struct, rename="camel"):
    name: str
    health: _Health
    scale_up: _ScaleUp = msgspec.field(default_factory=_ScaleUp)


class _Wide(msgspec.Struct):
    health: _Health = msgspec.field(default_factory=_Health)


class _Document(msgspec.Struct, rename="camel"):
    autoscaler_status: str
    cluster_wide: _Wide = msgspec.field(default_factory=_Wide)
    node_groups: list[_Group] | None = None


def decode(raw: msgspec.Raw | bytes) -> AutoscalerStatus:
    """Decode the ConfigMap. An unknown content becomes a ``problem``.

    Raises:
        msgspec.DecodeError: the text is not a ConfigMap.
    """
    return parse(objects.decode(raw, ConfigMap).data.get("status", ""))


def parse(text: str) -> AutoscalerStatus:
    """Return the status from the text under ``data.status``."""
    if text.startswith("Cluster-autoscaler status at"):
        return AutoscalerStatus(
            (), None, "is in the format of a cluster-autoscaler before 1.30: upgrade it"
        )
    try:
        read = msgspec.convert(document(text), _Document)
    except (YamlError, msgspec.ValidationError) as error:
        why = re.sub(r"\s+", " ", str(error))
        return AutoscalerStatus((), None, f"is not the status of a cluster-autoscaler: {why}")
    groups = tuple(map(_group, read.node_groups or ()))
    return AutoscalerStatus(groups, instant.read(read.cluster_wide.health.last_probe_time))


def _group(row: _Group) -> NodeGroup:
    up, info = row.scale_up, row.scale_up.backoff_info or _Backoff()
    return NodeGroup(
        name=row.name,
        high=row.health.max_size,
        target=row.health.cloud_provider_target,
        healthy=row.health.status == "Healthy",
        backing_off=up.status == "Backoff",
        backoff=": ".join(part for part in (info.error_code, info.error_message) if part),
        since=instant.read(up.last_transition_time),
    )


def groups_of(pool: str, nodes: Collection[str], groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Return the groups of a pool, identified by their names.

    On AKS (``aks-POOL-…-vmss000001``) and GKE (``gke-…-grp`` without its end), names of nodes begin
    with the name of the group. On EKS, the group of node group POOL is ``eks-POOL-UUID``.
    Otherwise, group and pool have the same name.
    """
    return [group for group in groups if _belongs(group.name, pool, nodes)]


def _belongs(group: str, pool: str, nodes: Collection[str]) -> bool:
    base = group.rstrip("/").rpartition("/")[2]
    if base == pool:
        return True
    stem = base.removesuffix("-grp")
    if any(node.startswith(stem) for node in nodes):
        return True
    name = re.escape(pool)
    return bool(
        re.fullmatch(rf"aks-{name}-\d+-vmss", base)
        or re.fullmatch(rf"eks-{name}-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}", base)
        or re.fullmatch(rf"gke-.+-{name}-[0-9a-f]{{8}}-grp", base)
    )


def pool_name(group: str) -> str:
    """Return the pool of a group without nodes, from its name, or else the name of the group."""
    base = group.rstrip("/").rpartition("/")[2]
    for form in (r"aks-(.+)-\d+-vmss", r"eks-(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"):
        if match := re.fullmatch(form, base):
            return match[1]
    return base

"""The collections that a plan is made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapter.nodepool.seen.autoscalers import Autoscalers
from adapter.nodepool.seen.claimtemplates import ClaimTemplates
from adapter.nodepool.seen.headroom import Headrooms
from adapter.nodepool.seen.jobs import Jobs
from adapter.nodepool.seen.karpenter import NodeClaims, NodePools
from adapter.nodepool.seen.nodes import Nodes
from adapter.nodepool.seen.pods import Pods
from adapter.nodepool.seen.priorityclasses import PriorityClasses
from adapter.nodepool.seen.status import Statuses
from adapter.nodepool.seen.workloads import Workloads


@dataclass(frozen=True, slots=True)
class Cluster:
    """Each kept in step by a watch; one that is not served stays empty."""

    pods: Pods = field(default_factory=Pods)
    nodes: Nodes = field(default_factory=Nodes)
    autoscalers: Autoscalers = field(default_factory=Autoscalers)
    deployments: Workloads = field(default_factory=Workloads)
    statefulsets: Workloads = field(default_factory=Workloads)
    replicasets: Workloads = field(default_factory=Workloads)
    jobs: Jobs = field(default_factory=Jobs)
    classes: PriorityClasses = field(default_factory=PriorityClasses)
    status: Statuses = field(default_factory=Statuses)
    buffers: Headrooms = field(default_factory=Headrooms)
    placeholders: Headrooms = field(default_factory=Headrooms)
    node_pools: NodePools = field(default_factory=NodePools)
    node_claims: NodeClaims = field(default_factory=NodeClaims)
    claim_templates: ClaimTemplates = field(default_factory=ClaimTemplates)

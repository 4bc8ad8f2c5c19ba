"""The collections that a plan uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapter.nodepool.seen.autoscalers import HpaTable
from adapter.nodepool.seen.claimtemplates import ClaimTemplateTable
from adapter.nodepool.seen.headroom import HeadroomTable
from adapter.nodepool.seen.jobs import JobInfoTable
from adapter.nodepool.seen.karpenter import NodeClaimTable, NodePoolTable
from adapter.nodepool.seen.nodes import NodeInfoTable
from adapter.nodepool.seen.pods import PodInfoTable
from adapter.nodepool.seen.priorityclasses import PriorityClassTable
from adapter.nodepool.seen.status import AutoscalerStatus, AutoscalerStatusTable
from adapter.nodepool.seen.workloads import WorkloadTable


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """One table per collection, updated by a watch. Without the API, its table is empty."""

    pods: PodInfoTable = field(default_factory=PodInfoTable)
    nodes: NodeInfoTable = field(default_factory=NodeInfoTable)
    autoscalers: HpaTable = field(default_factory=HpaTable)
    deployments: WorkloadTable = field(default_factory=WorkloadTable)
    statefulsets: WorkloadTable = field(default_factory=WorkloadTable)
    replicasets: WorkloadTable = field(default_factory=WorkloadTable)
    scales: WorkloadTable = field(default_factory=WorkloadTable)
    """Other kinds, of which only the scale subresource is read, once in a full round."""
    jobs: JobInfoTable = field(default_factory=JobInfoTable)
    classes: PriorityClassTable = field(default_factory=PriorityClassTable)
    status: AutoscalerStatusTable = field(default_factory=AutoscalerStatusTable)
    buffers: HeadroomTable = field(default_factory=HeadroomTable)
    placeholders: HeadroomTable = field(default_factory=HeadroomTable)
    node_pools: NodePoolTable = field(default_factory=NodePoolTable)
    node_claims: NodeClaimTable = field(default_factory=NodeClaimTable)
    claim_templates: ClaimTemplateTable = field(default_factory=ClaimTemplateTable)

    @property
    def autoscaler(self) -> AutoscalerStatus | None:
        """The status of the cluster-autoscaler; None if there is none."""
        return next(iter(self.status), None)

"""The watches follow what the API server serves."""

from __future__ import annotations

import asyncio

from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.run.watches import Watches
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.servedapis import ServedApis
from tests.adapter.nodepool.manifests import HOME, found
from tests.adapter.nodepool.orders import LIFELINE, order


def names(watches: Watches) -> set[str]:
    return {name for name, _ in watches.reflectors()}


async def test_a_plan_does_not_wait_for_buffers_without_a_definition() -> None:
    cluster = ClusterTables()
    watches = Watches(None, cluster, HOME, jobs_too=True, priority_class="low")
    async with asyncio.TaskGroup() as group:
        watches.start(group, ServedApis(buffers="v1alpha1"))
        first = dict(watches.reflectors())["buffers"]
        _, obj = capacitybuffer.manifests(order(), "v1alpha1", LIFELINE, "pause", None)
        cluster.buffers.replace([found(ProvisioningMethod.BUFFER, obj)])
        watches.start(group, ServedApis(buffers="v1beta1"))
        assert dict(watches.reflectors())["buffers"] is not first
        watches.start(group, ServedApis())
        assert "buffers" not in names(watches)
        assert len(cluster.buffers) == 0
        watches.stop()


async def test_apis_that_are_not_served_are_not_watched() -> None:
    watches = Watches(None, ClusterTables(), HOME, jobs_too=False, priority_class="low")
    optional = {"node_pools", "node_claims", "buffers", "claim_templates", "jobs"}
    async with asyncio.TaskGroup() as group:
        watches.start(group, ServedApis())
        watches.stop()
    assert not optional & names(watches)

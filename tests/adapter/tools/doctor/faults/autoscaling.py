"""Faults around the node-pool controller (GMA601 to GMA606)."""

from __future__ import annotations

from adapter.pipeline.cluster.objects import ResourceQuota, SeenPriorityClass, read
from adapter.tools.doctor.facts import Fact, Facts
from tests.adapter.tools.doctor.clean import (
    nodepool,
    workload,
)
from tests.adapter.tools.doctor.faults.register import fault


@fault("GMA601")
def no_autoscaler(facts: Facts) -> None:
    facts.autoscaler = Fact("")


@fault("GMA602")
def no_buffers(facts: Facts) -> None:
    facts.nodepool = Fact(nodepool("nodepool: {provisioning_method: buffer}\n"))


@fault("GMA603")
def no_class(facts: Facts) -> None:
    facts.priorityclasses = Fact([])


@fault("GMA603")
def high_class(facts: Facts) -> None:
    manifest = {"metadata": {"name": "gpu-metrics-adapter-headroom"}, "value": 1000}
    facts.priorityclasses = Fact([read(manifest, SeenPriorityClass)])


@fault("GMA604")
def full_quota(facts: Facts) -> None:
    manifest = {
        "metadata": {"name": "small", "namespace": "gpu-metrics"},
        "status": {"hard": {"pods": "4"}, "used": {"pods": "4"}},
    }
    facts.quotas = Fact([read(manifest, ResourceQuota)])


@fault("GMA605")
def tight_cap(facts: Facts) -> None:
    facts.nodepool = Fact(nodepool("nodepool: {limits: {max_pods: 0}}\n"))


@fault("GMA605")
def wide_pods(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=16)])


@fault("GMA606")
def too_wide(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=16)])

"""Faults of nodes, of shared GPUs and of requests for GPUs (GMA015, GMA016, GMA201 to GMA205)."""

from __future__ import annotations

from typing import Any

from adapter.pipeline.cluster.evictions import SeenBudget
from adapter.pipeline.cluster.objects import SeenEvent, SeenNodeClaim, read
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Fact, Facts
from tests.adapter.tools.doctor.clean import (
    LABELS,
    hpa,
    metric,
    node,
    pod,
)
from tests.adapter.tools.doctor.faults.register import fault


@fault("GMA201")
def sliced(facts: Facts) -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", labels=labels)])


@fault("GMA202")
def renamed(facts: Facts) -> None:
    limits = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    waiting = pod("mig-1", on="", containers=[{"name": "a", "resources": limits}])
    waiting = replace_pod(waiting, phase="Pending")
    facts.pods = Fact([*facts.pods.read(), waiting])


def replace_pod(each: SeenPod, **more: Any) -> SeenPod:
    return SeenPod(each.pod.replace(**more), each.spec, each.packed)


@fault("GMA203")
def whole_on_mig(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", labels={"nvidia.com/mig.strategy": "single"})])
    facts.hpas = Fact([hpa(metric("DCGM_FI_DEV_GPU_UTIL"))])


@fault("GMA204")
def claimed(facts: Facts) -> None:
    spec = {"resourceClaims": [{"name": "gpu"}], "containers": [{"name": "a"}]}
    facts.pods = Fact([*facts.pods.read(), pod("dra-1", on="gpu-b", spec=spec)])


@fault("GMA205")
def foreign_name(facts: Facts) -> None:
    facts.nodes = Fact([*facts.nodes.read(), node("gpu-c", resource="acme.com/gpu")])


def budget(**spec: Any) -> SeenBudget:
    """A PodDisruptionBudget of the two pods of chat, both ready."""
    status = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    manifest = {"metadata": {"name": "llm", "namespace": "chat"}, "status": status}
    return read(manifest | {"spec": {"selector": {"matchLabels": LABELS}, **spec}}, SeenBudget)


def blocked(name: str, message: str, reason: str = "DisruptionBlocked") -> SeenEvent:
    """What Karpenter says of a node."""
    row = {"involvedObject": {"kind": "Node", "name": name}, "reason": reason, "message": message}
    return read(row | {"lastTimestamp": "2026-03-01T11:55:00Z"}, SeenEvent)


NOTED = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=chat/train)'


@fault("GMA015")
def a_budget_that_never_opens(facts: Facts) -> None:
    facts.budgets = Fact([budget(minAvailable=2)])


@fault("GMA015")
def a_node_that_karpenter_cannot_remove(facts: Facts) -> None:
    facts.node_events = Fact([blocked("gpu-a", NOTED)])


@fault("GMA015")
def an_annotated_pod_on_a_cordoned_node(facts: Facts) -> None:
    note = {"karpenter.sh/do-not-disrupt": "true"}
    busy = pod("train", on="gpu-a", annotations=note)
    labels = {"karpenter.sh/nodepool": "gpu"}
    facts.pods = Fact([*facts.pods.read(), busy])
    facts.nodes = Fact([node("gpu-a", labels=labels, unschedulable=True), node("gpu-b")])


def claim(kind: str, status: str, reason: str, message: str) -> SeenNodeClaim:
    """A NodeClaim with one condition, ten minutes old."""
    row = {"type": kind, "status": status, "reason": reason, "message": message}
    row["lastTransitionTime"] = "2026-03-01T11:50:00Z"
    manifest = {
        "metadata": {"name": "gpu-x1"},
        "status": {"conditions": [row], "nodeName": "gpu-a"},
    }
    return read(manifest, SeenNodeClaim)


@fault("GMA016")
def a_machine_that_is_not_launched(facts: Facts) -> None:
    facts.node_claims = Fact([claim("Launched", "False", "LaunchFailed", "not authorized")])


@fault("GMA016")
def a_cloud_without_machines(facts: Facts) -> None:
    row = {
        "involvedObject": {"kind": "NodeClaim", "name": "gpu-x2"},
        "type": "Warning",
        "reason": "InsufficientCapacityError",
        "message": "NodeClaim gpu-x2 event: all requested instance types were unavailable",
        "lastTimestamp": "2026-03-01T11:55:00Z",
    }
    facts.node_events = Fact([read(row, SeenEvent)])

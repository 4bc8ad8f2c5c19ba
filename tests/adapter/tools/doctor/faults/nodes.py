"""Faults of shared GPUs and of requests for GPUs (GMA201 to GMA205)."""

from __future__ import annotations

from typing import Any

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Fact, Facts
from tests.adapter.tools.doctor.clean import (
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

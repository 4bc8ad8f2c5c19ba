"""What doctor says about resources of GPUs with names of their own, and about claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.pipeline.cluster.gpuresources import GPU_RESOURCES, GpuResources
from adapter.pipeline.cluster.podobjects import recount_gpus
from adapter.tools.doctor.claims import read_claim
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.runner import run
from tests.adapter.tools.doctor.clean import clean, node, nodepool, pod, workload


def findings(facts: Facts, identity: str) -> list[Finding]:
    return next(list(result.findings) for result in run(facts) if result.check.id == identity)


@pytest.mark.parametrize(
    "limits",
    [
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "8000"},
        {"gpu.intel.com/i915": "1", "gpu.intel.com/millicores": "500"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"},
    ],
    ids=str,
)
def test_a_cap_is_compared_with_devices_and_not_with_their_memory(limits: dict[str, str]) -> None:
    facts = clean()
    facts.nodepool = Fact(nodepool("nodepool: {limits: {max_gpus_per_pool: 1}}\n"))
    one = {"name": "a", "image": "registry/app:1", "resources": {"limits": limits}}
    facts.workloads = Fact([workload(pod={"containers": [one]})])
    assert findings(facts, "GMA605") == []
    two = {**one, "resources": {"limits": {**limits, "nvidia.com/gpu": "8"}}}
    facts.workloads = Fact([workload(pod={"containers": [two]})])
    (finding,) = findings(facts, "GMA605")
    assert "one pod needs 8" in finding.message or "one pod needs 9" in finding.message


@pytest.mark.parametrize("name", ["amd.com/cpx_nps4", "nvidia.com/a100", "google.com/tpu"])
def test_a_node_with_a_product_as_resource_offers_a_gpu(name: str) -> None:
    facts = clean()
    facts.nodes = Fact([unlabelled(name)])
    assert findings(facts, "GMA012") == []


def test_a_cluster_whose_pages_have_devices_has_gpus() -> None:
    facts = clean()
    facts.nodes = Fact([unlabelled("acme.com/device")])
    assert findings(facts, "GMA012") == []
    pages = facts.pages.read().items()
    facts.pages = Fact({key: replace(page, devices=()) for key, page in pages})
    (finding,) = findings(facts, "GMA012")
    assert "cluster.gpu_resources" in finding.fix


def unlabelled(resource: str) -> Any:
    return node("gpu-a", resource=resource, labels={"nvidia.com/gpu.present": ""})


def test_pods_are_counted_by_the_settings() -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"acme.com/x": "2"}}}]}
    seen = pod("p", spec=spec)
    assert not seen.pod.holds_gpu
    own = recount_gpus(seen, GpuResources((*GPU_RESOURCES, "acme.com/x")))
    assert (dict(own.pod.gpus), own.pod.extended) == ({"acme.com/x": 2}, {})
    none = recount_gpus(own, GpuResources(()))
    assert (none.pod.holds_gpu, none.pod.may_hold_gpu) == (False, True)


def claim(driver: str, of: str = "nic-0") -> dict[str, Any]:
    return {
        "metadata": {"name": "c", "namespace": "chat"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": driver}}]}},
        "status": {
            "allocation": {"devices": {"results": [{"driver": driver, "device": "d"}]}},
            "reservedFor": [{"resource": "pods", "name": of, "uid": "u"}],
        },
    }


@pytest.mark.parametrize(("driver", "warned"), [("rdma.example", False), ("gpu.nvidia.com", True)])
def test_a_claim_of_a_network_card_needs_no_exporter(driver: str, *, warned: bool) -> None:
    facts = clean()
    spec = {"resourceClaims": [{"name": "rdma"}], "containers": [{"name": "a"}]}
    facts.pods = Fact([*facts.pods.read(), pod("nic-0", on="gpu-b", spec=spec)])
    facts.claims = Fact([read_claim(claim(driver))])
    assert bool(findings(facts, "GMA204")) is warned


def test_a_pod_with_a_claim_counts_once_a_page_names_it() -> None:
    facts = clean()
    spec = {"resourceClaims": [{"name": "gpu"}], "containers": [{"name": "a"}]}
    facts.pods = Fact([*facts.pods.read(), pod("dra-0", on="gpu-b", spec=spec)])
    assert "chat/dra-0" not in {holder.key for holder in facts.gpu_pods}
    key, page = next(iter(facts.pages.read().items()))
    device = replace(page.devices[0], pods=frozenset({"chat/dra-0"}))
    facts.pages = Fact({key: replace(page, devices=(device,))})
    assert "chat/dra-0" in {holder.key for holder in facts.gpu_pods}

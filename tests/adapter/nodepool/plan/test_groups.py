"""Headroom for targets whose size only the scale subresource shows, and for groups of pods."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
import structlog.testing

from adapter.hpa import Values
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.observation import observe
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.scales import Scales
from adapter.nodepool.seen.targets import pods_by_workload, targets, unwatched_autoscalers
from adapter.pipeline.cluster.podgroups import stated_size
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import GPU, SPEC, T0, cluster, hpa, node, pod

NOW: Final = T0 + 60
LWS: Final = "leaderworkerset.sigs.k8s.io"
GROUPS: Final = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "name": "llm",
}
ROLLOUT: Final = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "inference"}
PATHS: Final = {
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/team/leaderworkersets/llm",
    "Rollout": "/apis/argoproj.io/v1alpha1/namespaces/team/rollouts/inference",
}


def scaled(api: FakeApi, kind: str, replicas: int = 2, selector: str = "app=x") -> None:
    """A scale subresource."""
    status = {"replicas": replicas, "selector": selector}
    api.objects[f"{PATHS[kind]}/scale"] = {"spec": {"replicas": replicas}, "status": status}


def read(api: FakeApi, seen: ClusterTables) -> ClusterTables:
    """What a full round reads of the scales."""
    of = unwatched_autoscalers(seen, pods_by_workload(seen.pods))
    seen.scales.replace(asyncio.run(Scales(api).read(of, 5.0)))
    return seen


def look(seen: ClusterTables, values: dict[WorkloadRef, tuple[Values, ...]]) -> list[Demand]:
    pods_of = pods_by_workload(seen.pods)
    scale_targets = targets(seen, pods_of)
    return list(observe(seen, scale_targets.targets, values, pods_of, Ledger(), (), NOW).demand)


def member(group: int, worker: int, on: str = "", **more: Any) -> PodInfo:
    """A pod of LeaderWorkerSet llm: the leader has one GPU, a worker has two."""
    leader = f"llm-{group}"
    labels = {
        f"{LWS}/name": "llm",
        f"{LWS}/group-index": str(group),
        f"{LWS}/worker-index": str(worker),
    }
    limits = {"requests": {"cpu": "1"}, "limits": {GPU: "2" if worker else "1"}}
    spec = {**SPEC, "containers": [{"name": "main", "resources": limits}]}
    name = f"{leader}-{worker}" if worker else leader
    owner = ("StatefulSet", leader if worker else "llm")
    return pod(name, on, spec, owner, labels=labels, **more)


def world(*pods: PodInfo, **more: Any) -> ClusterTables:
    nodes = [node(f"n{number}") for number in range(6)]
    rows = {"nodes": nodes, "pods": pods, "autoscalers": [hpa(target=GROUPS)], **more}
    return cluster(**rows)


def test_a_rollout_gets_headroom_by_its_scale() -> None:
    api = FakeApi()
    scaled(api, "Rollout")
    labels = {"rollouts-pod-template-hash": "abc"}
    pods = [pod("a", on="n1", labels=labels), pod("b", on="n1", labels=labels)]
    seen = read(api, world(*pods, autoscalers=[hpa(target=ROLLOUT)]))
    ref = WorkloadRef("team", "Rollout", "inference")
    (row,) = look(seen, {ref: ({"a": 145_000, "b": 145_000},)})
    assert (row.workload, row.bound, row.wanted, row.asked, row.unit) == (ref, 2, 6, 2, 1)
    assert not targets(seen, pods_by_workload(seen.pods)).left_out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda api: api.fail("GET", "/scale", 403, "forbidden"), "403 forbidden"),
        (lambda api: scaled(api, "Rollout", selector=""), "the scale has no selector"),
    ],
    ids=["no right", "no selector"],
)
def test_a_scale_that_cannot_be_read_is_said_and_counted(change: Any, why: str) -> None:
    api = FakeApi()
    change(api)
    labels = {"rollouts-pod-template-hash": "abc"}
    with structlog.testing.capture_logs() as logs:
        one = world(pod("a", on="n1", labels=labels), autoscalers=[hpa(target=ROLLOUT)])
        seen = read(api, one)
    assert targets(seen, pods_by_workload(seen.pods)).left_out == {"target_unknown": 1}
    (line,) = logs
    assert (line["hpa"], why in line["reason"]) == ("team/inference", True)


def test_scales_of_workloads_without_gpus_are_not_read() -> None:
    plain: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    labels = {"rollouts-pod-template-hash": "abc"}
    api = FakeApi()
    read(api, world(pod("a", "n1", plain, labels=labels), autoscalers=[hpa(target=ROLLOUT)]))
    assert api.asked == []


def test_a_replica_of_four_pods_needs_four_pods_of_two_shapes() -> None:
    api = FakeApi()
    scaled(api, "LeaderWorkerSet", selector=f"{LWS}/name=llm,{LWS}/worker-index=0")
    pods = [member(group, worker, "n1") for group in (0, 1) for worker in range(4)]
    seen = read(api, world(*pods))
    ref = WorkloadRef("team", "LeaderWorkerSet", "llm")
    workers, leaders = look(seen, {ref: ({"llm-0": 75_000, "llm-1": 75_000},)})
    # Each group is at 75 of 50: 2 x 1.5 is 3 groups.
    assert (gpus(workers.shape), workers.unit, workers.bound, workers.wanted) == (2, 3, 6, 9)
    assert (gpus(leaders.shape), leaders.unit, leaders.bound, leaders.wanted) == (1, 1, 2, 3)
    assert (workers.load, leaders.load) == (9.0, 3.0)
    assert (workers.max_replicas, leaders.max_replicas) == (24, 8)
    assert workers.workload == ref
    assert leaders.workload != ref, "each shape has a history of its own"
    assert leaders.name == "LeaderWorkerSet/llm (1 more pods of a group)"


def test_headroom_is_ordered_for_whole_groups() -> None:
    api = FakeApi()
    scaled(api, "LeaderWorkerSet", 1)
    seen = read(api, world(*(member(0, worker, "n1") for worker in range(4))))
    ref = WorkloadRef("team", "LeaderWorkerSet", "llm")
    pods_of = pods_by_workload(seen.pods)
    scale_targets = targets(seen, pods_of)
    # The HPA creates no pod before its policy allows it, so all growth is headroom.
    got = observe(
        seen, scale_targets.targets, {ref: ({"llm-0": 340_000},)}, pods_of, Ledger(), (), NOW
    )
    orders = plan(got.demand, got.capacity, Limits(max_gpus_per_pool=1000, max_pods=1000), NOW)
    by_size = {gpus(order.shape): order.replicas for order in orders.orders}
    assert by_size[2] == 3 * by_size[1] > 0


def test_a_group_that_lacks_pods_does_not_shrink_the_others() -> None:
    api = FakeApi()
    scaled(api, "LeaderWorkerSet")
    pods = [*(member(0, worker, "n1") for worker in range(4)), member(1, 0, "n1")]
    seen = read(api, world(*pods))
    (target,) = targets(seen, pods_by_workload(seen.pods)).targets
    assert sorted(number for _, number in target.group) == [1, 3]


def test_a_group_with_a_domain_of_its_own_is_left_out_with_a_reason() -> None:
    """The annotation of kubernetes-sigs/lws ``leaderworkerset_exclusiveplacement.yaml``: the node
    selector of a worker names the domain of its own leader, so headroom of its shape would be in a
    domain that no new group may have."""
    api = FakeApi()
    scaled(api, "LeaderWorkerSet")
    note = {f"{LWS}/exclusive-topology": "cloud.google.com/gke-nodepool"}
    pods = [member(0, worker, "n1", annotations=note) for worker in range(4)]
    seen = read(api, world(*pods))
    assert targets(seen, pods_by_workload(seen.pods)).left_out == {"exclusive_topology": 1}


def test_the_scales_of_one_namespace_do_not_take_the_reads_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, the first HPAs of the cluster were read, and each HPA of one target asked again."""
    monkeypatch.setattr("adapter.nodepool.seen.scales._MOST", 4)
    api = FakeApi()
    rows = [
        hpa(target={**ROLLOUT, "name": f"r{number}"}, name=str(number), namespace="many")
        for number in range(9)
    ]
    rows += [hpa(target=ROLLOUT, name=str(number), namespace="few") for number in range(5)]
    with structlog.testing.capture_logs() as logs:
        assert asyncio.run(Scales(api).read(rows, 5.0)) == []
    places = [path.split("/namespaces/")[1].partition("/")[0] for path in api.asked]
    assert (places.count("few"), places.count("many")) == (1, 3)
    (row,) = [row for row in logs if row["event"] == "not every scale is read"]
    assert (row["scales"], row["read"]) == (10, 4)


@pytest.mark.parametrize("text", ["9" * 5_000, "-4", "4.0", "\u0664", ""])
def test_a_size_that_is_none_is_not_known(text: str) -> None:
    """Python raises an error for a number of 5,000 digits, in the round of everybody."""
    assert stated_size({f"{LWS}/size": text}) is None
    assert stated_size({f"{LWS}/size": "4"}) == 4

"""The view, Object metrics and external labels name the same workload above a pod."""

from __future__ import annotations

import pytest

from adapter.answers.view.owner import Above, topmost_workload
from adapter.pipeline.cluster.pod import Owner
from apiservice.labels.selector import EVERYTHING
from apiservice.labels.selector import parse as selector
from apiservice.provider import ExternalQuery, GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

NOW = 1_700_000_000.0
LWS = "leaderworkerset.sigs.k8s.io/name"
OWNED = {
    "a Deployment": (
        Owner("apps/v1", "ReplicaSet", "llm-5d9"),
        {"pod-template-hash": "5d9"},
        Above("apps/v1", "Deployment", "llm"),
        "deployments.apps",
    ),
    "an Argo Rollout": (
        Owner("apps/v1", "ReplicaSet", "llm-5d9"),
        {"rollouts-pod-template-hash": "5d9"},
        Above("argoproj.io/v1alpha1", "Rollout", "llm"),
        "rollouts.argoproj.io",
    ),
    "a leader of a LeaderWorkerSet": (
        Owner("apps/v1", "StatefulSet", "llm"),
        {LWS: "llm"},
        Above("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm"),
        "leaderworkersets.leaderworkerset.x-k8s.io",
    ),
    "a worker of a LeaderWorkerSet": (
        Owner("apps/v1", "StatefulSet", "llm-0"),
        {LWS: "llm"},
        Above("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm"),
        "leaderworkersets.leaderworkerset.x-k8s.io",
    ),
    "a role of a DisaggregatedSet": (
        Owner("apps/v1", "StatefulSet", "chat-decode-0"),
        {LWS: "chat-decode", "disaggregatedset.x-k8s.io/name": "chat"},
        Above("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", "chat"),
        "disaggregatedsets.disaggregatedset.x-k8s.io",
    ),
    "a JobSet": (
        Owner("batch/v1", "Job", "train-workers-0"),
        {"jobset.sigs.k8s.io/jobset-name": "train"},
        Above("jobset.x-k8s.io/v1alpha2", "JobSet", "train"),
        "jobsets.jobset.x-k8s.io",
    ),
    "a scaling group of Grove": (
        Owner("grove.io/v1alpha1", "PodClique", "chat-0-decode-0-worker"),
        {"grove.io/podcliquescalinggroup": "chat-0-decode"},
        Above("grove.io/v1alpha1", "PodCliqueScalingGroup", "chat-0-decode"),
        "podcliquescalinggroups.grove.io",
    ),
    "a fleet of clusters of Ray, by its operator": (
        Owner("orchestration.aibrix.ai/v1alpha1", "RayClusterFleet", "fleet"),
        {"ray.io/cluster": "fleet-5d9"},
        Above("orchestration.aibrix.ai/v1alpha1", "RayClusterFleet", "fleet"),
        "rayclusterfleets.orchestration.aibrix.ai",
    ),
    "a Deployment of KServe": (
        Owner("apps/v1", "ReplicaSet", "llm-predictor-5d9"),
        {"pod-template-hash": "5d9", "serving.kserve.io/inferenceservice": "llm"},
        Above("apps/v1", "Deployment", "llm-predictor"),
        "deployments.apps",
    ),
    "a StatefulSet of an operator": (
        Owner("apps/v1", "StatefulSet", "llm"),
        {"inference.example/model": "llm"},
        Above("apps/v1", "StatefulSet", "llm"),
        "statefulsets.apps",
    ),
    "an object that owns its pods": (
        Owner("inference.example/v1", "ModelPolicy", "llm"),
        {},
        Above("inference.example/v1", "ModelPolicy", "llm"),
        "modelpolicies.inference.example",
    ),
    "a CronJob": (
        Owner("batch/v1", "Job", "batch-29123456"),
        {},
        Above("batch/v1", "CronJob", "batch"),
        "cronjobs.batch",
    ),
    "a cluster of Ray": (
        Owner("ray.io/v1", "RayCluster", "ray"),
        {"ray.io/cluster": "ray"},
        Above("ray.io/v1", "RayCluster", "ray"),
        "rayclusters.ray.io",
    ),
    "a StatefulSet": (
        Owner("apps/v1", "StatefulSet", "llm"),
        {},
        Above("apps/v1", "StatefulSet", "llm"),
        "statefulsets.apps",
    ),
}


@pytest.mark.parametrize(("owner", "labels", "above", "resource"), OWNED.values(), ids=OWNED)
def test_every_answer_knows_the_same_owner(
    owner: Owner, labels: dict[str, str], above: Above, resource: str
) -> None:
    pod = make_pod("a", namespace="ns", node="n1", owner=owner, labels=labels)
    world = World(pod)
    world.scrape(
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",container="server",namespace="ns",pod="a"} 60\n',
        NOW,
        origin="http://n1:9400/metrics",
        node="n1",
    )
    assert topmost_workload(pod) == above

    query = ObjectQuery(
        GroupResource.parse(resource), "ns", above.name, "gpu_utilization", EVERYTHING, EVERYTHING
    )
    (item,) = at_once(world.custom.values(query, NOW)).items
    assert (item.described.kind, item.described.api_version, item.milli) == (
        above.kind,
        above.api_version,
        60_000,
    )

    where = selector(f"workload={above.name},workload_kind={above.kind}")
    (series,) = at_once(
        world.external.values(ExternalQuery("ns", "gpu_utilization", where), NOW)
    ).items
    assert series.milli == 60_000


ALSO = {
    "the LeaderWorkerSet of a role": ("leaderworkersets.leaderworkerset.x-k8s.io", "chat-decode"),
    "the scaler of a role": (
        "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
        "chat-decode",
    ),
}


@pytest.mark.parametrize(("resource", "name"), ALSO.values(), ids=ALSO)
def test_what_scales_a_part_of_the_topmost_owner_has_values_too(resource: str, name: str) -> None:
    """An HPA scales a role of a DisaggregatedSet by its DisaggregatedSetRoleScaler."""
    _, labels, _, _ = OWNED["a role of a DisaggregatedSet"]
    role = {"disaggregatedset.x-k8s.io/role": "decode"}
    owner = Owner("apps/v1", "StatefulSet", "chat-decode-0")
    pod = make_pod("a", namespace="ns", node="n1", owner=owner, labels={**labels, **role})
    world = World(pod)
    world.scrape(
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",container="server",namespace="ns",pod="a"} 60\n',
        NOW,
        origin="http://n1:9400/metrics",
        node="n1",
    )
    query = ObjectQuery(
        GroupResource.parse(resource), "ns", name, "gpu_utilization", EVERYTHING, EVERYTHING
    )
    (item,) = at_once(world.custom.values(query, NOW)).items
    assert item.milli == 60_000
    assert topmost_workload(pod) == OWNED["a role of a DisaggregatedSet"][2]


def test_the_parts_of_a_group_are_one_object() -> None:
    """The value of a LeaderWorkerSet covers leaders and workers; that of a StatefulSet its own."""
    pods = [
        make_pod(
            name,
            namespace="ns",
            node="n1",
            owner=Owner("apps/v1", "StatefulSet", owner),
            labels={LWS: "llm"},
            uid=name,
        )
        for name, owner in (("llm-0", "llm"), ("llm-0-1", "llm-0"))
    ]
    world = World(*pods)
    rows = (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",UUID="GPU-{i}",container="server",namespace="ns",'
        f'pod="{pod.ref.name}"}} {90 * i}\n'
        for i, pod in enumerate(pods)
    )
    world.scrape("".join(rows), NOW, origin="http://n1:9400/metrics", node="n1")

    def value(resource: str, name: str) -> int:
        query = ObjectQuery(
            GroupResource.parse(resource), "ns", name, "gpu_utilization", EVERYTHING, EVERYTHING
        )
        (item,) = at_once(world.custom.values(query, NOW)).items
        return item.milli

    assert value("leaderworkersets.leaderworkerset.x-k8s.io", "llm") == 45_000
    assert value("statefulsets.apps", "llm") == 0
    assert value("statefulsets.apps", "llm-0") == 90_000

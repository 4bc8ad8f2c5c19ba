"""``gpuworkloads``: the pods of a workload together, and the HPA above it."""

from __future__ import annotations

import msgspec
import pytest

from adapter.answers.view import gpuworkloads
from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.hpas import ShownCondition, ShownHpa
from adapter.pipeline.cluster.pod import Owner, Pod
from tests.adapter.answers.view.viewer import Viewer, prepare
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
NODE = "node-1"
LABELS = {"app": "llm", "pod-template-hash": "abc"}
DEPLOYMENT = Owner("apps/v1", "ReplicaSet", "llm-abc")


def _pod(name: str, *, owner: Owner | None = DEPLOYMENT, space: str = "ml", **labels: str) -> Pod:
    own = LABELS | labels
    return make_pod(name, namespace=space, node=NODE, owner=owner, labels=own, uid=name)


def _hpa(metric: str = "gpu_utilization", kind: str = "Deployment", name: str = "llm") -> ShownHpa:
    target = {"kind": kind, "name": "llm", "apiVersion": "apps/v1"}
    wanted = {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "60"}}
    seen = {"metric": {"name": metric}, "current": {"averageValue": "87500m"}}
    active = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
    return decode(
        msgspec.json.encode(
            {
                "metadata": {"name": name, "namespace": "ml"},
                "spec": {
                    "scaleTargetRef": target,
                    "minReplicas": 1,
                    "maxReplicas": 8,
                    "metrics": [
                        {"type": "Pods", "pods": wanted},
                        {"type": "Resource", "resource": {"name": "cpu", "target": {}}},
                    ],
                },
                "status": {
                    "currentReplicas": 2,
                    "desiredReplicas": 3,
                    "currentMetrics": [{"type": ""}, {"type": "Pods", "pods": seen}],
                    "conditions": [active],
                },
            }
        )
    )


def _world(*pods: Pod) -> World:
    world = World(*(pods or (_pod("llm-abc-1"), _pod("llm-abc-2"))))
    page = row(UTIL, 90, "llm-abc-1") + row(UTIL, 50, "llm-abc-2", uuid="GPU-1")
    world.scrape(page, 100.0, node=NODE)
    return world


def test_the_pods_of_a_deployment_are_one_workload_with_its_hpa() -> None:
    viewer = Viewer(_world(), _hpa())
    assert viewer.workloads.names() == ["deployment.llm"]
    assert viewer.workloads.row("deployment.llm", 100.0) == {
        "Pods": 2,
        "Measured": 2,
        "Util": "70%",
        "Max": "90%",
        "HPA": "llm",
        "Target": "gpu_utilization 87.5/60 +1",
        "Wants": "3",
        "State": "incomplete",
        "GPUs": 2,
        "Replicas": "2 (1..8)",
        "Ready": 2,
        "Unready": 0,
        "Exist": 2,
        "Unscheduled": 0,
        "Unmeasured": 0,
    }
    workload = viewer.workloads.get("deployment.llm", 100.0)
    assert workload["metadata"]["labels"] == {"app": "llm"}
    assert workload["workload"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    assert workload["utilization"] == {"mean": 70, "max": 90}
    (hpa,) = workload["hpas"]
    assert hpa["metrics"] == [
        {
            "metric": "gpu_utilization",
            "type": "Pods",
            "target": "60",
            "current": "87500m",
            "targetValue": 60.0,
            "currentValue": 87.5,
        },
        {"metric": "cpu", "type": "Resource"},
    ]
    assert hpa["conditions"] == [
        {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
    ]
    assert viewer.workloads.fields("deployment.llm") == {"kind": "Deployment"}


def test_a_pod_names_the_hpas_that_read_one_of_its_metrics() -> None:
    gpu_pods = Viewer(_world(), _hpa(), _hpa("requests_per_second", name="b")).pods
    assert gpu_pods.get("llm-abc-1", 100.0)["hpas"] == [
        {
            "name": "llm",
            "metric": "gpu_utilization",
            "type": "Pods",
            "target": "60",
            "current": "87500m",
        }
    ]
    alias = Viewer(_world(), _hpa(UTIL.lower())).pods.get("llm-abc-1", 100.0)
    assert alias["hpas"][0]["metric"] == UTIL.lower()


def test_very_many_hpas_on_one_workload_are_counted() -> None:
    viewer = Viewer(_world(), *[_hpa(name=f"h{i:03}") for i in range(100)])
    assert viewer.workloads.row("deployment.llm", 100.0)["HPA"] == "h000 +99"
    for shelf in (viewer.workloads, viewer.pods):
        shown = shelf.get(shelf.names()[0], 100.0)
        assert (len(shown["hpas"]), shown["hpasNotShown"]) == (16, 84)


def test_a_row_shows_the_hpa_that_reads_a_metric_of_the_adapter() -> None:
    viewer = Viewer(_world(), _hpa("requests", name="a"), _hpa(name="b"))
    row = viewer.workloads.row("deployment.llm", 100.0)
    assert (row["HPA"], row["Target"]) == ("b +1", "gpu_utilization 87.5/60 +1")


def test_a_row_with_its_object_reads_the_pods_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``kubectl get gwl --sort-by`` requests it; ``prepare`` has read them in steps."""
    viewer = Viewer(_world())
    provider, key = viewer.workloads.provider, viewer.workloads.listed()[0]
    prepare(provider, [key], 100.0)
    monkeypatch.setattr(gpuworkloads, "at_once", lambda _: pytest.fail("read again"))
    assert provider.cells(key, 100.0) is not None
    assert provider.object(key, 100.0) is not None


def test_pods_without_a_value_are_counted_by_reason() -> None:
    world = _world(_pod("llm-abc-1"), _pod("llm-abc-2"), _pod("llm-abc-3"))
    world.put(make_pod("llm-abc-4", owner=DEPLOYMENT, phase="Pending", labels=LABELS))
    shelf = Viewer(world).workloads
    workload = shelf.get("deployment.llm", 100.0)
    assert (workload["pods"], workload["measured"]) == (4, 2)
    assert {reason["reason"]: reason["pods"] for reason in workload["reasons"]} == {
        "device_named_for_other_pod": 1,
        "pod_not_running": 1,
    }
    assert shelf.row("deployment.llm", 100.0)["Why-Not"] == (
        "device_named_for_other_pod,pod_not_running"
    )


def test_a_workload_without_any_value_has_no_utilization() -> None:
    world = World(make_pod("llm-abc-1", phase="Pending", owner=DEPLOYMENT, labels=LABELS))
    shelf = Viewer(world).workloads
    assert "utilization" not in shelf.get("deployment.llm", 100.0)
    assert shelf.row("deployment.llm", 100.0).keys().isdisjoint({"Util", "Max", "HPA", "Target"})


@pytest.mark.parametrize(
    ("owner", "labels", "name"),
    [
        (None, {}, "pod.p"),
        (Owner("v1", "Node", NODE), {}, "pod.p"),
        (Owner("apps/v1", "StatefulSet", "llm"), {}, "statefulset.llm"),
        (Owner("batch/v1", "Job", "train"), {}, "job.train"),
        (Owner("batch/v1", "Job", "train-29013560"), {}, "cronjob.train"),
        (Owner("ray.io/v1", "RayCluster", "ray"), {}, "raycluster.ray"),
        (
            Owner("apps/v1", "StatefulSet", "llm-0"),
            {"leaderworkerset.sigs.k8s.io/name": "llm"},
            "leaderworkerset.llm",
        ),
        (
            Owner("batch/v1", "Job", "train-workers-0"),
            {"jobset.sigs.k8s.io/jobset-name": "train"},
            "jobset.train",
        ),
    ],
)
def test_the_topmost_known_workload_is_shown(
    owner: Owner | None, labels: dict[str, str], name: str
) -> None:
    world = World(make_pod("p", owner=owner, labels=labels))
    assert Viewer(world).workloads.names() == [name]


def test_an_hpa_of_a_leader_worker_set_is_found() -> None:
    owner = Owner("apps/v1", "StatefulSet", "llm-0")
    world = World(make_pod("p", owner=owner, labels={"leaderworkerset.sigs.k8s.io/name": "llm"}))
    text = msgspec.json.encode(
        {
            "metadata": {"name": "a", "namespace": "ml"},
            "spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {
                    "kind": "LeaderWorkerSet",
                    "name": "llm",
                    "apiVersion": "leaderworkerset.x-k8s.io/v1",
                },
            },
        }
    )
    shelf = Viewer(world, decode(text)).workloads
    assert shelf.row("leaderworkerset.llm", 1.0)["HPA"] == "a"


def test_two_kinds_of_one_name_stay_apart() -> None:
    owners = [Owner("batch/v1", "Job", "a"), Owner("batch.volcano.sh/v1alpha1", "Job", "a")]
    world = World(*[make_pod(f"p{i}", owner=owner) for i, owner in enumerate(owners)])
    shelf = Viewer(world).workloads
    assert shelf.names() == ["job.batch.a", "job.batch.volcano.sh.a"]
    versions = [job["workload"]["apiVersion"] for job in shelf.every(1.0)]
    assert versions == ["batch/v1", "batch.volcano.sh/v1alpha1"]


def test_workloads_come_and_go_with_their_pods() -> None:
    world = World(_pod("llm-abc-1"), _pod("other", owner=None, space="b"))
    shelf = Viewer(world).workloads
    assert [tuple(key) for key in shelf.listed()] == [("b", "pod.other"), ("ml", "deployment.llm")]
    assert shelf.names("ml") == ["deployment.llm"]
    world.put(_pod("llm-abc-2"))
    assert shelf.get("deployment.llm", 1.0)["pods"] == 2
    world.remove("llm-abc-1")
    world.remove("llm-abc-2")
    assert shelf.find("deployment.llm", 1.0) is None
    assert shelf.names() == ["pod.other"]


def test_a_large_workload_is_summed_in_steps() -> None:
    world = World(*[_pod(f"llm-abc-{i}") for i in range(200)])
    shelf = Viewer(world).workloads
    keys = shelf.listed()
    assert len(list(shelf.provider.prepare(keys, 1.0))) > 200 / 16
    prepare(shelf.provider, keys, 1.0)
    cells = shelf.provider.cells(keys[0], 1.0)
    assert cells is not None
    assert cells[0] == 200


def test_more_workloads_than_sums_are_kept_are_all_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpuworkloads, "_KEPT_BYTES", 1 << 20)
    world = World(*[_pod(f"bare-{i}", owner=None) for i in range(600)])
    shelf = Viewer(world).workloads
    keys = shelf.listed()
    prepare(shelf.provider, keys, 1.0)
    rows = [shelf.provider.cells(key, 1.0) for key in keys]
    assert [row[0] for row in rows if row is not None] == [1] * 600


def test_no_step_of_a_list_names_all_workloads() -> None:
    pods = [_pod(f"pod-{number}", owner=None) for number in range(1_000)]
    work = Viewer(_world(*pods)).workloads.provider.keys(None)
    steps = sum(1 for _ in work)
    # 64 at a time are grouped, named, made unique and put in order.
    assert steps >= 4 * len(pods) // 64


def test_an_hpa_that_cannot_decide_wants_nothing() -> None:
    inactive = ShownCondition("ScalingActive", "False", "FailedGetPodsMetric", "no metrics")
    hpa = _hpa()._replace(desired=0, conditions=(inactive,))
    assert "Wants" not in Viewer(_world(), hpa).workloads.row("deployment.llm", 100.0)


def test_a_pod_shows_why_it_lacks_the_server_metric_that_its_hpa_reads() -> None:
    gpu_pod = Viewer(_world(), _hpa("inference_requests_waiting")).pods.get("llm-abc-1", 100.0)
    assert gpu_pod["measured"]
    reasons = {row["reason"]: row["metrics"] for row in gpu_pod["absent"]}
    assert reasons["server_not_scraped"] == ["inference_requests_waiting"]


def test_a_workload_whose_pods_have_the_same_labels_impairs_the_hpa() -> None:
    other = Owner("apps/v1", "ReplicaSet", "embed-def")
    twin = _pod("embed-def-1", owner=other, **{"pod-template-hash": "def"})
    viewer = Viewer(_world(_pod("llm-abc-1"), _pod("llm-abc-2"), twin), _hpa())
    row = viewer.workloads.row("deployment.llm", 100.0)
    assert (row["Foreign"], row["State"]) == ("deployment.embed", "impaired")
    apart = _pod("embed-def-1", owner=other, **{"pod-template-hash": "def", "app": "embed"})
    viewer = Viewer(_world(_pod("llm-abc-1"), _pod("llm-abc-2"), apart), _hpa())
    assert "Foreign" not in viewer.workloads.row("deployment.llm", 100.0)


@pytest.mark.parametrize(("born", "trouble"), [(4000.0, "UnexpectedAdmissionError"), (100.0, None)])
def test_pods_that_the_kubelet_rejects_say_why_others_are_missing(
    born: float, trouble: str | None
) -> None:
    """As `explain` says it, from the first rejected pod on; an old one says nothing."""
    failed = _pod("llm-abc-3").replace(
        phase="Failed", ready=False, trouble="UnexpectedAdmissionError", born=born
    )
    viewer = Viewer(_world(_pod("llm-abc-1"), _pod("llm-abc-2"), failed), _hpa())
    cells = viewer.workloads.row("deployment.llm", 4100.0)
    assert (cells["Pods"], cells.get("Trouble")) == (2, trouble)


def test_a_reason_of_several_pods_gives_the_device_of_one_as_an_example() -> None:
    (reason,) = Viewer(_world()).workloads.get("deployment.llm", 180.0)["reasons"]
    assert (reason["reason"], reason["pods"]) == ("stale", 2)
    limit = "The newest value is older than the age limit"
    assert reason["message"] == f"{limit}: for example of llm-abc-1: GPU-0"

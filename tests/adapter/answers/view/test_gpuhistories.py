"""``gpuhistories``: the minutes of HPAs and workloads, as they were noted."""

from __future__ import annotations

import msgspec
import pytest

from adapter.answers.view.minutes import MinuteRecorder
from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.pod import Owner
from apiservice.runtime.steps import at_once
from apiservice.view.resource import Key
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
START = 30_000_000 * 60.0


def _hpa(
    value: str = "87500m",
    size: int = 2,
    *,
    name: str = "llm",
    namespace: str = "ml",
    metric: str = "gpu_utilization",
    created: str = "",
) -> ShownHpa:
    target = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    wanted = {
        "metric": {"name": metric},
        "target": {"type": "AverageValue", "averageValue": "70"},
    }
    seen = {"metric": {"name": metric}, "current": {"averageValue": value}}
    manifest = {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created or None},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "Pods", "pods": wanted}],
        },
        "status": {
            "currentReplicas": size,
            "desiredReplicas": size + 1,
            "currentMetrics": [{"type": "Pods", "pods": seen}],
            "conditions": [
                {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
            ],
        },
    }
    return decode(msgspec.json.encode(manifest))


class _Feed:
    """A source that was heard of a while ago."""

    last_error = ""
    rejected = 0
    silent = 0.0

    def age(self, _: float) -> float:
        return self.silent


class _Past:
    def __init__(self, *hpas: ShownHpa) -> None:
        owner = Owner("apps/v1", "ReplicaSet", "llm-abc")
        labels = {"app": "llm", "pod-template-hash": "abc"}
        self.world = World(make_pod("llm-abc-1", node="n1", owner=owner, labels=labels))
        self.viewer = Viewer(self.world, *hpas)
        self.feed = _Feed()
        self.world.index.fed_by(self.feed)
        self.viewer.hpas.fed_by(self.feed)
        self.recorder = MinuteRecorder(
            self.viewer.ring,
            self.world.store,
            self.world.index,
            self.viewer.hpas,
            self.viewer.of_workloads,
            self.viewer.of_pools,
            stale_after=60.0,
        )

    def note(self, minute: int, busy: float | None = 80) -> None:
        now = START + minute * 60
        if busy is not None:
            self.world.scrape(row(UTIL, busy, "llm-abc-1"), now, node="n1")
        at_once(self.recorder.note(now))


def test_an_hpa_has_its_value_target_replicas_and_state() -> None:
    past = _Past(_hpa("87500m"))
    past.note(0)
    past.viewer.hpas.replace([_hpa("40", size=3)])
    past.note(2)
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START + 130)
    assert history["of"] == "HorizontalPodAutoscaler"
    assert history["metric"] == "gpu_utilization"
    assert (history["start"], history["intervalSeconds"]) == ("2027-01-15T08:00:00Z", 60)
    assert history["value"] == [87.5, None, 40]
    assert history["target"] == [70, None, 70]
    assert history["current"] == [2, None, 3]
    assert history["desired"] == [3, None, 4]
    assert [state is None for state in history["state"]] == [False, True, False]


def test_the_state_is_the_one_that_gpuworkloads_shows() -> None:
    past = _Past(_hpa())
    past.note(0)
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START)
    assert history["state"] == [past.viewer.workloads.row("deployment.llm", START)["State"]]


def test_an_hpa_of_other_pods_is_noted_too() -> None:
    past = _Past(_hpa(name="web"))
    past.note(0)
    history = past.viewer.histories.get("horizontalpodautoscaler.web", START)
    assert (history["value"], history["current"]) == ([87.5], [2])


def test_a_workload_has_its_utilization_and_pods() -> None:
    past = _Past()
    past.note(0, 81.4)
    past.note(1, None)
    now = START + 60 + 600
    at_once(past.recorder.note(now))
    history = past.viewer.histories.get("deployment.llm", now)
    assert history["of"] == "Deployment"
    assert history["utilization"][0] == 81  # two digits
    assert history["utilization"][-1] is None  # the exporter is silent: not 0
    assert history["pods"][-1] == 1
    assert history["measured"][-1] == 0


@pytest.mark.parametrize("silent", [61.0, float("inf")])
def test_a_minute_without_word_from_the_api_server_is_a_gap(silent: float) -> None:
    past = _Past(_hpa())
    past.note(0)
    past.feed.silent = silent
    past.note(1)
    past.feed.silent = 0.0
    past.note(2)
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START + 120)
    assert history["current"] == [2, None, 2]


def test_points_of_an_earlier_hpa_of_this_name_are_left_out() -> None:
    past = _Past(_hpa())
    for minute in range(5):
        past.note(minute)
    past.viewer.hpas.replace([_hpa(created="2027-01-15T08:03:10Z")])
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START + 300)
    assert (history["start"], history["current"]) == ("2027-01-15T08:03:00Z", [2, 2])
    past.viewer.hpas.replace([])
    assert past.viewer.histories.find("horizontalpodautoscaler.llm", START + 300) is None


def test_a_list_has_an_hour_and_one_object_all() -> None:
    past = _Past(_hpa())
    for minute in range(100):
        past.note(minute)
    now = START + 100 * 60
    assert past.viewer.histories.names() == ["deployment.llm", "horizontalpodautoscaler.llm"]
    key = past.viewer.histories.listed()[1]
    assert len(past.viewer.histories.get(key.name, now)["value"]) == 60
    whole = past.viewer.of_histories.whole(key, now)
    assert whole is not None
    assert len(whole["value"]) == 100


def test_an_object_without_points_says_what_it_is_about_and_no_more() -> None:
    past = _Past(_hpa())
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START)
    assert history.keys() == {"metadata", "of"}


def test_the_table_has_the_last_hour_in_short() -> None:
    past = _Past(_hpa())
    past.note(0)
    past.viewer.hpas.replace([_hpa("40", size=3)])
    past.note(2)
    assert past.viewer.histories.row("horizontalpodautoscaler.llm", START + 120) == {
        "Metric": "gpu_utilization",
        "Points": 2,
        "Least": 40,
        "Most": 87.5,
        "Last": 40,
        "Replicas": "2..3",
        "State": "scales out",
        "Since": "2m",
    }


def test_histories_are_selected_by_what_they_are_of() -> None:
    past = _Past(_hpa())
    past.note(0)
    kinds = [past.viewer.histories.fields(name)["of"] for name in past.viewer.histories.names()]
    assert kinds == ["Deployment", "HorizontalPodAutoscaler"]


def test_where_there_is_no_room_for_all_hpas_are_kept() -> None:
    past = _Past(_hpa())
    past.viewer.ring._most = 6500  # room for an HPA and a pool
    past.note(0)
    assert past.viewer.ring.left_out == 1
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START)
    assert history["current"] == [2]
    assert past.viewer.histories.get("deployment.llm", START).keys() == {"metadata", "of"}


def test_hpas_without_gpus_take_no_room_of_those_with_gpus_and_of_workloads() -> None:
    """Before, all HPAs of the cluster came first: 2,600 of web servers left nothing else."""
    of_web = [_hpa(name=f"web-{number}", metric="requests") for number in range(20)]
    past = _Past(*of_web, _hpa(), _hpa(name="model", namespace="other"))
    past.viewer.ring._most = 2 * 5700  # room for a pool, two HPAs and a workload
    past.note(0)
    histories = past.viewer.histories
    assert past.viewer.ring.left_out == 20
    assert histories.get("horizontalpodautoscaler.llm", START)["current"] == [2]
    assert histories.get("deployment.llm", START)["pods"] == [1]
    assert histories.get("horizontalpodautoscaler.model", START, "other")["current"] == [2]
    past.viewer.ring._most = 8 << 20
    past.note(1)
    assert past.viewer.ring.left_out == 0
    assert histories.get("horizontalpodautoscaler.web-19", START + 60)["current"] == [2]


def test_an_hpa_of_a_known_workload_comes_first_with_any_metric() -> None:
    of_web = [_hpa(name=f"web-{number}", metric="requests") for number in range(20)]
    past = _Past(*of_web, _hpa(metric="requests"))
    past.viewer.ring._most = 6500
    past.note(0)
    history = past.viewer.histories.get("horizontalpodautoscaler.llm", START)
    assert history["current"] == [2]


def test_the_hpas_of_one_namespace_take_no_room_of_another() -> None:
    many = [_hpa(name=f"m-{number}", namespace="many") for number in range(20)]
    past = _Past(*many, _hpa(name="one", namespace="few"))
    past.viewer.ring._most = 2 * (1360 + 3 * 1600)
    past.note(0)
    kept = [key for key in past.viewer.histories.listed() if _has_points(past, key)]
    assert [(key.namespace, key.name.partition(".")[2]) for key in kept] == [
        ("few", "one"),
        ("many", "m-0"),
        ("many", "m-1"),
    ]


def _has_points(past: _Past, key: Key) -> bool:
    history = past.viewer.of_histories.whole(key, START)
    assert history is not None
    return "start" in history

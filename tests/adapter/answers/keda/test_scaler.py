"""The answers to a trigger about its pods."""

from __future__ import annotations

import pytest

from adapter.answers.keda.errors import (
    BadTrigger,
    NoReadings,
    NotReady,
    ScalerError,
    TooManyStreams,
)
from adapter.answers.keda.scaledobjects import ScaledObject, decode
from adapter.answers.keda.trigger import Ref
from adapter.pipeline.attribution.unreadseries import NO_VALUE
from adapter.pipeline.attribution.values import NOT_SELECTED
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from adapter.pipeline.devices.assignment import Mismatch
from apiservice.kube.reflector import EventType
from apiservice.provider import GroupResource
from tests.adapter.answers.keda.cluster import (
    NOT_NAMED,
    PATIENCE,
    STALE,
    STALE_AFTER,
    Cluster,
    named,
    trigger,
)

AGGREGATES = {"sum": 120.0, "mean": 40.0, "max": 60.0, "p95": 60.0}


@pytest.mark.parametrize("name", AGGREGATES)
def test_values_of_every_pod_are_aggregated_and_nothing_else(name: str) -> None:
    cluster = Cluster()
    for pod, value in {"a": 20.0, "b": 60.0, "c": 40.0}.items():
        cluster.put(pod, value)
    assert cluster.value(aggregate=name) == AGGREGATES[name]


def test_a_sum_is_the_default() -> None:
    cluster = Cluster()
    cluster.put("a", 20.0)
    cluster.put("b", 30.0)
    assert cluster.value() == 50.0


def test_a_placeholder_dilutes_no_mean() -> None:
    cluster = Cluster()
    cluster.put("a", 60.0)
    cluster.put("hold", 0.0, placeholder=True)
    assert cluster.value(aggregate="mean") == 60.0


def test_no_pods_are_zero_and_inactive_while_the_pods_are_in_sync() -> None:
    cluster = Cluster()
    assert (cluster.value(), cluster.active()) == (0.0, False)


def test_finished_and_deleted_pods_do_not_count() -> None:
    cluster = Cluster()
    cluster.put("a", Mismatch.FINISHED, phase="Succeeded")
    cluster.put("b", 50.0)
    pod = cluster.index.get("ml", "b")
    assert pod is not None
    cluster.index.apply(EventType.MODIFIED, pod.replace(deleting=True))
    assert (cluster.value(), cluster.active()) == (0.0, False)


def test_an_empty_list_of_pods_is_not_trusted_after_a_long_silence() -> None:
    cluster = Cluster()
    cluster.feed.silence = STALE_AFTER + 1
    with pytest.raises(NotReady, match="silent about pods for too long: the watch was cut"):
        cluster.value()


def test_before_the_pods_are_listed_there_is_no_answer() -> None:
    cluster = Cluster()
    cluster.index.synced = False
    for ask in (cluster.value, cluster.active):
        with pytest.raises(NotReady, match="the pods have not been listed yet"):
            ask()


def test_the_target_is_known_without_data() -> None:
    cluster = Cluster()
    cluster.index.synced = False
    spec = cluster.scaler.spec(trigger(metric="DCGM_FI_DEV_GPU_UTIL", target="500m"))
    assert spec == ("dcgm_fi_dev_gpu_util", 0.5)


def test_a_missing_reading_of_any_ready_pod_is_an_error_that_names_pods_and_reasons() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c", "d", "e"):
        cluster.put(name, 50.0)
    assert cluster.value() == 250.0
    cluster.put("e", STALE)
    for ask in (cluster.value, cluster.active):
        with pytest.raises(NoReadings, match=r"^gpu_utilization: 1 of 5 pods .*: e \(stale\)$"):
            ask()
    for name in ("b", "c", "d"):
        cluster.put(name, STALE)
    words = (
        r"^gpu_utilization: 4 of 5 pods have no value: "
        r"b \(stale\), c \(stale\), d \(stale\) and 1 more$"
    )
    with pytest.raises(NoReadings, match=words):
        cluster.value()


@pytest.mark.parametrize("name", AGGREGATES)
def test_missing_readings_are_never_zero(name: str) -> None:
    cluster = Cluster()
    cluster.put("a", STALE)
    with pytest.raises(NoReadings, match=r"1 of 1 pods have no value: a \(stale\)"):
        cluster.value(aggregate=name)
    cluster.put("b", 30.0)
    with pytest.raises(NoReadings, match=r"1 of 2 pods have no value: a \(stale\)"):
        cluster.value(aggregate=name)


def test_a_pod_that_starts_counts_as_the_hpa_would_count_it() -> None:
    cluster = Cluster()
    cluster.put("a", 50.0)
    cluster.put("b", 30.0)
    cluster.put("c", NOT_NAMED)
    assert cluster.value() == 50.0 + 30.0 + 70.0, "as if at the target when scaling in"
    cluster.put("a", 190.0)
    assert cluster.value() == 190.0 + 30.0, "as if at 0 when scaling out"


def test_a_new_pod_without_samples_is_not_a_failure_until_it_could_have_some() -> None:
    cluster = Cluster()
    cluster.put("a", 90.0)
    for name in ("b", "c", "d"):
        cluster.put(name, NOT_NAMED, ready_since=1000.0)
    assert cluster.value(1000.0) == 4 * 70.0, "no change while they start"
    assert cluster.value(1000.0 + PATIENCE - 1) == 4 * 70.0
    with pytest.raises(NoReadings, match=r"3 of 4 pods have no value: b \(pod_not_named\)"):
        cluster.value(1000.0 + PATIENCE)


def test_a_pod_that_had_a_value_for_hours_never_counts_as_starting_in_an_outage() -> None:
    """Its exporter falls silent: its last row grows too old, and is forgotten after that."""
    cluster, fell_silent = Cluster(), 20_000.0
    for name, value in {"a": 10.0, "b": 10.0, "c": 60.0}.items():
        cluster.put(name, value, ready_since=1000.0)
    assert cluster.value(fell_silent, target="20") == 80.0
    for after, reason in ((61.0, STALE), (130.0, NOT_NAMED), (200.0, NO_VALUE), (700.0, NOT_NAMED)):
        cluster.readings["c"] = reason
        with pytest.raises(NoReadings, match=rf"1 of 3 pods have no value: c \({reason}\)"):
            cluster.value(fell_silent + after, target="20")


def test_a_replica_that_starts_in_an_outage_does_not_take_old_pods_for_new_ones() -> None:
    cluster = Cluster()
    cluster.put("a", 10.0, ready_since=1000.0)
    cluster.put("b", NOT_NAMED, ready_since=1000.0)
    with pytest.raises(NoReadings, match=r"b \(pod_not_named\)"):
        cluster.value(20_000.0)


READY_TIMES: dict[str, tuple[dict[str, float], bool]] = {
    "ready just now": ({"ready_since": 9990.0}, True),
    "by a node's clock that is a little ahead": ({"ready_since": 10_020.0}, True),
    "by a clock that is an hour ahead": ({"ready_since": 13_600.0}, False),
    "ready for an hour, created just now": ({"ready_since": 6400.0, "born": 9990.0}, False),
    "created just now, ready at an unknown time": ({"ready_since": 0.0, "born": 9990.0}, True),
    "created an hour ago, ready at an unknown time": ({"ready_since": 0.0, "born": 6400.0}, False),
    "no time at all": ({"ready_since": 0.0}, False),
}


@pytest.mark.parametrize("name", READY_TIMES)
def test_a_pod_without_rows_starts_only_if_its_ready_condition_says_so(name: str) -> None:
    times, starts = READY_TIMES[name]
    cluster = Cluster()
    cluster.put("a", 190.0)
    cluster.put("b", NOT_NAMED, **times)
    if starts:
        assert cluster.value(10_000.0) == 190.0
        return
    with pytest.raises(NoReadings, match=r"b \(pod_not_named\)"):
        cluster.value(10_000.0)


def test_unready_pods_never_make_the_answer_fail() -> None:
    cluster = Cluster()
    cluster.put("a", 20.0)
    for name in ("b", "c", "d"):
        cluster.put(name, Mismatch.NOT_READY, ready=False)
    assert cluster.value() == 20.0 + 3 * 70.0
    assert cluster.value(1e9) == 20.0 + 3 * 70.0


def test_while_no_pod_is_ready_nothing_is_known() -> None:
    cluster = Cluster()
    cluster.put("a", Mismatch.NOT_RUNNING, phase="Pending", ready=False)
    cluster.put("b", Mismatch.NOT_READY, ready=False)
    with pytest.raises(NoReadings, match="none of 2 pods is ready yet"):
        cluster.value()


def test_a_pod_that_was_not_measured_yet_is_named_so() -> None:
    cluster = Cluster()
    cluster.put("a", NO_VALUE)
    with pytest.raises(NoReadings, match="none of 1 pods has been measured yet"):
        cluster.value()


def test_pods_without_a_gpu_are_left_out_and_only_they_are_an_error() -> None:
    cluster = Cluster()
    cluster.put("front", NOT_NAMED, gpus={})
    with pytest.raises(NoReadings, match="none of 1 pods holds a GPU by its spec; correct podSel"):
        cluster.value()
    cluster.put("a", 30.0)
    assert cluster.value() == 30.0


def test_pods_whose_devices_the_metric_selector_does_not_match_are_left_out() -> None:
    cluster = Cluster()
    cluster.put("a", 30.0)
    cluster.put("b", NOT_SELECTED)
    assert cluster.value(metricSelector="model=T4") == 30.0
    assert set(cluster.asked) == {("gpu_utilization", "model=T4")}
    cluster.put("a", NOT_SELECTED)
    with pytest.raises(NoReadings, match="no device of 2 pods is one that metricSelector selects"):
        cluster.value(metricSelector="model=T4")


def test_an_answer_is_reused_until_a_value_a_pod_or_its_age_changes() -> None:
    cluster = Cluster()
    cluster.put("a", 30.0)
    assert (cluster.value(1.0), cluster.active(1.0), cluster.value(2.0)) == (30.0, True, 30.0)
    assert len(cluster.asked) == 1
    cluster.readings["a"] = 40.0
    assert cluster.value(2.0) == 40.0
    cluster.put("b", 10.0)
    assert cluster.value(2.0) == 50.0
    asked = len(cluster.asked)
    cluster.value(2.0 + PATIENCE)
    assert len(cluster.asked) == asked + 2, "what was known then is too old"


def test_an_answer_is_held_although_values_change_but_not_past_a_change_of_pods() -> None:
    cluster = Cluster(hold=1.0)
    cluster.put("a", 30.0)
    assert cluster.value(10.0) == 30.0
    cluster.readings["a"] = 40.0
    assert cluster.value(10.9) == 30.0
    assert cluster.answer(trigger(), 10.9, newest=True).number.exact == 40.0
    cluster.readings["a"] = 50.0
    assert cluster.value(11.8) == 40.0
    assert cluster.value(11.9) == 50.0
    cluster.put("b", 5.0)
    assert cluster.value(11.9) == 55.0
    cluster.remove("a")
    assert cluster.value(11.9) == 5.0


def test_an_answer_is_never_held_past_the_age_of_a_value() -> None:
    cluster = Cluster(hold=1000.0)
    cluster.put("a", 30.0)
    assert cluster.value(1.0) == 30.0
    cluster.readings["a"] = STALE
    assert cluster.value(1.0 + PATIENCE - 0.1) == 30.0
    with pytest.raises(NoReadings, match=r"a \(stale\)"):
        cluster.value(1.0 + PATIENCE)


def test_a_clock_that_is_set_back_ends_an_answer() -> None:
    cluster = Cluster(hold=1000.0)
    cluster.put("a", 30.0)
    assert cluster.value(1000.0) == 30.0
    cluster.readings["a"] = 40.0
    assert cluster.value(500.0) == 40.0


def test_one_metadata_in_two_namespaces_is_two_questions() -> None:
    cluster = Cluster()
    cluster.put("a", 30.0)
    assert cluster.value() == 30.0
    assert cluster.answer(trigger()._replace(namespace="other"), 0.0).number.exact == 0.0


ACTIVITY: dict[str, tuple[dict[str, float | str], dict[str, str], bool]] = {
    "idle": ({"a": 0.0, "b": 0.0}, {}, False),
    "any work": ({"a": 0.5, "b": 0.0}, {}, True),
    "at activation": ({"a": 5.0}, {"activation": "5"}, False),
    "above activation": ({"a": 5.1}, {"activation": "5"}, True),
    "a mean below activation": (
        {"a": 8.0, "b": 0.0},
        {"activation": "5", "aggregate": "mean"},
        False,
    ),
    "idle, and one that starts and may be busy": ({"a": 0.0, "b": NOT_NAMED}, {}, True),
    "busy, with any state of the starting one": ({"a": 9.0, "b": NOT_NAMED}, {}, True),
}


@pytest.mark.parametrize("name", ACTIVITY)
def test_activity_is_what_was_measured_above_activation(name: str) -> None:
    pods, metadata, expected = ACTIVITY[name]
    cluster = Cluster()
    for pod, known in pods.items():
        cluster.put(pod, known)
    assert cluster.active(0.0, **metadata) is expected


def test_an_unready_pod_does_not_keep_an_idle_workload_active() -> None:
    cluster = Cluster()
    cluster.put("a", 0.0)
    cluster.put("b", Mismatch.NOT_READY, ready=False)
    assert cluster.active() is False


def test_only_pods_of_the_scaled_objects_own_namespace_are_asked() -> None:
    cluster = Cluster()
    cluster.put("a", 30.0)
    elsewhere = Ref("other", "so", trigger().metadata)
    assert cluster.answer(elsewhere, 0.0).number.exact == 0.0


def test_a_call_without_a_namespace_is_refused() -> None:
    with pytest.raises(BadTrigger, match="namespace is missing"):
        Cluster().scaler.spec(Ref("", "so", trigger().metadata))


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_a_name_that_no_object_has_is_refused(key: str) -> None:
    longest = named(trigger(), key, "x" * 253)
    assert Cluster().scaler.spec(longest).target == 70.0
    with pytest.raises(BadTrigger, match="more than 253 characters"):
        Cluster().scaler.spec(named(trigger(), key, "x" * 254))


def target(kind: str = "deployments", group: str = "apps") -> ScaledObject:
    return ScaledObject("ml", "so", Workload(GroupResource(kind, group), "inf"))


def test_without_a_selector_the_scaled_objects_own_pods_are_meant() -> None:
    cluster = Cluster(watched=True)
    assert cluster.targets is not None
    cluster.put("a", 30.0)
    cluster.targets.replace([target()])
    assert cluster.value(podSelector="") == 30.0
    cluster.remove("a")
    assert cluster.value(podSelector="") == 0.0


def test_a_scaled_object_that_was_not_seen_yet_is_nothing_to_answer_about() -> None:
    cluster = Cluster(watched=True)
    assert cluster.targets is not None
    with pytest.raises(NotReady, match="ScaledObjects could not be read"):
        cluster.value(podSelector="")
    cluster.targets.replace([])
    with pytest.raises(NotReady, match="ScaledObject ml/so has not been seen yet"):
        cluster.value(podSelector="")


def test_without_a_selector_and_the_right_to_see_targets_the_fix_is_named() -> None:
    with pytest.raises(BadTrigger, match=r"podSelector: is missing.*set keda\.scaled_objects"):
        Cluster().value(podSelector="")


def test_no_pods_of_a_kind_that_pods_do_not_name_are_not_taken_for_zero() -> None:
    cluster = Cluster(watched=True)
    assert cluster.targets is not None
    cluster.targets.replace([target("leaderworkersets", "leaderworkerset.x-k8s.io")])
    with pytest.raises(BadTrigger, match=r"pods of leaderworkersets.*do not name their owner"):
        cluster.value(podSelector="")


def test_every_failure_is_a_scaler_error() -> None:
    assert {BadTrigger, NoReadings, NotReady, TooManyStreams} == set(ScalerError.__subclasses__())


MANIFESTS = {
    "name alone": (b'{"name":"inf"}', DEPLOYMENTS),
    "kind and version": (
        b'{"name":"inf","kind":"StatefulSet","apiVersion":"apps/v1"}',
        GroupResource("statefulsets", "apps"),
    ),
    "a custom kind": (
        b'{"name":"inf","kind":"Rollout","apiVersion":"argoproj.io/v1alpha1"}',
        GroupResource("rollouts", "argoproj.io"),
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_scaled_objects_target_is_read_with_kedas_defaults(name: str) -> None:
    reference, resource = MANIFESTS[name]
    raw = b'{"metadata":{"name":"so","namespace":"ml"},"spec":{"scaleTargetRef":%s}}' % reference
    assert decode(raw) == ScaledObject("ml", "so", Workload(resource, "inf"))

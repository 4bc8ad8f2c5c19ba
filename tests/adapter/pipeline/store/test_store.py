"""The store over time: which values are served, dropped, counted and cached."""

from __future__ import annotations

import math
import sys

import pytest

from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.samples import Sample, ScrapeResult, Sink
from apiservice.labels.selector import EVERYTHING
from tests.adapter.world import World, make_pod, reading, row, said

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
TARGET = 'instance="10.0.0.7:9400",job="dcgm-exporter",service="dcgm-exporter"'


def test_an_unknown_exporter_can_be_dropped() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    sink: Sink = world.store
    sink.forget("never seen")
    assert world.value("p", "gpu_utilization", 100.0) == 50.0


def test_the_default_age_limit_is_two_collections_and_a_scrape() -> None:
    assert TelemetryOptions().oldest == 65.0
    assert TelemetryOptions(age_limit=10.0).oldest == 10.0


def test_a_reading_is_served_until_the_age_limit() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    assert world.value("p", UTIL, 164.9) == 50.0
    assert world.value("p", UTIL, 165.0) == "stale"


def test_samples_of_a_dropped_exporter_are_kept_until_the_age_limit() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    world.store.forget("http://exporter")
    world.scrape(row(UTIL, 50, uuid="GPU-9"), 150.0, origin="http://other")
    assert world.value("p", UTIL, 150.0) == 50.0
    world.scrape(row(UTIL, 50, uuid="GPU-9"), 166.0, origin="http://other")
    assert world.value("p", UTIL, 166.0) == "pod_not_named"


def test_a_silent_exporter_is_dropped_eventually() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    world.scrape(row(UTIL, 50, uuid="GPU-9"), 600.0, origin="http://other")
    assert world.value("p", UTIL, 600.0) == "stale"
    world.scrape(row(UTIL, 50, uuid="GPU-9"), 701.0, origin="http://other")
    assert world.value("p", UTIL, 701.0) == "pod_not_named"
    assert list(world.store.snapshot.states) == ["http://other"]


def test_ages_are_those_of_the_youngest_and_the_oldest_scrape_result() -> None:
    world = World(make_pod("p"))
    for origin, time in (("http://a", 100.0), ("http://b", 103.0), ("http://a", 110.0)):
        world.scrape(row(UTIL, 50, "p"), time, origin=origin)
    assert world.store.ages(111.0) == (1.0, 8.0)
    assert (world.store.count_silent(111.0), world.store.count_silent(169.0)) == (0, 1)


def test_device_series_are_counted_while_exporters_come_and_go() -> None:
    world = World(make_pod("p"))
    devices = [row(UTIL, 50, uuid=f"GPU-{number}") for number in range(3)]
    world.scrape("".join(devices), 100.0)
    world.scrape(devices[0], 101.0, origin="http://other")
    assert world.store.size.all_series == 4
    world.scrape(devices[0], 800.0)
    assert world.store.size.all_series == len(
        world.store.snapshot.states["http://exporter"].devices
    )


def test_a_dropped_exporter_expires_at_the_age_limit_beside_another() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, uuid="GPU-1"), 100.0, origin="http://silent")
    world.scrape(row(UTIL, 50, "p"), 101.0, origin="http://gone")
    world.store.forget("http://gone")
    world.scrape(row(UTIL, 50, uuid="GPU-9"), 167.0, origin="http://other")
    assert list(world.store.snapshot.states) == ["http://silent", "http://other"]


def test_changing_labels_do_not_remove_a_value() -> None:
    """dcgm-exporter#428."""
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    world.scrape(row(UTIL, 50), 105.0)
    assert world.value("p", UTIL, 105.0) == 50.0
    assert world.value("p", UTIL, 165.0) == "stale"


def test_a_reassigned_device_leaves_the_first_pod() -> None:
    world = World(make_pod("p"), make_pod("q"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    world.scrape(row(UTIL, 70, "q"), 105.0)
    assert world.value("p", UTIL, 105.0) == "pod_not_named"
    assert world.value("q", UTIL, 105.0) == 70.0


def test_a_sample_that_is_missing_once_keeps_the_last_value() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p") + row(ENGINE, 0.4, "p"), 100.0)
    world.scrape(row(ENGINE, 0.4, "p"), 105.0)
    assert world.value("p", "gpu_utilization", 105.0) == 50.0


def test_groups_of_one_exporter_may_arrive_in_separate_results() -> None:
    world = World(make_pod("p"))
    for time in (100.0, 115.0):
        world.scrape(row(UTIL, 50, "p"), time)
        world.scrape(row("DCGM_FI_DEV_FB_USED", 7, "p"), time)
    assert world.value("p", UTIL, 115.0) == 50.0
    assert world.value("p", "DCGM_FI_DEV_FB_USED", 115.0) == 7.0


def test_several_samples_of_a_series_in_one_result_are_a_history() -> None:
    world = World(make_pod("p"))
    (sample,) = parse(row(UTIL, 0, "p").encode(), time=0).samples
    rows = [sample._replace(value=float(v), time=t) for v, t in ((10, 85.0), (30, 100.0))]
    world.store.ingest(ScrapeResult("prometheus", None, rows, 101.0))
    world.store.ingest(ScrapeResult("prometheus", None, rows, 106.0))
    answer = reading(world.read("p", UTIL, 106.0))
    assert (answer.value, answer.time) == (20.0, 100.0)


def test_an_old_timestamp_of_the_exporter_makes_a_sample_stale() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, "50 30000", "p"), 100.0)
    assert world.value("p", UTIL, 100.0) == "stale"
    assert world.count("stale_sample") == 1


def test_a_timestamp_of_the_future_is_taken_as_now_and_counted() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, "50 900000", "p"), 100.0)
    assert reading(world.read("p", UTIL, 100.0)).time == 100.0
    assert world.count("future_timestamp") == 1


REJECTS = {
    "sentinel": row(UTIL, 2147483632, "p"),
    "out_of_range": row(UTIL, 808334905, "p"),
    "not_finite": row(UTIL, "NaN", "p"),
    "ambiguous_scale": row(f"{UTIL}_RATIO", 1, "p"),
}


@pytest.mark.parametrize(("reason", "page"), REJECTS.items())
def test_every_rejected_number_is_counted_with_its_device(reason: str, page: str) -> None:
    world = World(make_pod("p"))
    world.scrape(page, 100.0)
    world.scrape(page, 105.0)
    assert world.count(reason) == 2
    ((reject, seen),) = world.store.rejects.recent.items()
    assert (reject.reason, reject.device, seen.count, seen.time) == (reason, "GPU-0", 2, 105.0)


REFUSALS = {
    "unknown_pod": row(UTIL, 5, "ghost"),
    "no_gpu_in_spec": row(UTIL, 5, "cpu"),
    "finished_pod": row(UTIL, 5, "done"),
    "wrong_node": row(UTIL, 5, "far"),
    "pod_uid_mismatch": row(UTIL, 5, "p", more='pod_uid="other"'),
    "self_attribution": row(UTIL, 5, "dcgm-exporter-x", more=TARGET),
    "duplicate_series": row(UTIL, 5, "p") + row(UTIL, 6, "p"),
    "invalid_on_mig": row(UTIL, 5, "p", more='GPU_I_ID="7"'),
    "no_device": f'{UTIL}{{pod="p",namespace="ml"}} 5\n',
    "bad_value": row(UTIL, "x", "p"),
    "cut_line": row(UTIL, 5, "p").rstrip(),
}


@pytest.mark.parametrize(("reason", "page"), REFUSALS.items())
def test_every_refused_sample_is_counted_by_its_reason(reason: str, page: str) -> None:
    world = World(
        make_pod("p", node="n"),
        make_pod("cpu", gpus={}),
        make_pod("done", phase="Succeeded"),
        make_pod("far", node="m"),
    )
    world.scrape(page, 100.0, node="n")
    assert world.count(reason) == 1


def test_the_details_of_rejects_are_bounded_and_the_counts_are_not() -> None:
    rejects = Rejects()
    for i in range(3000):
        rejects.add(Reject("sentinel", UTIL, f"GPU-{i}"), float(i), math.nan)
    assert rejects.totals == {"sentinel": 3000}
    assert len(rejects.recent) == 1024
    assert next(iter(rejects.recent)).device == "GPU-1976"


def test_an_unassigned_device_behind_prometheus_is_not_assigned_to_its_exporter() -> None:
    """With ``honorLabels: true``, 15 of 16 GPUs of one cluster had the exporter's pod."""
    world = World(make_pod("dcgm-exporter-x", gpus={}), make_pod("llm"))
    page = row(UTIL, 1, "dcgm-exporter-x", more=TARGET)
    page += row(UTIL, 80, "llm", uuid="GPU-1", more=TARGET)
    world.scrape(page, 100.0)
    assert world.count("self_attribution") == 1
    assert world.value("llm", UTIL, 100.0) == 80.0
    assert world.value("dcgm-exporter-x", UTIL, 100.0) == "self_attribution"


def test_the_node_of_an_exporter_behind_prometheus_is_learnt_from_its_pod() -> None:
    exporter = make_pod("dcgm-exporter-x", namespace="monitoring", gpus={}, node="n")
    world = World(exporter, make_pod("llm", node="m"))
    labels = 'gpu="0",UUID="GPU-0",pod="dcgm-exporter-x",namespace="monitoring"'
    page = f'{UTIL}{{{labels},exported_pod="llm",exported_namespace="ml"}} 80\n'
    world.scrape(page, 100.0)
    world.scrape(page, 105.0)
    assert world.value("llm", UTIL, 105.0) == "wrong_node"
    world.put(make_pod("llm", node="n"))
    assert world.value("llm", UTIL, 105.0) == 80.0
    assert reading(world.node("n", UTIL, 105.0)).value == 80.0


def test_the_newest_scrape_of_two_exporters_wins_and_the_conflict_is_counted() -> None:
    world = World(make_pod("p"), make_pod("q"))
    world.scrape(row(UTIL, 10, "p"), 100.0, origin="a")
    world.scrape(row(UTIL, 90, "p"), 103.0, origin="b")
    assert world.value("p", UTIL, 103.0) == 90.0
    world.scrape(row(UTIL, 20, "p"), 105.0, origin="a")
    assert world.value("p", UTIL, 105.0) == 15.0
    assert world.count("conflict") == 2
    world.scrape(row(UTIL, 70, "q"), 108.0, origin="b")
    assert world.value("p", UTIL, 108.0) == "conflict"
    assert world.value("q", UTIL, 108.0) == 70.0


def test_an_assignment_on_the_wrong_node_is_not_a_conflict() -> None:
    world = World(make_pod("p", node="n1"), make_pod("tenant", node="n2", uid="t"))
    world.scrape(row(UTIL, 50, "p"), 100.0, origin="a", node="n1")
    world.scrape(row(UTIL, 1, "tenant"), 101.0, origin="forged", node="n2")
    assert world.value("p", UTIL, 101.0) == 50.0
    assert world.count("conflict") == 1
    world.scrape(row(UTIL, 1, "tenant") + row(UTIL, 1, "p"), 102.0, origin="forged", node="n2")
    assert world.value("p", UTIL, 102.0) == 50.0


def test_the_newest_of_two_assignments_on_one_node_wins() -> None:
    world = World(make_pod("p", node="n1"), make_pod("q", node="n1", uid="q"))
    world.scrape(row(UTIL, 50, "p"), 100.0, origin="a", node="n1")
    world.scrape(row(UTIL, 1, "q"), 101.0, origin="b", node="n1")
    assert world.value("p", UTIL, 101.0) == "conflict"


def test_the_cost_of_assignments_to_one_device_is_linear() -> None:
    # Two conflicting pages: comparing every series of one page with every series of the other
    # would be sixteen times the work at four times the size.
    def steps(number: int) -> int:
        world = World(make_pod("p"))
        page = "".join(row(UTIL, 5, "p", container=f"c{index}") for index in range(number))
        world.scrape(page, 100.0, origin="a")
        world.scrape(page, 100.0, origin="b")
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            world.scrape(page, 101.0, origin="a")
        finally:
            sys.setprofile(None)
        return calls

    assert steps(800) < 6 * steps(200)


RATIO = f"{UTIL}_RATIO"


@pytest.mark.parametrize(
    ("texts", "served"),
    [
        pytest.param(["0.000000", "1.000000"], [0.0, 50.0], id="a double, mean of 0 and 100"),
        pytest.param(["1.000000 # {} 1"], [100.0], id="a double with an exemplar"),
        pytest.param(["0", "1", "0"], [0.0, "no_value", 0.0], id="1 % or 100 %"),
        pytest.param(["0", "1", "2"], [0.0, "no_value", 2.0], id="then a percent"),
        pytest.param(["0", "1", "0.5"], [0.0, "no_value", 50.0], id="then a ratio"),
        pytest.param(["87", "1"], [87.0, 44.0], id="a percent, mean of 87 and 1"),
    ],
)
def test_a_ratio_of_1_is_100_percent_only_if_written_with_decimals(
    texts: list[str], served: list[float | str]
) -> None:
    world = World(make_pod("p"))
    for step, (text, expected) in enumerate(zip(texts, served, strict=True)):
        world.scrape(row(RATIO, text, "p"), 100.0 + 10 * step)
        value = world.value("p", "gpu_utilization", 100.0 + 10 * step)
        assert (text, value) == (text, expected)


def test_an_older_0_is_not_served_for_a_device_that_may_be_at_100_percent() -> None:
    world = World(make_pod("p"))
    world.scrape(row(RATIO, 0, "p") + row("DCGM_FI_DEV_FB_USED", 7, "p"), 100.0)
    # One page lacks the pod's labels; its device's sample means 1 % or 100 %.
    world.scrape(row(RATIO, 1), 105.0)
    assert world.value("p", "gpu_utilization", 105.0) == "no_value"
    assert world.value("p", "DCGM_FI_DEV_FB_USED", 105.0) == 7.0
    assert world.count("ambiguous_scale") == 1


def test_an_exporter_with_a_new_address_does_not_conflict_with_itself() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 10, "p"), 100.0, origin="a")
    world.store.forget("a")
    world.scrape(row(UTIL, 90, "p"), 103.0, origin="b")
    assert world.value("p", UTIL, 103.0) == 90.0
    assert world.count("conflict") == 0


def test_a_reading_is_the_same_object_until_it_changes() -> None:
    world = World(make_pod("p"), make_pod("q"))
    world.scrape(row(UTIL, 50, "p"), 100.0, origin="a")
    first = world.read("p", UTIL, 100.0)
    world.scrape(row(UTIL, 60, "q", uuid="GPU-1"), 101.0, origin="b")
    assert world.read("p", UTIL, 102.0) is first
    world.put(make_pod("p", ready=False))
    assert world.value("p", UTIL, 102.0) == "pod_not_ready"
    world.put(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 105.0, origin="a")
    assert world.read("p", UTIL, 105.0) is not first


def test_a_snapshot_is_immutable() -> None:
    world = World(make_pod("p"), make_pod("q"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    before = world.store.snapshot
    world.scrape(row(UTIL, 90, "q"), 105.0)
    world.scrape(row(UTIL, 90, "p", uuid="GPU-1"), 105.0, origin="other")
    pod = make_pod("p")
    assert reading(before.pod(pod, UTIL, EVERYTHING, 105.0)).value == 50.0
    assert before.version < world.store.snapshot.version
    assert world.store.snapshot is world.store.snapshot


def test_a_label_set_is_evaluated_only_once() -> None:
    world, memo = World(make_pod("p")), LabelMemo()
    for time in (100.0, 105.0):
        page = parse(row(UTIL, 50, "p").encode(), time=time, memo=memo)
        world.store.ingest(ScrapeResult("a", None, page.samples, time))
    labels = page.samples[0].labels
    world.store.ingest(ScrapeResult("a", None, [Sample(UTIL, dict(labels), 90.0, 110.0)], 110.0))
    assert reading(world.read("p", UTIL, 110.0)).value == pytest.approx((50 + 50 + 90) / 3)


def test_lingering_samples_of_the_predecessor_do_not_belong_to_a_pod() -> None:
    """dcgm-exporter#140; a StatefulSet's next pod has the same name."""
    world = World(make_pod("p", uid="new"))
    page = row(UTIL, 10, "p", more='pod_uid="old"') + row(UTIL, 80, "p", more='pod_uid="new"')
    world.scrape(page, 100.0)
    assert world.value("p", UTIL, 100.0) == 80.0
    assert world.count("pod_uid_mismatch") == 1


def test_samples_from_before_a_pod_was_created_belong_to_its_predecessor() -> None:
    world = World(make_pod("web-0", uid="old"))
    world.scrape(row(UTIL, 90, "web-0", uuid="GPU-0"), 100)
    world.scrape(row(UTIL, 90, "web-0", uuid="GPU-1"), 100, origin="b")
    world.put(make_pod("web-0", uid="new", born=110))
    assert world.value("web-0", UTIL, 110) == "predecessors_sample"
    world.scrape(row(UTIL, 10, "web-0", uuid="GPU-1"), 115, origin="b")
    answer = reading(world.read("web-0", UTIL, 116))
    assert (answer.value, [part.device for part in answer.devices]) == (10, ["GPU-1"])


def test_a_range_in_which_a_device_changed_pods_belongs_to_the_last_pod() -> None:
    world = World(make_pod("a"), make_pod("b"))
    labels = [{"UUID": "GPU-0", "namespace": "ml", "pod": pod} for pod in "ab"]
    rows = [Sample(UTIL, labels[0], 90, t) for t in (60.0, 75.0)]
    rows += [Sample(UTIL, labels[1], 10, t) for t in (90.0, 105.0)]
    world.store.ingest(ScrapeResult("instance", None, rows, 110))
    assert world.value("a", UTIL, 110) == "pod_not_named"
    assert world.value("b", UTIL, 110, "sharing=exclusive") == 10


def test_pods_that_take_turns_on_a_device_share_it() -> None:
    world = World(make_pod("a"), make_pod("b"))
    labels = [{"UUID": "GPU-0", "namespace": "ml", "pod": pod} for pod in "ab"]
    rows = [Sample(UTIL, labels[i % 2], 50, 60.0 + 15 * i) for i in range(4)]
    world.store.ingest(ScrapeResult("instance", None, rows, 110))
    assert [world.value(pod, UTIL, 110, "sharing=shared") for pod in "ab"] == [50, 50]


def test_old_values_still_expire_if_the_clock_is_set_back() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 90, "p"), 5000)
    world.scrape(row(UTIL, 10, "p"), 100)
    answer = reading(world.read("p", UTIL, 101))
    assert (answer.value, answer.time) == (10, 100)
    world.scrape(row(UTIL, 20, "q"), 105)
    assert world.value("p", UTIL, 106) == "pod_not_named"


def test_a_value_from_before_the_clock_was_set_back_is_not_served() -> None:
    """Its exporter may have died just then: its age would be unknown for an hour."""
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 90, "p"), 5000)
    assert world.value("p", UTIL, 4999) == 90  # a correction by NTP, not a step
    assert world.value("p", UTIL, 4998) == "stale"
    assert world.value("p", UTIL, 1400) == "stale"
    world.scrape(row(UTIL, 10, "p"), 1401)
    assert world.value("p", UTIL, 1401) == 10


def test_an_exporter_that_was_silent_before_the_clock_was_set_back_is_dropped() -> None:
    """Otherwise it would be kept for that time, together with exporters that stop later."""
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 90, "p"), 9000, origin="gone")
    world.scrape(row(UTIL, 10, "p", uuid="GPU-1"), 1000)
    assert world.store.size.exporters == 1


def test_an_exporter_that_invents_devices_is_bounded() -> None:
    world = World(
        make_pod("p", gpus={"nvidia.com/gpu": 5}),
        options=TelemetryOptions(max_series=3),
    )
    for time in (100.0, 105.0):
        page = "".join(row(UTIL, 50, "p", uuid=f"GPU-{time}-{i}") for i in range(5))
        world.scrape(page, time)
    assert world.count("too_many_devices") == 4
    assert len(reading(world.read("p", UTIL, 106)).devices) == 3


def test_samples_with_and_without_a_uid_describe_one_device() -> None:
    world = World(make_pod("p"))
    page = row("DCGM_FI_DEV_FB_USED", 1, "p", more='pod_uid="uid"')
    world.scrape(page + row("DCGM_FI_DEV_FB_FREE", 3, "p"), 100.0)
    assert world.value("p", "gpu_memory_utilization", 100.0) == 25.0


def test_an_empty_store_gives_absences() -> None:
    store = World().store
    assert store.snapshot.nodes() == []
    assert store.ages(1.0) is None
    assert said(store.snapshot.pod(make_pod("p"), UTIL, EVERYTHING, 1.0)) == "pod_not_named"


def test_a_sample_of_a_pod_that_cannot_have_the_device_is_not_a_conflict() -> None:
    """Assignment is decided before the conflict between exporters."""
    exporter = make_pod("exporter", gpus={}, node="n", uid="e")
    ended = make_pod("ended", node="n", uid="o", phase="Succeeded")
    world = World(make_pod("p", node="n"), ended, exporter)
    world.scrape(row(UTIL, 50, "p"), 100.0, origin="a", node="n")
    for name in ("gone", "ended", "exporter"):
        world.scrape(row(UTIL, 90, name), 101.0, origin="b", node="n")
        assert world.value("p", UTIL, 101.0) == 50.0
    assert world.count("conflict") == 0


def test_answers_about_a_fleet_behind_one_exporter_are_all_remembered() -> None:
    names = [f"p{i}" for i in range(4100)]
    world = World(*map(make_pod, names), options=TelemetryOptions(max_series=5000))
    world.scrape("".join(row(UTIL, 1, name, uuid=f"GPU-{name}") for name in names), 100.0)
    first = [world.read(name, UTIL, 100.0) for name in names]
    assert all(world.read(n, UTIL, 100.0) is r for n, r in zip(names, first, strict=True))


def test_answers_with_large_selectors_are_not_remembered() -> None:
    world = World(make_pod("a"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "a"), 100.0)
    small = "modelName notin (a,b)"
    large = f"modelName notin ({','.join(f'v{at}' for at in range(400))})"
    first, second = (world.read("a", "gpu_utilization", 100.0, small) for _ in range(2))
    assert first is second
    first, second = (world.read("a", "gpu_utilization", 100.0, large) for _ in range(2))
    assert first is not second
    assert reading(first).value == reading(second).value == 70.0


def test_no_answer_about_an_unknown_node_is_remembered() -> None:
    world = World(make_pod("a"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "a"), 100.0)
    assert said(world.node("x" * 10_000, "gpu_utilization", 100.0)) == "no_exporter_on_node"
    assert world.store.snapshot._own == {}

"""A replay of a service with a known load: it decides as the controller, and other settings cost
what a run with these settings costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from adapter.config.process.output import Screen
from adapter.hpa import ControllerOptions, HpaSpec, from_manifest
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.divisible import Divisible, divisible
from adapter.pipeline.cluster.pod import Pod
from adapter.server.recording.events import Event, PageRead
from adapter.tools.client.errors import ClientError
from adapter.tools.idle.prices import PriceList
from adapter.tools.replay.judgement import judge, verdict
from adapter.tools.replay.recommendation import HpaAdvice, HpaAnswer
from adapter.tools.replay.recommendreport import AdvisedHpa, RecommendReport
from adapter.tools.replay.report import ReplayReport
from adapter.tools.replay.study import Study, StudyOptions, study
from adapter.tools.replay.variants import Tried
from tests.adapter.tools.replay.day import METRIC, PERIOD, START, Day, manifest, waves

CONTROLLER = ControllerOptions(sync_period=PERIOD)
HOUR = 3600.0


def spec_of(hpa: dict[str, Any]) -> HpaSpec:
    return from_manifest(hpa)


def replayed(day: Day, **options: Any) -> Study:
    chosen = replace(StudyOptions(controller=CONTROLLER), **options)
    return study(day, spec_of(day.hpa), chosen)


def test_a_day_is_decided_as_the_controller_did() -> None:
    hpa_study = replayed(Day(waves))
    assert hpa_study.agreement.equal == hpa_study.agreement.compared > 250
    assert hpa_study.agreement.edges == 0
    assert hpa_study.syncs == 360
    assert hpa_study.gpus == 1


def test_the_replay_of_the_present_settings_is_what_happened() -> None:
    hpa_study = replayed(Day(waves))
    recorded = hpa_study.recorded
    now = hpa_study.runs[0].outcome
    assert now.gpu_seconds == pytest.approx(recorded.gpu_seconds, rel=0.02)
    assert now.highest == recorded.highest
    assert hpa_study.boot == pytest.approx(120, abs=PERIOD)
    assert hpa_study.boots > 5


@pytest.mark.parametrize("target", ["40", "80"])
def test_another_target_costs_what_a_run_with_it_costs(target: str) -> None:
    tried = Tried(targets=(int(target) * 1000,))
    hpa_study = replayed(Day(waves), tried=tried, limit=66.0)
    real = replayed(Day(waves, hpa=manifest(target)), limit=66.0)
    [_, other] = hpa_study.runs
    assert other.variant.text == f"target {target}"
    assert other.outcome.gpu_seconds == pytest.approx(real.runs[0].outcome.gpu_seconds, rel=0.03)
    truth = real.recorded
    assert other.outcome.gpu_seconds == pytest.approx(truth.gpu_seconds, rel=0.03)


def test_a_lower_target_has_less_time_over_the_limit_and_costs_more() -> None:
    runs = replayed(Day(waves), tried=Tried(targets=(30_000, 45_000, 80_000))).runs
    by = {run.variant.text: run.outcome for run in runs}
    order = ["target 30", "target 45", "now", "target 80"]
    cost = [by[text].gpu_seconds for text in order]
    over = [by[text].over for text in order]
    assert cost == sorted(cost, reverse=True)
    assert over == sorted(over)


def test_the_cheapest_within_the_allowance_is_recommended() -> None:
    hpa_study = replayed(Day(waves, hpa=manifest("30")), tried=Tried(targets=(45_000,)), limit=66.0)
    judgement = judge(hpa_study, 3600.0)
    assert judgement.doubts == ()
    assert judgement.recommended is not None
    assert judgement.recommended.variant.text == "target 45"
    assert verdict(judgement.recommended, judgement, 3600.0) == "recommended"
    assert judge(hpa_study, -1.0).best is None


def test_less_than_a_day_has_no_recommendation() -> None:
    judgement = judge(replayed(Day(waves, syncs=30), tried=Tried(targets=(90_000,))), 86_400.0)
    assert judgement.recommended is None
    assert judgement.doubts == (
        "the recording has 116m: a recommendation needs a day with its peak",
    )


def test_saturated_pods_have_no_recommendation() -> None:
    day = Day(lambda _: 900.0, hpa=manifest("60", high=4))
    hpa_study = replayed(day, tried=Tried(highs=(20,)))
    now = hpa_study.runs[0].outcome
    assert now.saturated > 0.9 * now.seconds
    doubts = judge(hpa_study, 600.0).doubts
    assert len(doubts) == 1
    assert "the demand is then known from below only" in doubts[0]


def test_a_silent_exporter_is_unknown_time_and_not_zero() -> None:
    silent = Day(lambda _: 300.0, silent=(10 * HOUR, 12 * HOUR))
    hpa_study = replayed(silent)
    now = hpa_study.runs[0].outcome
    assert now.unknown == pytest.approx(2 * HOUR, abs=2 * PERIOD)
    assert (now.lowest, now.highest) == (4, 5)  # 2 pods at 100 %, and then 300 % on 4 or 5
    assert hpa_study.absent["stale"] > 0
    assert hpa_study.agreement.equal == hpa_study.agreement.compared
    [doubt] = judge(hpa_study, 600.0).doubts
    assert doubt.startswith("the demand is unknown for 120m: no pod had a value")


def test_without_any_value_nothing_is_replayed() -> None:
    with pytest.raises(ClientError, match="has a value of DCGM_FI_DEV_GPU_UTIL: no_page_recorded"):
        replayed(Day(waves, syncs=20, silent=(0.0, 10 * HOUR)))


def test_a_target_without_pods_is_named() -> None:
    hpa = manifest()
    hpa["spec"]["scaleTargetRef"]["name"] = "other"
    with pytest.raises(ClientError, match="no pod of its target, Deployment other: check scaleT"):
        study(Day(waves, syncs=20), spec_of(hpa), StudyOptions(controller=CONTROLLER))


def test_a_row_of_unknown_demand_is_not_called_the_cheapest() -> None:
    hpa_study = replayed(Day(lambda _: 300.0, silent=(10 * HOUR, 12 * HOUR)))
    judgement = judge(hpa_study, 86_400.0)
    assert judgement.best is hpa_study.runs[0]
    assert verdict(hpa_study.runs[0], judgement, 86_400.0) == ""
    lines = list(ReplayReport(hpa_study, judgement, 86_400.0, None, manifest()).basis())
    assert any("whether that time is over the limit is not known" in line for line in lines)


class HalfDark(Day):
    """Every second pod is on a node whose exporter fails: the recording has no page of it."""

    def events(self) -> Iterator[Event]:
        for event in Day.events(self):
            if isinstance(event, PageRead):
                kept = [sample for sample in event.result.samples if int(sample.labels["gpu"]) % 2]
                yield event._replace(result=replace(event.result, samples=kept))
            else:
                yield event

    @staticmethod
    def _pod(number: int, born: float, phase: str = "Running", node: str = "n") -> Pod:
        return Day._pod(number, born, phase, node if number % 2 else "dark")


def test_demand_of_pods_without_a_value_is_named_beside_the_cheapest_row() -> None:
    hpa_study = replayed(HalfDark(lambda _: 300.0))
    assert 0.3 < hpa_study.lacking < 0.7
    assert set(hpa_study.absent) <= {"no_page_recorded", "pod_not_running"}, (
        "its exporter may exist"
    )
    judgement = judge(hpa_study, 86_400.0)
    assert judgement.recommended is None
    share = f"{round(100 * hpa_study.lacking)}%"
    assert any(f"{share} of the recorded demand has no value" in text for text in judgement.doubts)
    message = verdict(hpa_study.runs[0], judgement, 86_400.0)
    assert message == f"cheapest within the limit, but {share} of the demand has no value"


def test_without_gpus_the_cost_is_not_known() -> None:
    hpa_study = replace(replayed(Day(waves)), gpus=0.0)
    judgement = judge(hpa_study, 600.0)
    assert judgement.doubts == ("GPU-hours are not known: no pod of the recording requests a GPU",)
    answer = HpaAnswer(hpa_study.spec, None, HpaAdvice(hpa_study, judgement))
    advised = AdvisedHpa(manifest(), answer)
    row = RecommendReport([advised], 600.0, PriceList({})).lines(Screen())[1]
    assert "  ?  " in row


def test_another_manifest_disagrees() -> None:
    day = Day(waves)
    hpa_study = study(day, spec_of(manifest("90")), StudyOptions(controller=CONTROLLER))
    assert hpa_study.agreement.equal < hpa_study.agreement.compared
    assert hpa_study.agreement.differences[0].time > START
    assert any("agrees with the controller" in doubt for doubt in judge(hpa_study, 1e9).doubts)


def test_a_missing_hpa_is_named() -> None:
    other = manifest()
    other["metadata"]["name"] = "other"
    with pytest.raises(ClientError, match="no sync of HPA ml/other: check the name"):
        study(Day(waves, syncs=3), spec_of(other), StudyOptions(controller=CONTROLLER))


def test_a_metric_that_is_not_divided_is_named() -> None:
    hpa = manifest()
    hpa["spec"]["metrics"][0]["pods"]["metric"]["name"] = "inference_requests_waiting"
    with pytest.raises(ClientError, match="that work is divided into, such as gpu_utilization"):
        study(
            Day(waves, syncs=3, hpa=manifest()), spec_of(hpa), StudyOptions(controller=CONTROLLER)
        )
    with pytest.raises(ClientError, match="power is not one"):
        replayed(Day(waves, syncs=3), metric="power")


def test_other_metrics_of_the_hpa_are_a_remark() -> None:
    hpa = manifest()
    cpu = {"type": "Utilization", "averageUtilization": 80}
    hpa["spec"]["metrics"].append({"type": "Resource", "resource": {"name": "cpu", "target": cpu}})
    hpa_study = study(Day(waves, syncs=10), spec_of(hpa), StudyOptions(controller=CONTROLLER))
    assert len(hpa_study.remarks) == 1
    assert f"the table is about {METRIC} alone" in hpa_study.remarks[0]


def test_too_many_combinations_are_refused() -> None:
    many = Tried(targets=tuple(range(1000, 30_000, 1000)), lows=tuple(range(1, 11)))
    with pytest.raises(ClientError, match="290 combinations are too many"):
        replayed(Day(waves, syncs=3), tried=many)


@pytest.mark.parametrize("name", ["num_requests_running", "ray_vllm_num_requests_running"])
def test_requests_that_run_are_divided_under_every_name_of_a_server(name: str) -> None:
    assert divisible(name, Catalog().metrics) == Divisible(None)


def test_requests_that_wait_are_not_divided() -> None:
    assert divisible("inference_requests_waiting", Catalog().metrics) is None

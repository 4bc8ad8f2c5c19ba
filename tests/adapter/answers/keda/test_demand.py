"""KEDA's HPA asks for as many replicas as an HPA on the Pods metric would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.answers.api.aggregate import Aggregate
from adapter.answers.keda.demand import Standing, demand, number
from adapter.hpa.observation import Observation, PodState
from adapter.hpa.spec import MetricKind, MetricSpec, MetricTarget, TargetKind
from tests.proposals import propose

TARGET = 70


class Workload(NamedTuple):
    """Pods, all of one Deployment."""

    values: Sequence[float] = ()
    silent: int = 0
    unready: int = 0
    pending: int = 0

    def pods(self) -> list[PodState]:
        rows = [("known", len(self.values)), ("silent", self.silent)]
        pods = [PodState(f"{name}{i}") for name, count in rows for i in range(count)]
        pods += [PodState(f"unready{i}", ready=False) for i in range(self.unready)]
        return pods + [PodState(f"pending{i}", "Pending", ready=False) for i in range(self.pending)]

    @property
    def standing(self) -> Standing:
        return Standing(*self)

    def by_pods_metric(self) -> int:
        values = {f"known{i}": round(value * 1000) for i, value in enumerate(self.values)}
        return self._propose(MetricKind.PODS, TargetKind.AVERAGE_VALUE, values)

    def by_keda(self, kind: TargetKind, how: Aggregate) -> int:
        """KEDA gives the controller thousandths of the scaler's answer."""
        answer = number(demand(how, self.standing, TARGET)).exact
        return self._propose(MetricKind.EXTERNAL, kind, [int(answer * 1000)])

    def _propose(self, kind: MetricKind, target: TargetKind, values: object) -> int:
        pods = self.pods()
        metric = MetricSpec(kind, "gpu_utilization", MetricTarget(target, TARGET * 1000))
        seen = Observation(len(pods), pods, [])
        return propose(metric, values, seen, "ml")[0]  # type: ignore[arg-type]  # both


CASES: dict[str, tuple[Workload, int]] = {
    "one busy pod": (Workload([100.0]), 2),
    "one idle pod": (Workload([0.0]), 0),
    "at the target": (Workload([70.0] * 4), 4),
    "within tolerance, above": (Workload([75.0] * 4), 4),
    "within tolerance, below": (Workload([65.0] * 4), 4),
    "twice the target": (Workload([140.0] * 4), 8),
    "uneven": (Workload([100.0, 10.0, 100.0, 10.0]), 4),
    "half the target": (Workload([35.0] * 10), 5),
    "a hundred pods": (Workload([98.0] * 100), 140),
    "busy, one missing": (Workload([98.0] * 9, silent=1), 13),
    "quiet, one missing": (Workload([35.0] * 9, silent=1), 6),
    "busy, half missing: caution turns it": (Workload([100.0] * 5, silent=5), 10),
    "quiet, half missing": (Workload([7.0] * 5, silent=5), 6),
    "of docs/keda.md, busy": (Workload([140.0] * 3, silent=1), 6),
    "of docs/keda.md, quiet": (Workload([35.0] * 3, silent=1), 3),
    "at the target, one missing": (Workload([70.0] * 3, silent=1), 4),
    "busy, two starting": (Workload([140.0] * 4, unready=2), 8),
    "a little busy, two starting": (Workload([80.0] * 4, unready=2), 6),
    "quiet, two starting": (Workload([35.0] * 4, unready=2), 4),
    "busy, two pending": (Workload([140.0] * 4, pending=2), 8),
    "quiet, two pending": (Workload([35.0] * 4, pending=2), 2),
    "near the target, one pending": (Workload([66.0] * 3, pending=1), 4),
    "of every kind, busy": (Workload([210.0] * 4, 1, 1, 1), 12),
    "of every kind, quiet": (Workload([21.0] * 4, 1, 1, 1), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_an_average_value_scales_as_the_pods_metric(name: str) -> None:
    workload, replicas = CASES[name]
    by_keda = workload.by_keda(TargetKind.AVERAGE_VALUE, Aggregate.SUM)
    assert (workload.by_pods_metric(), by_keda) == (replicas, replicas)


VALUE = {name: case for name, case in CASES.items() if not (case[0].unready or case[0].pending)}


@pytest.mark.parametrize("name", VALUE)
def test_a_value_scales_as_the_pods_metric_while_every_pod_is_ready(name: str) -> None:
    workload, replicas = VALUE[name]
    by_keda = workload.by_keda(TargetKind.VALUE, Aggregate.MEAN)
    assert (workload.by_pods_metric(), by_keda) == (replicas, replicas)


utilization = st.integers(0, 4000).map(lambda tenths: tenths / 10)
few = st.integers(0, 6)
workloads = st.builds(Workload, st.lists(utilization, min_size=1, max_size=20), few, few, few)


@given(workloads)
def test_caution_never_scales_the_other_way_than_the_pods_metric(workload: Workload) -> None:
    pods = len(workload.pods())
    wanted = workload.by_pods_metric()
    answer = workload.by_keda(TargetKind.AVERAGE_VALUE, Aggregate.SUM)
    assert (answer > pods) <= (wanted > pods)
    assert (answer < pods) <= (wanted < pods)


@given(workloads.map(lambda w: w._replace(pending=0)))
def test_an_average_value_scales_as_the_pods_metric_for_all_values(workload: Workload) -> None:
    by_keda = workload.by_keda(TargetKind.AVERAGE_VALUE, Aggregate.SUM)
    assert by_keda == workload.by_pods_metric()


@given(st.lists(utilization, min_size=1, max_size=20), few)
@example([0.0, 0.0], 4)
def test_a_value_scales_as_the_pods_metric_for_all_values(values: list[float], silent: int) -> None:
    workload = Workload(values, silent)
    assert workload.by_keda(TargetKind.VALUE, Aggregate.MEAN) == workload.by_pods_metric()


@given(workloads, st.sampled_from([Aggregate.MEAN, Aggregate.MAX, Aggregate.P95]))
def test_caution_stays_between_zero_and_what_was_measured_or_the_target(
    workload: Workload, how: Aggregate
) -> None:
    answer = demand(how, workload.standing, TARGET)
    assert 0 <= answer <= max(TARGET, *workload.values)


@given(st.lists(utilization, min_size=1, max_size=20), st.sampled_from(list(Aggregate)))
def test_with_a_value_of_every_pod_the_target_has_no_part_in_it(
    values: list[float], how: Aggregate
) -> None:
    standing = Standing(values)
    assert demand(how, standing, 1.0) == demand(how, standing, 1000.0) == how.of(values)

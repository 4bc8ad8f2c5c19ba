"""Who is learned, in bounded number, and what a question can change."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.store.outlook import UNKNOWN, Rise
from adapter.server.ahead.workloadload import Present
from apiservice.runtime.steps import at_once
from tests.adapter.server.ahead.service import EXPECTED, RUNNING, Service, server
from tests.adapter.world import make_pod, row


def ask(service: Service, app: str, namespace: str = "ml") -> None:
    pod = server(f"{app}-0", namespace=namespace, app=app)
    service.learner.rise(service.world.store.snapshot, pod, RUNNING, service.now)
    service.now += 1


def followed(service: Service) -> list[str]:
    return sorted(f"{key.namespace}/{key.name}" for key in service.learner.loads)


def test_a_full_place_goes_to_the_namespace_that_has_few() -> None:
    service = Service(most=3)
    for app in ("a", "b", "c"):
        ask(service, app)
    ask(service, "x", "other")
    assert followed(service) == ["ml/b", "ml/c", "other/x"]


def test_what_nobody_asks_about_any_more_goes_first() -> None:
    """Before, a namespace that had left kept its places, and one that asks lost its own."""
    service = Service(most=4)
    for namespace in ("left", "gone"):
        ask(service, "x", namespace)
    service.now += 3700
    for app in ("a", "b", "c"):
        ask(service, app)
    assert followed(service) == ["gone/x", "ml/a", "ml/b", "ml/c"]
    ask(service, "d")
    assert followed(service) == ["ml/a", "ml/b", "ml/c", "ml/d"]


def test_who_asks_about_many_workloads_takes_none_from_others() -> None:
    service = Service(most=3)
    ask(service, "x", "other")
    for number in range(10):
        ask(service, f"a{number}")
    assert followed(service) == ["ml/a8", "ml/a9", "other/x"]


def test_what_nobody_asks_about_is_learned_for_an_hour_and_kept_for_a_week() -> None:
    service = Service()
    service.minute(20, 30)
    service.minute(20, 30)
    known = service.load.history
    service.now += 3700
    service.minute(20, 30, ask=False)
    assert service.load.history == known
    service.now += 8 * 86400
    service.minute(20, 30, ask=False)
    assert not service.learner.loads


def test_a_pod_without_a_controller_has_no_expectation() -> None:
    service = Service()
    service.world.put(
        make_pod("alone", gpus={}, annotations={"gpu-metrics-adapter.io/scrape": "true"})
    )
    service.serve(5, names=("alone",))
    absence = service.world.read("alone", EXPECTED, service.now)
    assert isinstance(absence, Absence)
    assert (absence.reason, absence.detail) == (UNKNOWN, "the pod has no controller")


def test_a_selection_of_devices_and_a_node_have_no_expectation() -> None:
    service = Service()
    for _ in range(4):
        service.minute(20, 30)
    absence = service.world.read("a", EXPECTED, service.now, "device=x")
    assert isinstance(absence, Absence)
    service.world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 50, "a"), service.now, node="n1")
    utilization = "gpu_utilization"
    assert not isinstance(service.world.node("n1", utilization, service.now), Absence)
    assert isinstance(service.world.node("n1", utilization + "_expected", service.now), Absence)


def test_without_rounds_an_expectation_ends() -> None:
    service = Service()
    for _ in range(5):
        service.minute(20, 30)
    pod = server("a")
    snapshot = service.world.store.snapshot
    assert isinstance(service.learner.rise(snapshot, pod, RUNNING, service.now + 200), Rise)
    assert isinstance(service.learner.rise(snapshot, pod, RUNNING, service.now + 400), Absence)


def test_a_percentage_stays_within_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    monkeypatch.setattr(service.learner, "rise", lambda *_: Rise(80.0, "far"))
    service.world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 50, "a"), service.now, node="n1")
    assert service.world.value("a", "gpu_utilization_expected", service.now) == 100


@pytest.mark.parametrize("load", [1e-170, 5e-324, 1e-9, 0.002])
def test_a_load_of_almost_nothing_does_not_end_the_learning(load: float) -> None:
    """Its square is 0 as a number, and what one replica carries was 0 for a load above 0."""
    service = Service()
    for _ in range(5):
        service.minute(load, load)
    assert service.load.replica.mean is None
    assert service.pods() == pytest.approx({"a": 0, "b": 0}, abs=0.005)


@pytest.mark.parametrize("load", [-3.0, 1e17])
def test_a_number_that_cannot_be_a_load_is_not_learned(load: float) -> None:
    service = Service()
    for _ in range(3):
        service.minute(20, 30)
    known = service.load.history, service.load.replica
    service.load.learn(Present(load, 2), service.now + 60)
    assert (service.load.history, service.load.replica) == known


@pytest.mark.parametrize("minutes", [1, 3])
def test_a_minute_of_the_workload_counts_once_with_its_largest_load(minutes: int) -> None:
    service = Service()
    service.serve(1, 1)
    service.pods()
    for _ in range(minutes):
        service.now += 60
        for quarter, load in enumerate((10, 40, 20)):
            service.serve(load, load)
            at_once(service.learner.round(service.now + 15 * quarter))
    assert [point.pods for point in service.load.history.recent] == [80.0] * minutes

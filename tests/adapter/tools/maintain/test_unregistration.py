"""Taking APIServices away."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from adapter.tools.maintain.cluster import MaintainError, RefusalError
from adapter.tools.maintain.objects import registration_path
from adapter.tools.maintain.unregistration import unregister
from tests.adapter.tools.maintain.fakecluster import CUSTOM, TARGET, FakeCluster

PATHS = [registration_path(name) for name in CUSTOM]


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.install()
    return made


def run(cluster: FakeCluster, wait: float = 5.0) -> int:
    return asyncio.run(unregister(cluster, TARGET, wait, cluster.pause))


def test_what_is_ours_goes_and_a_second_run_finds_nothing(cluster: FakeCluster) -> None:
    with capture_logs() as logs:
        assert run(cluster) == 2
        assert run(cluster) == 0
    assert not cluster.objects.keys() & set(PATHS)
    assert [row["apiservice"] for row in logs] == list(CUSTOM)


def test_nothing_is_deleted_if_one_belongs_to_somebody_else(cluster: FakeCluster) -> None:
    """Helm would delete it with the release: the uninstall is to stop."""
    cluster.register(CUSTOM[1], "monitoring", "prometheus-adapter")
    with pytest.raises(
        RefusalError,
        match=rf"{CUSTOM[1]} belongs to monitoring/prometheus-adapter now.*resource-policy=keep",
    ):
        run(cluster)
    assert cluster.writes == []


def test_a_finalizer_that_no_controller_serves_is_named(cluster: FakeCluster) -> None:
    cluster.objects[PATHS[0]]["metadata"]["finalizers"] = ["example/held"]
    with pytest.raises(MaintainError, match=r"still exists after 5 s, held by example/held"):
        run(cluster)


def test_one_that_is_taken_over_meanwhile_stays(cluster: FakeCluster) -> None:
    """It is deleted as the version that was read, which pointed to us, or not at all."""
    read = cluster.read
    looks = 0

    async def taken_over_later(path: str) -> object:
        nonlocal looks
        looks += 1
        registration = await read(path)
        if looks == 3:
            cluster.register(CUSTOM[0], "keda", "keda-metrics")
        return registration

    cluster.read = taken_over_later  # type: ignore[method-assign, assignment]  # our own fake
    with pytest.raises(RefusalError, match=f"{CUSTOM[0]} belongs to keda/keda-metrics now"):
        run(cluster)
    assert PATHS[0] in cluster.objects

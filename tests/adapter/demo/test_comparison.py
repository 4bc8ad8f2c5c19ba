"""How long pods waited for a GPU is counted from their own times."""

from __future__ import annotations

import pytest

from adapter.demo.fleet import DemoPod
from adapter.demo.summary import running_after


def pod(created: float, bound: float | None = None, deleted: float | None = None) -> DemoPod:
    return DemoPod("chat-x", "chat", "uid", created, "r", 0.0, bound=bound, deleted=deleted)


@pytest.mark.parametrize(
    ("one", "seconds"),
    [
        pytest.param(pod(10, bound=10), 0.0, id="a device was free"),
        pytest.param(pod(10, bound=95), 85.0, id="it got one later"),
        pytest.param(pod(10), 90.0, id="it still waits"),
        pytest.param(pod(10, deleted=40), 30.0, id="it was deleted before it got one"),
        pytest.param(pod(10, bound=30, deleted=60), 20.0, id="it was deleted afterwards"),
    ],
)
def test_a_pod_waits_until_it_has_a_device_or_is_gone(one: DemoPod, seconds: float) -> None:
    assert one.waiting_seconds(100.0) == seconds


@pytest.mark.parametrize(
    ("pods", "after"),
    [
        pytest.param([pod(0, 0), pod(0, 0)], 0.0, id="they were there before"),
        pytest.param([pod(0, 0), pod(60, 75)], 25.0, id="the last one decides"),
        pytest.param([pod(0, 0), pod(60)], None, id="one never gets a device"),
        pytest.param([pod(0, 0), pod(60, 140)], None, id="one gets it too late"),
        pytest.param([pod(0, 0, 70), pod(60, 80), pod(60, 90)], 40.0, id="one goes meanwhile"),
        pytest.param([pod(0, 0), pod(0, 0, 40), pod(60, 80)], 30.0, id="one went before"),
    ],
)
def test_so_many_pods_run_so_long_after_the_start(pods: list[DemoPod], after: float | None) -> None:
    assert running_after(pods, 2, start=50.0, end=120.0) == after

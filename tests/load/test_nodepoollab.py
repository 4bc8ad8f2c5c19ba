"""How the lab counts waits, and which load it plays."""

from __future__ import annotations

import pytest

from load.nodepoollab import Waits
from load.nodepoolplays import BEFORE, LEAST, TARGET, WIDE, steepest, wanted
from tests.e2e.cluster import Object


def pod(uid: str, node: str = "", app: str = "inference", namespace: str = "ours") -> Object:
    spec = {"nodeName": node} if node else {}
    labels = {"app": app}
    return {"metadata": {"uid": uid, "namespace": namespace, "labels": labels}, "spec": spec}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that a test sets."""
    now = [100.0]
    monkeypatch.setattr("load.nodepoollab.time.monotonic", lambda: now[0])
    return now


def test_a_pod_waits_until_it_has_a_node_or_is_deleted(clock: list[float]) -> None:
    waits = Waits()
    for uid in ("bound", "deleted", "waiting"):
        waits.changed("ADDED", pod(uid))
    clock[0] = 107
    waits.changed("MODIFIED", pod("bound", "node"))
    clock[0] = 109
    waits.changed("MODIFIED", pod("bound", "node"))
    waits.changed("DELETED", pod("deleted"))
    clock[0] = 130
    assert sorted(waits.of("ours")) == [7, 9, 30]


def test_other_pods_and_namespaces_do_not_count(clock: list[float]) -> None:
    waits = Waits()
    waits.changed("ADDED", pod("a", app="exporter"))
    waits.changed("ADDED", pod("b", namespace="share"))
    clock[0] = 130
    assert waits.of("ours") == []
    assert waits.of("share") == [30]


def test_waits_before_what_is_judged_do_not_count(clock: list[float]) -> None:
    waits = Waits()
    for uid in ("ended", "waiting"):
        waits.changed("ADDED", pod(uid))
    clock[0] = 160
    waits.changed("MODIFIED", pod("ended", "node"))
    waits.reset()
    clock[0] = 165
    assert waits.of("ours") == [5]


@pytest.mark.parametrize(
    ("load", "pods"), [(0, LEAST), (2 * TARGET, LEAST), (3 * TARGET, 3), (3 * TARGET + 1, 4)]
)
def test_a_load_asks_for_the_pods_that_keep_the_target(load: float, pods: int) -> None:
    assert wanted(load) == pods


def test_the_rise_that_is_played_begins_low_and_ends_high() -> None:
    loads = [1.0] * 100 + [5.0] * 30 + [3.0] * 70
    first = steepest(loads, range(len(loads)))
    assert loads[first : first + 10] == [1.0] * 10
    assert loads[first + WIDE - 10 : first + WIDE] == [5.0] * 10


def test_the_rise_leaves_room_for_what_is_played_before_it() -> None:
    falling = [float(load) for load in range(200, 0, -1)]
    assert steepest(falling, range(60, 200)) >= 60 + BEFORE

"""Boot times: from an order to an allocatable GPU."""

from __future__ import annotations

import pytest

from adapter.nodepool.learn.boots import (
    KEPT,
    Boot,
    BootTimes,
    PoolTarget,
    watch_claims,
    watch_targets,
)
from tests.adapter.nodepool.manifests import T0


def claims(*seconds: float) -> list[Boot]:
    return [Boot("gpu", f"c{i}", T0, T0 + took) for i, took in enumerate(seconds)]


def test_the_p90_covers_nine_of_ten_nodes() -> None:
    boots = watch_claims(BootTimes(), claims(*range(30, 40)), [f"c{i}" for i in range(10)])
    assert boots.p90("gpu") == 38
    assert BootTimes().p90("gpu") is None


def test_a_claim_is_counted_once_and_dropped_when_it_is_deleted() -> None:
    once = watch_claims(BootTimes(), claims(30), ["c0"])
    assert watch_claims(once, claims(30), ["c0"]).seconds == {"gpu": (30.0,)}
    assert watch_claims(once, [], []).known == frozenset()


def test_a_restart_does_not_count_claims_again() -> None:
    stored = BootTimes({"gpu": (30.0,)})
    first = watch_claims(stored, claims(30), ["c0"])
    assert first.seconds == {"gpu": (30.0,)}
    begun = watch_targets(first, {}, {}, T0)
    assert watch_claims(begun, claims(30, 40), ["c0", "c1"]).seconds == {"gpu": (30.0, 40.0)}


@pytest.mark.parametrize("took", [0.0, -5.0, 7200.0], ids=["at once", "before", "hours"])
def test_impossible_times_are_not_learned(took: float) -> None:
    assert watch_claims(BootTimes(), claims(took), ["c0"]).p90("gpu") is None


def test_only_the_newest_boots_are_remembered() -> None:
    boots = BootTimes(begun=True)
    for i in range(KEPT + 5):
        boots = watch_claims(boots, [Boot("gpu", f"c{i}", T0, T0 + 1 + i)], [f"c{i}"])
    assert boots.seconds["gpu"] == tuple(float(6 + i) for i in range(KEPT))


def test_a_raised_target_is_the_order_of_the_nodes_that_follow() -> None:
    boots = watch_targets(BootTimes(), {"gpu": PoolTarget(1, T0)}, {"gpu": ("a",)}, T0)
    boots = watch_targets(boots, {"gpu": PoolTarget(3, T0 + 100)}, {"gpu": ("a",)}, T0 + 105)
    boots = watch_targets(boots, {"gpu": PoolTarget(3, T0 + 100)}, {"gpu": ("a", "b")}, T0 + 280)
    boots = watch_targets(
        boots, {"gpu": PoolTarget(3, T0 + 100)}, {"gpu": ("a", "b", "c")}, T0 + 300
    )
    assert boots.seconds == {"gpu": (180.0, 200.0)}
    assert boots.waiting == {}


def test_nodes_from_before_the_start_are_not_learned() -> None:
    boots = watch_targets(BootTimes(), {"gpu": PoolTarget(2, T0)}, {"gpu": ("a", "b")}, T0)
    assert boots.seconds == {}


def test_a_withdrawn_order_is_dropped() -> None:
    boots = watch_targets(BootTimes(), {"gpu": PoolTarget(0, T0)}, {}, T0)
    boots = watch_targets(boots, {"gpu": PoolTarget(2, T0)}, {}, T0 + 10)
    boots = watch_targets(boots, {"gpu": PoolTarget(0, T0)}, {}, T0 + 20)
    boots = watch_targets(boots, {"gpu": PoolTarget(1, T0 + 500)}, {}, T0 + 500)
    boots = watch_targets(boots, {"gpu": PoolTarget(1, T0 + 500)}, {"gpu": ("a",)}, T0 + 590)
    assert boots.seconds == {"gpu": (90.0,)}

"""Idle GPUs: since when, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.idle import GpuPod, IdlePod, IdleStreak, follow, report

AFTER = 600.0


@pytest.fixture(autouse=True, scope="module")
def sooner() -> Iterator[None]:
    """A pod is reported after ten minutes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("adapter.nodepool.learn.idle.AFTER", AFTER)
        yield


def pod(utilization: float | None, gpus: int = 2, uid: str = "u1") -> GpuPod:
    return GpuPod("ml", f"pod-{uid}", uid, "gpu", gpus, utilization)


def price(pool: str) -> float | None:
    return {"gpu": 3.0}.get(pool)


def watch(values: Sequence[float | None], step: float = 60.0) -> tuple[IdlePod, ...]:
    """Read once per step; return the report of the last reading."""
    streaks: dict[str, IdleStreak] = {}
    for number, value in enumerate(values):
        streaks = follow(streaks, [pod(value)], number * step)
    now = (len(values) - 1) * step
    return report(streaks, [pod(values[-1])], price, now)


def test_an_idle_pod_is_reported_with_its_hours_and_cost() -> None:
    (row,) = watch([50.0, *[0.0] * 31])
    assert row.since == 60.0
    assert row.gpu_hours == 1.0
    assert row.cost == 3.0


SEEN: dict[str, tuple[list[float | None], bool]] = {
    "idle for long enough": ([0.0] * 11, True),
    "not yet": ([0.0] * 10, False),
    "at the threshold": ([1.0] * 11, True),
    "working": ([2.0] * 11, False),
    "working for a moment": ([*[0.0] * 6, 50.0, *[0.0] * 6], False),
    "a reading that failed": ([*[0.0] * 5, None, *[0.0] * 5], True),
    "no reading now": ([*[0.0] * 10, None], False),
    "no reading for too long": ([*[0.0] * 5, None, None, *[0.0] * 5], False),
    "never a reading": ([None] * 20, False),
}


@pytest.mark.parametrize(("values", "idle"), SEEN.values(), ids=SEEN)
def test_only_idle_pods_are_reported(values: list[float | None], idle: bool) -> None:
    assert bool(watch(values)) is idle


def test_a_streak_ends_if_the_clock_is_set_back() -> None:
    streaks = follow({"u1": IdleStreak(0.0, 590.0, 590.0)}, [pod(0.0)], 500.0)
    assert streaks == {"u1": IdleStreak(500.0, 500.0, 0.0)}


def test_without_a_price_there_is_no_cost() -> None:
    streaks = {"u1": IdleStreak(0.0, 3600.0, 3600.0)}
    (row,) = report(streaks, [pod(0.0)], lambda _: None, 3600.0)
    assert (row.gpu_hours, row.cost) == (2.0, None)


def test_the_streak_of_a_deleted_pod_does_not_pass_to_its_successor() -> None:
    streaks = follow({"u1": IdleStreak(0.0, 590.0, 590.0)}, [pod(0.0, uid="u2")], 600.0)
    assert streaks == {"u2": IdleStreak(600.0, 600.0, 0.0)}


def test_a_pod_without_gpus_is_not_reported() -> None:
    assert not report({"u1": IdleStreak(0.0, 600.0, 600.0)}, [pod(0.0, gpus=0)], price, 600.0)


def test_the_most_expensive_pod_comes_first() -> None:
    pods = [pod(0.0, 1, "small"), pod(0.0, 8, "large")]
    streaks = {idle.uid: IdleStreak(0.0, 900.0, 900.0) for idle in pods}
    rows = report(streaks, pods, price, 900.0)
    assert [row.pod.uid for row in rows] == ["large", "small"]


readings = st.lists(
    st.tuples(st.none() | st.sampled_from((0.0, 0.5, 3.0, 90.0)), st.floats(1, 200)), max_size=40
)


@given(readings)
def test_idle_time_is_never_more_than_the_time_between_idle_readings(
    seen: list[tuple[float | None, float]],
) -> None:
    streaks: dict[str, IdleStreak] = {}
    now, idle, last = 0.0, 0.0, None
    for value, gap in seen:
        now += gap
        streaks = follow(streaks, [pod(value)], now)
        if value is not None:
            idle += now - last if value <= 1.0 and last is not None else 0.0
            last = now if value <= 1.0 else None
        for row in report(streaks, [pod(value)], price, now):
            assert row.pod.utilization is not None
            assert row.gpu_hours <= row.pod.gpus * idle / 3600 + 1e-9
            assert row.since <= now - AFTER

"""The time from the creation of a pod to Ready."""

from __future__ import annotations

from adapter.pipeline.cluster.pod import Pod
from adapter.server.ahead.starts import StartTimes
from tests.adapter.world import make_pod

NOW = 1_788_000_000.0


def pod(name: str, born: float, took: float | None) -> Pod:
    ready = took is not None
    since = born + took if took is not None else 0.0
    return make_pod(name, uid=name, born=born, ready=ready, ready_since=since)


def test_it_is_the_90th_percentile_in_steps_of_a_sync() -> None:
    times = StartTimes().watch((), NOW)
    born = NOW + 5
    pods = [pod(f"p{number}", born, None) for number in range(10)]
    times = times.watch(pods, NOW + 10)
    assert times.seconds is None
    pods = [pod(f"p{number}", born, 100 + 10 * number) for number in range(10)]
    times = times.watch(pods, NOW + 300)
    assert times.seconds == 180
    assert times.watch(pods, NOW + 315) == times


def test_a_pod_that_was_ready_before_does_not_start_again() -> None:
    times = StartTimes().watch((), NOW).watch([pod("a", NOW + 5, 100)], NOW + 120)
    times = times.watch([pod("a", NOW + 5, None)], NOW + 1000)
    assert times.watch([pod("a", NOW + 5, 2000)], NOW + 2100).seconds == 105


def test_until_a_start_is_watched_the_conditions_of_other_pods_count() -> None:
    """One of them was Ready before: its condition shows an hour."""
    others = [pod("a", NOW - 9000, 200), pod("b", NOW - 9000, 3500), pod("c", NOW - 9000, 220)]
    times = StartTimes().watch(others, NOW)
    assert times.seconds == 225
    assert times.watch([*others, pod("d", NOW + 5, 60)], NOW + 90).seconds == 60


def test_times_that_are_not_starts_teach_nothing() -> None:
    odd = [pod("a", 0.0, 100), pod("b", NOW + 5, 3601), pod("c", NOW + 5, -3)]
    assert StartTimes().watch(odd, NOW).seconds is None

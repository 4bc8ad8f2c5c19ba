"""Each GPU is in exactly one class."""

from __future__ import annotations

import itertools

import pytest

from adapter.answers.view.gpuclass import GpuClass, gpu_class
from adapter.tools.overview.gpuclasses import GpuCounts, count_classes

POD = "chat/llm-0"


@pytest.mark.parametrize(
    ("util", "pods", "idle_for", "found"),
    [
        (0.0, None, 172800.0, "free"),
        (0.0, None, 3.0, "free"),
        (None, None, 3.0, "free"),  # no field shows work, though no utilization is reported
        (0.0, None, None, "free"),  # without cross_checks, nothing is said about idle times
        (60.0, None, None, "unheld"),
        (0.01, None, None, "unheld"),
        (None, None, None, "unmeasured"),
        (60.0, POD, None, "busy"),
        (0.0, POD, 599.9, "busy"),
        (0.0, POD, 600.0, "idle"),
        (None, POD, 600.0, "idle"),
        (None, POD, 599.9, "unmeasured"),
        (None, POD, None, "unmeasured"),
    ],
)
def test_a_gpu_belongs_to_the_class_that_its_row_shows(
    util: float | None, pods: str | None, idle_for: float | None, found: GpuClass
) -> None:
    assert gpu_class(util, pods, idle_for, None) == found


def test_a_free_gpu_where_no_pod_can_start_is_blocked() -> None:
    assert gpu_class(0.0, None, 3.0, "DiskPressure") == "blocked"
    assert gpu_class(60.0, None, None, "DiskPressure") == "unheld"
    assert gpu_class(60.0, POD, None, "DiskPressure") == "busy"
    assert gpu_class(None, None, None, "DiskPressure") == "unmeasured"


def test_a_held_gpu_is_idle_after_the_time_that_was_asked_for() -> None:
    assert gpu_class(0.0, POD, 599.0, None, idle_after=599.0) == "idle"
    assert gpu_class(0.0, POD, 3600.0, None, idle_after=7200.0) == "busy"


def test_the_classes_add_up_to_all_gpus() -> None:
    cells = ((None, 0.0, 40.0), (None, POD), (None, 5.0, 10800.0), (None, "cordoned"))
    rows = list(itertools.product(*cells))
    counts = count_classes(itertools.starmap(gpu_class, rows))
    assert counts.total == len(rows) == sum(counts)
    assert all(counts), "each class has a row"
    assert count_classes([]) == GpuCounts()

"""Each GPU is in exactly one class."""

from __future__ import annotations

import itertools

import pytest

from adapter.overview.gpuclasses import (
    GpuClass,
    GpuCounts,
    count_classes,
    gpu_class,
)

POD = "chat/llm-0"


@pytest.mark.parametrize(
    ("util", "pods", "idle_since", "found"),
    [
        ("0%", None, "2d", "free"),
        ("0%", None, "3s", "free"),
        (None, None, "3s", "free"),  # no field shows work, though no utilization is reported
        ("0%", None, None, "free"),  # without cross_checks, nothing is said about idle times
        ("60%", None, None, "unheld"),
        ("<0.1%", None, None, "unheld"),
        (None, None, None, "unmeasured"),
        ("60%", POD, None, "busy"),
        ("0%", POD, "9m59s", "busy"),
        ("0%", POD, "10m", "idle"),
        (None, POD, "10m", "idle"),
        (None, POD, "9m59s", "unmeasured"),
        (None, POD, None, "unmeasured"),
    ],
)
def test_a_gpu_belongs_to_the_class_that_its_row_shows(
    util: str | None, pods: str | None, idle_since: str | None, found: GpuClass
) -> None:
    assert gpu_class(util, pods, idle_since) == found


def test_a_held_gpu_is_idle_after_the_time_that_was_asked_for() -> None:
    assert gpu_class("0%", POD, "9m59s", idle_after=599.0) == "idle"
    assert gpu_class("0%", POD, "1h", idle_after=7200.0) == "busy"


def test_the_classes_add_up_to_all_gpus() -> None:
    rows = list(itertools.product((None, "0%", "40%"), (None, POD), (None, "5s", "3h")))
    counts = count_classes(itertools.starmap(gpu_class, rows))
    assert counts.total == len(rows) == sum(counts)
    assert all(counts), "each class has a row"
    assert count_classes([]) == GpuCounts()

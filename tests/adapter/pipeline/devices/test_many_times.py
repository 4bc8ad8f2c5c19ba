"""A page gives one device many timestamps: the work is linear, and the newest times are kept."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

import adapter.pipeline.devices.accounting
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.options import MAX_SAMPLES, PAGE_TIMES
from adapter.pipeline.devices.state import Identity
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from tests.adapter.world import World, make_pod

UTIL = "DCGM_FI_DEV_GPU_UTIL"
NOW = 1000.0
DEVICE = 'UUID="GPU-0",gpu="0"'


def page(times: Sequence[int], pods: int = 0, value: int = 50) -> str:
    """Samples of one device at ``times``, in ms before now, and of its pods at one time."""
    lines = [f"{UTIL}{{{DEVICE}}} {value} {int(NOW * 1000) - time}" for time in times]
    for pod in range(pods):
        labels = f'{DEVICE},namespace="ml",pod="p{pod}",container="c",vgpu="{pod}"'
        lines.append(f"{UTIL}{{{labels}}} 5 {int(NOW * 1000) - 1}")
    return "\n".join(lines) + "\n"


def scraped(text: str, pod: tuple[str, str] | None = None) -> ScrapeResult:
    read = parse(text.encode(), time=NOW)
    return ScrapeResult("http://exporter", "n", read.samples, NOW, read.rejects, pod)


def calls(times: int, pods: int) -> int:
    """Number of function calls for ingesting such a page."""
    world, result, met = World(), scraped(page(range(times), pods)), 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal met
        met += 1

    sys.setprofile(note)
    try:
        world.store.ingest(result)
    finally:
        sys.setprofile(None)
    return met


def test_many_times_beside_many_pods_cost_in_proportion_to_the_samples() -> None:
    assert calls(4 * 180, 4 * 90) < 5 * calls(180, 90)


def test_no_step_compares_more_than_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met, worst = 0, 0
    real = adapter.pipeline.devices.accounting._drop_unseen

    def counted(*arguments: Any) -> None:
        nonlocal met
        met += 1
        real(*arguments)

    monkeypatch.setattr(adapter.pipeline.devices.accounting, "_drop_unseen", counted)
    world = World(make_pod("p"))
    lines = page(range(700)) + page(range(700)).replace(DEVICE, DEVICE + ',namespace="ml",pod="p"')
    steps = world.store.steps(scraped(lines))
    for _ in steps:
        worst, met = max(worst, met), 0
    assert 0 < max(worst, met) <= adapter.pipeline.devices.accounting.FRAMES


@pytest.mark.parametrize("order", [1, -1], ids=["newest first", "oldest first"])
@pytest.mark.parametrize("times", [MAX_SAMPLES + 5, 5 * MAX_SAMPLES])
def test_the_oldest_times_beyond_the_bound_are_left_out_and_counted(order: int, times: int) -> None:
    world = World(make_pod("p"))
    world.store.ingest(scraped(page(range(times)[::order])))
    (exporter,) = world.store._exporters.values()
    (series,) = exporter.all_series.values()
    kept = [round((NOW - time) * 1000) for time in series.history.times]
    assert kept == list(range(MAX_SAMPLES))[::-1]
    assert world.count("too_many_timestamps") == times - MAX_SAMPLES


@pytest.mark.parametrize("order", [1, -1], ids=["newest first", "oldest first"])
def test_a_pod_page_keeps_few_times(order: int) -> None:
    world = World(make_pod("p"))
    world.store.ingest(scraped(page(range(50)[::order]), ("m", "e")))
    (exporter,) = world.store._exporters.values()
    (series,) = exporter.all_series.values()
    kept = [round((NOW - time) * 1000) for time in series.history.times]
    assert kept == list(range(PAGE_TIMES))[::-1]
    assert world.count("too_many_timestamps") == 50 - PAGE_TIMES


def test_a_page_at_the_limit_of_times_loses_none() -> None:
    world = World(make_pod("p"))
    world.store.ingest(scraped(page(range(MAX_SAMPLES))))
    assert "too_many_timestamps" not in world.store.rejects.totals


def test_a_device_never_has_more_than_twice_the_times_that_are_kept() -> None:
    builder = SeriesBuilder(Identity({}, None, None, None, "", replica=False))
    for time in range(5 * MAX_SAMPLES):
        builder.frame(float(time))
        assert len(builder.frames) <= 2 * MAX_SAMPLES

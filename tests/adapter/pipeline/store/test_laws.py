"""Properties that hold for every page."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Metric, Unit
from adapter.pipeline.exposition.page import parse
from tests.adapter.world import World, make_pod, row, said
from tests.examples import bounded

CATALOG = Catalog()
PODS = ("p", "q", "r")
METRICS = ("gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes", "gpu_count",
           "gpu_power_watts", "DCGM_FI_DEV_GPU_UTIL", "dcgm_fi_dev_gpu_util_ratio")  # fmt: skip
SERIES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
          "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_POWER_USAGE")  # fmt: skip
HIGHEST = {Unit.PERCENT: 100.0, Unit.RATIO: 1.0}

NUMBERS = (
    st.floats(0, 100).map(lambda value: f"{value:f}")
    | st.floats(0, 1).map(lambda value: f"{value:f}")
    | st.floats().map(repr)
    | st.sampled_from(["2147483632", "9223372036854775794", "140737488355328.000000", "<<<NULL>>>"])
)
LINES = st.builds(
    lambda series, number, pod, uuid, mig: row(
        series, number, pod, uuid=uuid, more=f'GPU_I_ID="{mig}"' if mig else ""
    ),
    st.sampled_from(SERIES),
    NUMBERS,
    st.sampled_from(("", *PODS)),
    st.sampled_from(("GPU-0", "GPU-1", "GPU-2")),
    st.sampled_from(("", "7", "8")),
)
PAGES = st.lists(LINES, max_size=14)


def everything(world: World, time: float) -> dict[tuple[str, str], float | str]:
    """All answers about the pods and the node."""
    answers: dict[tuple[str, str], float | str] = {
        (pod, metric): said(world.read(pod, metric, time)) for pod in PODS for metric in METRICS
    }
    return answers | {("", metric): said(world.node("n", metric, time)) for metric in METRICS}


def counted(world: World) -> dict[str, int]:
    """The rejects without repeated series, whose number depends on the order of values."""
    return {r: n for r, n in world.store.rejects.totals.items() if r != "duplicate_series"}


def seen(*pages: tuple[str, float, str]) -> World:
    world = World(*map(make_pod, PODS))
    for page, time, origin in pages:
        world.scrape(page, time, origin=origin, node="n")
    return world


@given(PAGES, st.randoms())
def test_the_order_of_samples_does_not_matter(lines: list[str], random: Random) -> None:
    shuffled = random.sample(lines, len(lines))
    one = seen(("".join(lines), 100.0, "a"))
    other = seen(("".join(shuffled), 100.0, "a"))
    assert everything(one, 100.0) == everything(other, 100.0)
    assert counted(one) == counted(other)


@given(PAGES, PAGES)
def test_the_order_of_exporters_does_not_matter(one: list[str], other: list[str]) -> None:
    a, b = ("".join(one), 100.0, "a"), ("".join(other), 101.0, "b")
    assert everything(seen(a, b), 101.0) == everything(seen(b, a), 101.0)


@given(PAGES)
def test_the_same_page_again_changes_no_value(lines: list[str]) -> None:
    page = "".join(lines)
    once, twice = seen((page, 100.0, "a")), seen((page, 100.0, "a"), (page, 100.0, "a"))
    assert everything(once, 100.0) == everything(twice, 100.0)


def scraped(line: str, *, honor: bool) -> str:
    """A line as Prometheus stores it: target labels added, clashing ones renamed."""
    target = {"pod": "dcgm-exporter-x", "namespace": "monitoring", "container": "exporter"}
    extra = 'instance="10.0.0.7:9400",job="dcgm-exporter"'
    head, _, rest = line.partition("{")
    text, _, tail = rest.rpartition("}")
    for key, value in target.items():
        if f'{key}="' in text:
            text = text if honor else text.replace(f'{key}="', f'exported_{key}="')
        if not honor or f'{key}="' not in text:
            extra += f',{key}="{value}"'
    return f"{head}{{{text},{extra}}}{tail}"


@given(PAGES, st.booleans())
def test_labels_added_by_a_scrape_change_nothing(lines: list[str], honor: bool) -> None:
    direct = seen(("".join(lines), 100.0, "a"))
    through = seen(("".join(scraped(line, honor=honor) for line in lines), 100.0, "a"))
    assert everything(direct, 100.0) == everything(through, 100.0)


@bounded(10)
@given(st.lists(PAGES, min_size=1, max_size=4), st.floats(100, 250))
def test_no_reading_breaks_its_promise(pages: list[list[str]], now: float) -> None:
    world = seen(*(("".join(page), 100.0 + 5 * i, "a") for i, page in enumerate(pages)))
    for name, metric in CATALOG.metrics.items():
        for answer in [*(world.read(p, name, now) for p in PODS), world.node("n", name, now)]:
            assert isinstance(answer, Absence) or kept(answer, metric, world, now)


def kept(answer: Reading, metric: Metric, world: World, now: float) -> bool:
    highest = HIGHEST.get(metric.unit, math.inf)
    return (
        math.isfinite(answer.value)
        and all(0 <= device.value <= highest for device in answer.devices)
        and 0 <= answer.value <= highest * (1 + 1e-12)
        and now - world.options.oldest < answer.time <= max(now, 115.0)
        and answer.expires == answer.time + world.options.oldest
    )


@given(st.binary(max_size=300))
def test_no_bytes_make_a_value(page: bytes) -> None:
    rows = parse(page, time=100.0, wanted=CATALOG.series).samples
    assert all(row.name in CATALOG.series for row in rows)

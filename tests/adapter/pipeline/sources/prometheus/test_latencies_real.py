"""Latencies of stored series are those of the pages, side by side on real engines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.answers.api.test_latencies import BOUNDS, TTFT, page
from tests.adapter.pipeline.sources.conftest import running, settled
from tests.adapter.pipeline.sources.prometheus import engines
from tests.adapter.pipeline.sources.prometheus.engines import Pages, scrape_config, serving
from tests.adapter.pipeline.sources.prometheus.nativepages import protobuf
from tests.adapter.pipeline.sources.prometheus.test_nativehistograms import classic
from tests.adapter.world import World, make_pod, reading
from tests.needs import PROMETHEUS, VICTORIAMETRICS, needs

METRICS = [f"{TTFT}_{statistic}" for statistic in ("p50", "p90", "p99", "mean")]
FIRST = page(100, 7, 0, 3, 0, 1, total=12.5) + page(0, 0, 0, 0, 0, 0, engine="1")
LATER = page(130, 9, 4, 33, 2, 1, total=52.5) + page(5, 0, 20, 0, 0, 0, engine="1", total=7.25)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("prometheus", marks=needs(PROMETHEUS)),
        pytest.param("victoria-metrics", marks=needs(VICTORIAMETRICS)),
    ],
)
async def test_stored_and_direct_latencies_are_equal(engine: str, tmp_path: Path) -> None:
    direct, stored = (World(make_pod("a", gpus={})) for _ in range(2))
    for world in (direct, stored):
        assert [world.value("a", metric, time.time()) for metric in METRICS]
    began = time.time()
    for age, text in ((5.0, FIRST), (0.0, LATER)):
        direct.scrape(text, began - age, origin="u", pod=("ml", "a"), serves=True)
    expected = [direct.value("a", metric, began) for metric in METRICS]
    assert all(isinstance(value, float) for value in expected), expected

    labels = {"namespace": "ml", "pod": "a"}
    with serving(Pages({"/metrics": FIRST})) as pages:
        config = scrape_config(pages.port, [{"job_name": "vllm", "labels": labels}])
        with engines.engine(engine, tmp_path, config) as url:
            options = PrometheusOptions(url, interval=0.2, lookback=65.0)
            groups, wanted = Catalog().groups, stored.store.demand.series
            source = PrometheusSource(options, stored.store, groups, wanted=wanted)
            asked = {state.group.name for state in source.groups}
            assert "time_to_first_token" in asked
            assert "request_time" not in asked, "nobody asks for it"
            async with running(source.run):
                await settled(lambda: stored.store.size.exporters > 0)
                pages.texts["/metrics"] = LATER
                await settled(
                    lambda: [stored.value("a", m, time.time()) for m in METRICS] == expected
                )


def native(values: list[float]) -> bytes:
    """A page with the values in native and in classic buckets, as client_golang writes both."""
    labels = {"engine": "0", "model_name": "opal-7b"}
    return protobuf("vllm:time_to_first_token_seconds", labels, values, [float(b) for b in BOUNDS])


@needs(PROMETHEUS)
async def test_native_histograms_give_what_pages_give_and_more_precisely(tmp_path: Path) -> None:
    """A Prometheus that keeps native histograms keeps nothing of the classic ones beside them."""
    before = [0.05] * 20 + [7.0]
    later = before + [0.12] * 10 + [0.31, 0.37, 0.42] * 3 + [1.4]
    direct, stored = (World(make_pod("a", gpus={})) for _ in range(2))
    for world in (direct, stored):
        assert [world.value("a", metric, time.time()) for metric in METRICS]
    began = time.time()
    for age, values in ((5.0, before), (0.0, later)):
        direct.scrape(classic(values), began - age, origin="u", pod=("ml", "a"), serves=True)
    labels = {"namespace": "ml", "pod": "a"}
    with serving(Pages(messages={"/metrics": native(before)})) as pages:
        config = scrape_config(pages.port, [{"job_name": "vllm", "labels": labels}])
        feature = "--enable-feature=native-histograms"
        with engines.engine("prometheus", tmp_path, config, feature) as url:
            options = PrometheusOptions(url, interval=0.2, lookback=65.0)
            wanted = stored.store.demand.series
            source = PrometheusSource(options, stored.store, Catalog().groups, wanted=wanted)
            async with running(source.run):
                await settled(lambda: stored.store.size.exporters > 0)
                pages.messages["/metrics"] = native(later)
                await settled(lambda: isinstance(stored.value("a", METRICS[0], time.time()), float))
            assert engines.series(url, "vllm:time_to_first_token_seconds_bucket") == 0
            now = time.time()
            for metric, exact in zip(METRICS[:3], (0.12, 0.42, 1.4), strict=True):
                page, kept = (reading(w.read("a", metric, now)) for w in (direct, stored))
                for answer, width in ((page, 2.5), (kept, 1.1)):
                    (part,) = answer.devices
                    assert part.increase is not None
                    quantile = part.increase.quantile(float(metric[-2:]) / 100)
                    assert quantile is not None
                    assert quantile.low <= exact <= quantile.high <= quantile.low * width
            means = [w.value("a", METRICS[3], now) for w in (direct, stored)]
            assert means == pytest.approx([sum(later[21:]) / 20] * 2)

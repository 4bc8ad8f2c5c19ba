"""The Prometheus source against a real Prometheus that scrapes a real page.

Two jobs scrape the same exporter, as ServiceMonitors do with ``honorLabels`` false and
true. The decoded samples are compared with those of prometheus_api_client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from prometheus_api_client import PrometheusConnect

from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.pipeline.sources.conftest import Recorder, running, settled
from tests.adapter.pipeline.sources.prometheus import engines
from tests.adapter.pipeline.sources.prometheus.engines import Pages, serving
from tests.needs import PROMETHEUS, needed_by_fixture

PAGE = """\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pod="inf-0",namespace="ml",container="srv"} 87
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",pod="",namespace="",container=""} 0
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",pod="inf-0",namespace="ml",container="srv"} 1024
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",pod="",namespace="",container=""} NaN
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-c"} 1
"""
GROUPS = {"usage": ("DCGM_FI_DEV_GPU_UTIL",), "memory": ("DCGM_FI_DEV_FB_USED",)}
CONFIG = """\
global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs:
- job_name: honor-false
  honor_labels: false
  static_configs: [{{targets: ["localhost:{port}"], labels: {{pod: dcgm-x, namespace: gpu}}}}]
- job_name: honor-true
  honor_labels: true
  static_configs: [{{targets: ["127.0.0.1:{port}"], labels: {{pod: dcgm-x, namespace: gpu}}}}]
"""


@dataclass
class Engine:
    """A running Prometheus and its exporter's port."""

    url: str
    exporter: int


@pytest.fixture(scope="module")
@needed_by_fixture(PROMETHEUS)
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("prometheus")
    with serving(Pages({"/metrics": PAGE})) as pages:
        config = CONFIG.format(port=pages.port)
        with engines.engine("prometheus", folder, config) as url:
            yield Engine(url, pages.port)


Exposed = tuple[str, tuple[tuple[str, str], ...], float, str]


def sample(row: Sample) -> Exposed:
    return row.name, tuple(sorted(row.labels.items())), row.time, str(row.value)


def read_by_the_library(url: str) -> set[Exposed]:
    samples: set[Exposed] = set()
    with PrometheusConnect(url=url) as client:
        for series in client.custom_query('{__name__=~"DCGM_.*"}[5m]'):
            labels = dict(series["metric"])
            name = labels.pop("__name__")
            for when, value in series["values"]:
                key = (name, tuple(sorted(labels.items())), float(when), str(float(value)))
                samples.add(key)
    return samples


async def test_decoded_samples_equal_those_of_prometheus(engine: Engine, sink: Recorder) -> None:
    options = PrometheusOptions(engine.url, interval=0.1, lookback=60.0)
    source = PrometheusSource(options, sink, GROUPS)

    def samples() -> list[Exposed]:
        return [sample(row) for result in sink.results for row in result.samples]

    async with running(source.run):
        await settled(lambda: len(set(samples())) >= 10 * 4)
        assert source.problem(time.time()) is None
        assert all(not state.last_error for state in source.groups)
    ours = set(samples())
    theirs = await asyncio.to_thread(read_by_the_library, engine.url)
    assert ours <= theirs
    assert {(name, labels) for name, labels, _, _ in ours} == {
        (name, labels) for name, labels, _, _ in theirs
    }
    times = {when for _, _, when, _ in ours}
    assert len(times) > 2, "every sample must carry the time it was scraped"


async def test_both_labellings_arrive_as_prometheus_wrote_them(
    engine: Engine, sink: Recorder
) -> None:
    options = PrometheusOptions(engine.url, interval=0.1, lookback=60.0)
    origins = {f"localhost:{engine.exporter}", f"127.0.0.1:{engine.exporter}"}
    async with running(PrometheusSource(options, sink, GROUPS).run):
        await sink.until(lambda: {result.origin for result in sink.results} == origins)
    rows = [row for result in sink.results for row in result.samples if row.name.endswith("UTIL")]
    gpus = {(row.labels["job"], row.labels["UUID"]): row.labels for row in rows}
    names = {key: (labels.get("exported_pod"), labels.get("pod")) for key, labels in gpus.items()}
    # An idle GPU's empty labels vanish; its absent ones become the exporter's own.
    assert names == {
        ("honor-false", "GPU-a"): ("inf-0", "dcgm-x"),
        ("honor-false", "GPU-b"): (None, "dcgm-x"),
        ("honor-false", "GPU-c"): (None, "dcgm-x"),
        ("honor-true", "GPU-a"): (None, "inf-0"),
        ("honor-true", "GPU-b"): (None, None),
        ("honor-true", "GPU-c"): (None, "dcgm-x"),
    }


async def test_an_invalid_query_is_reported_with_the_message_of_prometheus(
    engine: Engine, sink: Recorder
) -> None:
    options = PrometheusOptions(engine.url, interval=0.1, lookback=90.0, query={"usage": "sum("})
    source = PrometheusSource(options, sink, GROUPS)
    async with running(source.run):
        await settled(lambda: source.groups[0].failures > 0)
        await sink.until(lambda: len(sink.results) > 0)
        assert "parse error" in source.groups[0].last_error
    assert {row.name for result in sink.results for row in result.samples} == {
        "DCGM_FI_DEV_FB_USED"
    }


async def test_an_override_with_an_instant_vector_is_read_too(
    engine: Engine, sink: Recorder
) -> None:
    query = {"usage": "max by (instance, UUID) (DCGM_FI_DEV_GPU_UTIL)"}
    options = PrometheusOptions(engine.url, interval=0.1, lookback=90.0, query=query)
    source = PrometheusSource(options, sink, {"usage": ("DCGM_FI_DEV_GPU_UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    row = sink.results[0].samples[0]
    assert (row.name, sorted(row.labels)) == ("DCGM_FI_DEV_GPU_UTIL", ["UUID", "instance"])

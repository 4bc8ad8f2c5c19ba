"""One table, two engines: pages of exporters, scraped and stored by a real engine.

Prometheus and VictoriaMetrics scrape the same pages with the same configuration. The values of the
pods must be the same, regardless of the labels that the scrape produced.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from adapter.server.serve.build import query_groups
from adapter.server.serve.ownmetrics import queries, rows
from tests.adapter.pipeline.sources.conftest import running, settled
from tests.adapter.pipeline.sources.prometheus.engines import (
    ENGINES,
    Pages,
    engine,
    scrape_config,
    serving,
)
from tests.adapter.world import CATALOG, World, make_pod
from tests.needs import needs

UTIL = "DCGM_FI_DEV_GPU_UTIL"


def dcgm(uuid: str, value: int, more: str) -> str:
    return (
        f'{UTIL}{{gpu="0",UUID="{uuid}",device="nvidia0",modelName="NVIDIA H100"{more}}} {value}\n'
    )


def workload(pod: str, more: str = "") -> str:
    return f',container="srv",namespace="ml",pod="{pod}"{more}'


def accounted(x: str) -> str:
    def pod(name: str, vgpu: str = "") -> str:
        return workload(f"{name}-{x}", f',pod_uid="uid"{vgpu}')

    return (
        dcgm(f"GPU-{x}0", 77, "")
        + dcgm(f"GPU-{x}0", 55, pod("seen", ',vgpu="0"'))
        + dcgm(f"GPU-{x}0", 22, pod("other", ',vgpu="1"'))
        + dcgm(f"GPU-{x}1", 90, "")
        + dcgm(f"GPU-{x}1", 0, pod("blind", ',vgpu="0"'))
        + dcgm(f"GPU-{x}2", 90, "")
        + dcgm(f"GPU-{x}2", 0, pod("whole"))
    )


PAGES = {
    # An unassigned GPU has empty labels up to exporter 3.3.5, none after.
    "/false": dcgm("GPU-0", 10, workload("false-0"))
    + dcgm("GPU-1", 90, ',container="",namespace="",pod=""')
    + dcgm("GPU-2", 90, ""),
    "/true": dcgm("GPU-3", 20, workload("true-0")) + dcgm("GPU-4", 90, ""),
    "/uid": dcgm("GPU-5", 30, workload("uid-0", ',pod_uid="uid"'))
    + dcgm("GPU-6", 90, workload("uid-1", ',pod_uid="of-its-predecessor"')),
    "/renamed": dcgm("GPU-7", 40, workload("renamed-0")),
    "/gone": dcgm("GPU-8", 50, workload("gone-0")),
    "/amd": 'gpu_gfx_activity{card_model="MI300X",container="srv",gpu_compute_partition_type="spx",'
    'gpu_id="0",gpu_partition_id="0",gpu_uuid="amd-0",hostname="n",namespace="ml",'
    'pod="amd-0"} 60\n',
    "/intel": 'xpum_engine_ratio{uuid="xpu-0",node="n",kube_pod="intel-0",kube_namespace="ml",'
    'kube_container="srv"} 0.7\n',
    "/hami": 'hami_container_device_utilization_ratio{namespace="ml",pod="hami-0",container="srv",'
    'device_uuid="GPU-h"} 80\n',
    # Exporter 4.8.2 with --kubernetes-virtual-gpus: with and without visible processes, and whole.
    "/accounted-false": accounted("f"),
    "/accounted-true": accounted("t"),
    "/vllm": 'vllm:num_requests_waiting{engine="0",model_name="m"} 3\n'
    'vllm:num_requests_waiting{engine="1",model_name="m"} 4\n',
    "/twice": 'vllm:num_requests_waiting{engine="0",model_name="m"} 4\n'
    'vllm:num_requests_waiting{engine="1",model_name="m"} 5\n',
}
EXPORTER = {"pod": "dcgm-x", "namespace": "gpu", "service": "dcgm", "container": "exporter"}
RENAME = [
    {"source_labels": [f"exported_{name}"], "regex": "(.+)", "target_label": name}
    for name in ("pod", "namespace", "container")
] + [{"action": "labeldrop", "regex": "exported_.*"}]


def job(path: str, **more: object) -> dict[str, object]:
    made = {"job_name": path[1:], "metrics_path": path, "honor_labels": False, "labels": EXPORTER}
    return made | more


JOBS = [
    job("/false"),
    job("/true", honor_labels=True),
    job("/uid"),
    job("/renamed", metric_relabel_configs=RENAME),
    job("/gone"),
    job("/amd"),
    job("/intel"),
    job("/hami"),
    job("/accounted-false"),
    job("/accounted-true", honor_labels=True),
    job("/vllm", labels={"pod": "vllm-0", "namespace": "ml", "container": "vllm"}),
    job("/twice", labels={"pod": "twice-0", "namespace": "ml"}),
    # A second job scrapes the same page and maps the pod's labels.
    job(
        "/twice",
        job_name="labelmap",
        labels={"pod": "twice-0", "namespace": "ml", "team": "a", "version": "2", "engine": "x"},
    ),
]
PODS = [
    *(make_pod(name) for name in ("false-0", "true-0", "uid-0", "uid-1", "renamed-0", "gone-0")),
    *(make_pod(f"{name}-{x}") for name in ("seen", "other", "blind", "whole") for x in "ft"),
    make_pod("amd-0", gpus={"amd.com/gpu": 1}),
    make_pod("intel-0", gpus={"gpu.intel.com/i915": 1}),
    make_pod("hami-0"),
    make_pod("vllm-0", gpus={}),
    make_pod("twice-0", gpus={}),
    make_pod("dcgm-x", namespace="gpu", gpus={}),
]
EXPECTED: dict[tuple[str, str], float | str] = {
    ("false-0", "gpu_utilization"): 10.0,
    ("true-0", "gpu_utilization"): 20.0,
    ("uid-0", "gpu_utilization"): 30.0,
    ("uid-1", "gpu_utilization"): "pod_uid_mismatch",
    ("renamed-0", "gpu_utilization"): 40.0,
    ("gone-0", "gpu_utilization"): 50.0,
    **{
        (f"{name}-{x}", "gpu_utilization"): value
        for name, value in (
            ("seen", 55.0),
            ("other", 22.0),
            ("blind", "zero_on_busy_device"),
            ("whole", 90.0),
        )
        for x in "ft"
    },
    ("amd-0", "gpu_utilization"): 60.0,
    ("intel-0", "gpu_utilization"): 70.0,
    ("hami-0", "gpu_utilization"): 80.0,
    ("vllm-0", "inference_requests_waiting"): 7.0,
    ("twice-0", "inference_requests_waiting"): 9.0,
}


@dataclass
class Engine:
    """A running engine and the pages that it scrapes."""

    url: str
    pages: Pages


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=needs(program)) for name, program in ENGINES.items()],
)
def scraped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp(str(request.param))
    with serving(Pages(dict(PAGES))) as pages:
        config = scrape_config(pages.port, JOBS)
        with engine(str(request.param), folder, config) as url:
            yield Engine(url, pages)


class Reader:
    """A store fed from the engine, and what it serves."""

    def __init__(
        self,
        url: str,
        age_limit: float = 30.0,
        own: Sequence[MetricSettings] = (),
        *,
        exact: bool = False,
    ) -> None:
        options = TelemetryOptions(age_limit=age_limit, window=5.0, scrape_interval=1.0)
        catalog = CATALOG.extended(*rows(own, CATALOG))
        self.world = World(*PODS, options=options, catalog=catalog)
        self.store = self.world.store
        asked = queries(own)
        self.source = PrometheusSource(
            PrometheusOptions(url, interval=0.2, lookback=age_limit, query=asked),
            self.store,
            query_groups(catalog, asked, exact=exact),
        )

    def value(self, name: str, metric: str) -> float | str:
        return self.world.value(name, metric, time.time())

    def values(self) -> dict[tuple[str, str], float | str]:
        return {key: self.value(*key) for key in EXPECTED}


async def test_every_labelling_and_every_vendor_gives_pods_their_values(
    scraped: Engine,
) -> None:
    reader = Reader(scraped.url)
    async with running(reader.source.run):
        # The answers of GPUs and of inference servers arrive one after the other.
        unread = {"pod_not_named", "server_not_scraped"}
        await settled(lambda: unread.isdisjoint(reader.values().values()))
        assert reader.values() == EXPECTED
        assert all(not state.last_error for state in reader.source.groups)
        assert reader.source.problem(time.time()) is None


async def test_an_exporter_that_disappears_and_returns_is_absent_and_never_0(
    scraped: Engine,
) -> None:
    reader = Reader(scraped.url, age_limit=3.0)
    seen: list[float | str] = []

    def sight() -> float | str:
        value = reader.value("gone-0", "gpu_utilization")
        if not seen or seen[-1] != value:
            seen.append(value)
        return value

    async with running(reader.source.run):
        await settled(lambda: sight() == 50.0)
        page = scraped.pages.texts.pop("/gone")
        try:
            await settled(lambda: isinstance(sight(), str))
        finally:
            scraped.pages.texts["/gone"] = page
        # After a restart, the pod has another GPU.
        scraped.pages.texts["/gone"] = page.replace("GPU-8", "GPU-9")
        await settled(lambda: sight() == 50.0)
    assert {value for value in seen if isinstance(value, float)} == {50.0}
    assert reader.store.rejects.totals.get("nan", 0) == 0, "staleness markers are not samples"


async def test_a_query_with_an_instant_vector_gives_the_same_on_both(scraped: Engine) -> None:
    reader = Reader(scraped.url)
    kept = "__name__, instance, UUID, exported_pod, exported_namespace"
    query = f'max by ({kept}) ({UTIL}{{job="false"}})'
    source = PrometheusSource(
        PrometheusOptions(
            scraped.url,
            lookback=90.0,
            interval=0.2,
            query={"utilization": query},
            params={"nocache": "1"},
        ),
        reader.store,
        {"utilization": (UTIL, "x")},
    )
    async with running(source.run):
        await settled(lambda: reader.value("false-0", "gpu_utilization") == 10.0)
    assert reader.value("true-0", "gpu_utilization") == "pod_not_named"


OWN: dict[str, dict[str, object]] = {
    # The scrape's labels name the server's pod; one query adds up its engines.
    "queue": {"query": "sum by (namespace, pod) (vllm:num_requests_waiting)", "scale": 2},
    # Samples of a range keep their own times.
    "waiting": {"query": 'vllm:num_requests_waiting{engine="1"}[30s]'},
    # Behind honorLabels: false the workload is in exported_pod.
    "busy": {"query": f'max by (exported_namespace, exported_pod) ({UTIL}{{job="false"}})'},
    "hottest": {"series": UTIL, "labels": {"gpu": "0"}, "combine": "max"},
}
OWN_EXPECTED = {
    ("vllm-0", "queue"): 14.0,
    ("vllm-0", "waiting"): 4.0,
    ("false-0", "busy"): 10.0,
    ("false-0", "hottest"): 10.0,
    ("false-0", "queue"): "no_value",
}


async def test_user_metrics_are_the_same_on_both(scraped: Engine) -> None:
    own = [MetricSettings.model_validate({"name": name, **row}) for name, row in OWN.items()]
    reader = Reader(scraped.url, own=own)

    def found() -> dict[tuple[str, str], float | str]:
        return {key: reader.value(*key) for key in OWN_EXPECTED}

    async with running(reader.source.run):
        await settled(lambda: found() == OWN_EXPECTED)
        assert all(not state.last_error for state in reader.source.groups)


async def test_a_query_for_each_exact_name_gives_the_same(scraped: Engine) -> None:
    reader = Reader(scraped.url, exact=True)
    async with running(reader.source.run):
        await settled(lambda: reader.values() == EXPECTED)
        assert all(not state.last_error for state in reader.source.groups)


def test_no_query_exceeds_the_limit_of_engines() -> None:
    """VictoriaMetrics' ``-search.maxQueryLen`` is 16 KiB; most proxies take a URL of 8 KiB."""
    longest = max(
        len(quote(QueryGroup(name, names).promql(90.0, 'cluster="a"'), safe=""))
        for name, names in CATALOG.groups.items()
    )
    assert longest < 7500

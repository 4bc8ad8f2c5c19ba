"""What a replay asks a store for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from adapter.hpa import from_manifest
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.tools.replay.neededseries import ResourceNames, device_series, selector
from adapter.tools.replay.storequeries import StoredSeries, StoredSpan, StoreQueries
from adapter.tools.replay.storespans import SpanReader, StoreRange
from tests.adapter.tools.replay.day import METRIC, manifest

NAMES = ResourceNames(GpuResources())


class Asked(StoreQueries):
    """Answers by the name of a series in the expression."""

    def __init__(self, answers: Mapping[str, list[StoredSeries]]) -> None:
        super().__init__(PrometheusOptions("http://localhost", 60))
        self.answers = answers
        self.expressions: list[str] = []

    async def read(self, expression: str, start: float, end: float) -> StoredSpan:
        self.expressions.append(expression)
        return StoredSpan(
            [row for name, rows in self.answers.items() if name in expression for row in rows]
        )


def row(name: str, **labels: str) -> StoredSeries:
    return StoredSeries(name, labels, labels.get("instance", "x"), [(5.0, 1.0)])


def read(asked: Asked, *, exact: bool = False, sizes: bool = False) -> Mapping[str, StoredSpan]:
    spec = from_manifest(manifest())
    names = device_series(Catalog(), spec, cross_checks=True, latencies=sizes)
    options = PrometheusOptions("http://localhost", 60, matchers='cluster="a"')
    wanted = StoreRange(options, 0, 60, names, {}, 15, NAMES, exact)
    return asyncio.run(SpanReader(asked, wanted, spec).read(0.0, 60.0))


ANSWERS = {
    "kube_pod_info": [row("kube_pod_info", namespace="ml", pod="p", uid="1")],
    "kube_pod_container_resource_requests": [
        row("r", namespace="ml", node="n", uid="1"),
        row("r", namespace="shares", node="n", uid="2"),
        row("r", namespace="elsewhere", node="m", uid="3"),
    ],
    f'{METRIC}"': [],
    METRIC: [
        row(METRIC, exported_namespace="ml", instance="10.0.0.7:9400"),
        row(METRIC, exported_namespace="other", instance="10.0.0.8:9400"),
    ],
    "vllm:num_requests_running": [
        row("vllm:num_requests_running", namespace="ml", pod="p", instance="10.0.0.20:8000")
    ],
    "DCGM_FI_DEV_POWER_USAGE": [row("DCGM_FI_DEV_POWER_USAGE", instance="10.0.0.7:9400")],
}


def test_only_what_concerns_the_pods_is_read() -> None:
    asked = Asked(ANSWERS)
    spans = read(asked)
    assert all('cluster="a"' in expression for expression in asked.expressions)
    pods = next(expression for expression in asked.expressions if "kube_pod_info" in expression)
    assert 'namespace=~"ml|shares"' in pods
    *_, own, others, queue = asked.expressions
    assert METRIC in own
    assert "instance" not in own
    assert METRIC not in others
    assert r'instance=~"10\\.0\\.0\\.7:9400"' in others
    assert "vllm:num_requests_waiting" in queue
    assert 'namespace="ml"' in queue
    assert {series.origin for series in spans["devices"].all_series} == {
        "10.0.0.7:9400",
        "10.0.0.20:8000",
    }


def test_an_engine_that_needs_exact_names_gets_one_query_for_each() -> None:
    asked = Asked(ANSWERS)
    read(asked, exact=True)
    devices = [expression for expression in asked.expressions if expression.startswith("DCGM")]
    assert len(devices) > 5
    assert f'{METRIC}{{cluster="a"}}' in devices


def test_nothing_is_asked_about_devices_without_a_pod() -> None:
    asked = Asked({})
    read(asked)
    assert not [expression for expression in asked.expressions if "DCGM" in expression]


def test_a_text_in_a_selector_cannot_leave_its_quotes() -> None:
    assert selector(("a",), {"x": 'b"} or c{y="\\'}) == 'a{x="b\\"} or c{y=\\"\\\\"}'


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia_com_mig_1g_5gb_shared", "nvidia.com/mig-1g.5gb.shared"),
        ("nvidia_com_gpumem_percentage", "nvidia.com/gpumem-percentage"),
        ("nvidia_com_gpucores", "nvidia.com/gpucores"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("gpu_intel_com_i915", "gpu.intel.com/i915"),
        ("habana_ai_gaudi", "habana.ai/gaudi"),
        ("volcano_sh_vgpu_number", "volcano.sh/vgpu-number"),
        ("cpu", None),
    ],
)
def test_resources_have_their_names_again(written: str, name: str | None) -> None:
    assert NAMES.find(written) == name


def test_memory_and_compute_are_read_of_the_pods_of_the_namespace_only() -> None:
    total = row("DCGM_FI_DEV_FB_TOTAL", exported_namespace="ml", instance="10.0.0.7:9400")
    asked = Asked({**ANSWERS, "DCGM_FI_DEV_FB_TOTAL": [total]})
    spans = read(asked, sizes=True)
    asks = [expression for expression in asked.expressions if "DCGM_FI_DEV_FB_TOTAL" in expression]
    assert len(asks) == 2
    assert 'namespace="ml"' in asks[0]
    assert 'exported_namespace="ml"' in asks[1]
    assert total in spans["devices"].all_series
    assert not any("DCGM_FI_DEV_FB_TOTAL" in expression for expression in _asked_without_sizes())


def _asked_without_sizes() -> list[str]:
    asked = Asked(ANSWERS)
    read(asked)
    return asked.expressions

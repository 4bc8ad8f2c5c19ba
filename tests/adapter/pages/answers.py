"""Answers of a Prometheus that scraped with ``honorLabels: false``."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

MIB: Final = 1048576
WORKER: Final = "vllm-agg-0-vllmdecodeworker-5fljt"
EXPORTER: Final = "nvidia-dcgm-exporter-hblfm"
NODE: Final = "ip-100-64-171-120.ec2.internal"
PAGES: Final = tuple(
    f"20_promapi_honorlabels_false_{name}.json" for name in ("FB_USED", "GPU_UTIL", "POWER_USAGE")
)
ASKED: Final = 1771529466.0


def _asked() -> World:
    """One round of three queries; the exporter is known by its own pod."""
    world = World(
        make_pod(EXPORTER, namespace="gpu-operator", gpus={}, node=NODE),
        make_pod(WORKER, namespace="dynamo-workload", node=NODE),
    )
    memo = SeriesMemo()
    for page in PAGES:
        answer = decode(captured_page(page).encode(), memo, QueryGroup("board", ()))
        for origin, rows in answer.samples.items():
            world.store.ingest(ScrapeResult(origin, None, rows, ASKED, answer.rejects))
    return world


SCENES: Final = {
    "20, three answers": Scene(
        pages=PAGES,
        build=_asked,
        now=ASKED,
        says={
            f"dynamo-workload/{WORKER}": (
                Line("DCGM_FI_DEV_FB_USED", 74198, "exported_pod"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "exported_pod"),
                Line("DCGM_FI_DEV_POWER_USAGE", 115.215, "exported_pod"),
                Line("gpu_utilization", 0, "GPU_UTIL"),
                Line("gpu_utilization_max", 0, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_utilization_of_request", 0, "it asked for all of it"),
                Line("gpu_memory_used_bytes", 74198 * MIB, "MiB in bytes"),
                Line("gpu_power_watts", 115.215, "the board's"),
                Line("gpu_count", 1, "one of eight"),
                Line("gpu_memory_utilization", "metric_not_exported", "neither free nor total"),
                Line("gpu_utilization", 0, "exported_container", "container=main"),
                Line("gpu_utilization", 0, "by model", "model=NVIDIA-H100-80GB-HBM3"),
            ),
            f"gpu-operator/{EXPORTER}": (
                Line("gpu_utilization", "self_attribution", "seven idle devices seem its own"),
                Line("gpu_count", "self_attribution", "and it holds no GPU by its spec"),
            ),
            f"node:{NODE}": (
                Line("DCGM_FI_DEV_FB_USED", 74198, "sum of eight"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "mean of eight"),
                Line("DCGM_FI_DEV_POWER_USAGE", 73.52875, "mean of eight"),
                Line("gpu_utilization", 0, "mean of eight"),
                Line("gpu_utilization_max", 0, "of eight"),
                Line("gpu_utilization_imbalance", 0, "all idle"),
                Line("gpu_memory_used_bytes", 74198 * MIB, "sum of eight"),
                Line("gpu_power_watts", 73.52875, "mean of eight"),
                Line("gpu_count", 8, "assigned or not"),
            ),
        },
        rejects={"self_attribution": 21},
    ),
}

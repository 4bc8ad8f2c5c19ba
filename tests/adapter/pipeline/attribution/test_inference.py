"""Metrics of inference servers, from a page or a store to the value of a pod."""

from __future__ import annotations

import pytest

from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.pipeline.attribution.serverscene import SCRAPES, VLLM, WAITING, T, serve, store
from tests.adapter.world import CATALOG, World, make_pod, row

RUNNING = "inference_requests_running"
CACHE = "inference_kv_cache_utilization"
OLD_VLLM = """\
vllm:num_requests_running{model_name="qwen"} 4.0
vllm:num_requests_waiting{model_name="qwen"} 8.0
vllm:gpu_cache_usage_perc{model_name="qwen"} 0.375
"""
TRITON = """\
nv_inference_pending_request_count{model="a",version="1"} 3
nv_inference_pending_request_count{model="a",version="2"} 1
nv_inference_pending_request_count{model="b",version="1"} 4
nv_gpu_utilization{gpu_uuid="GPU-9"} 0.5
"""
TGI = "tgi_queue_size 8\n\ntgi_batch_current_size 2\n"
SGLANG = """\
sglang:num_queue_reqs{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0"} 8.0
sglang:num_running_reqs{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0"} 2.0
sglang:token_usage{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0"} 0.375
"""
NIM = """\
# HELP num_requests_running Number of requests currently running on GPU
num_requests_running{model_name="meta/llama-3.1-8b-instruct"} 2.0
num_requests_waiting{model_name="meta/llama-3.1-8b-instruct"} 8.0
num_request_max{model_name="meta/llama-3.1-8b-instruct"} 2048.0
gpu_cache_usage_perc{model_name="meta/llama-3.1-8b-instruct"} 0.375
"""
TENSORRT_LLM = """\
trtllm_num_requests_running{engine_type="undefined",model_name="m"} 2.0
trtllm_num_requests_waiting{engine_type="undefined",model_name="m"} 8.0
trtllm_num_scheduled_requests{engine_type="undefined",model_name="m"} 2.0
trtllm_kv_cache_utilization{engine_type="undefined",model_name="m"} 0.375
trtllm_kv_cache_host_utilization{engine_type="undefined",model_name="m"} 0.9
"""
DYNAMO_WORKER = """\
dynamo_component_inflight_requests{dynamo_component="backend",dynamo_endpoint="generate"} 10
dynamo_component_gpu_cache_usage_percent{dp_rank="0",model="m"} 0.375
vllm:num_requests_running{dynamo_component="backend",engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{dynamo_component="backend",engine="0",model_name="m"} 8.0
vllm:kv_cache_usage_perc{dynamo_component="backend",engine="0",model_name="m"} 0.375
"""
TEI = """\
te_request_count{method="single"} 41
te_batch_next_size_sum 120
te_batch_next_size_count 40
te_queue_size 8
"""
LLAMACPP = """\
# TYPE llamacpp:requests_processing gauge
llamacpp:prompt_tokens_seconds 812.5
llamacpp:requests_processing 2
llamacpp:requests_deferred 8
llamacpp:n_busy_slots_per_decode 1.9
"""
OLD_LLAMACPP = LLAMACPP + "llamacpp:kv_cache_usage_ratio 0.375\nllamacpp:kv_cache_tokens 1536\n"
PAGES: dict[str, tuple[str, dict[str, float | str]]] = {
    "vLLM": (VLLM, {WAITING: 8.0, RUNNING: 6.0, CACHE: 37.5}),
    "vLLM before V1": (OLD_VLLM, {WAITING: 8.0, RUNNING: 4.0, CACHE: 37.5}),
    "Triton": (TRITON, {WAITING: 8.0, CACHE: "metric_not_exported"}),
    "TGI": (TGI, {WAITING: 8.0, RUNNING: 2.0, CACHE: "metric_not_exported"}),
    "SGLang": (SGLANG, {WAITING: 8.0, RUNNING: 2.0, CACHE: 37.5}),
    "NIM 1": (NIM, {WAITING: 8.0, RUNNING: 2.0, CACHE: 37.5}),
    "TensorRT-LLM": (TENSORRT_LLM, {WAITING: 8.0, RUNNING: 2.0, CACHE: 37.5}),
    "a worker of Dynamo": (DYNAMO_WORKER, {WAITING: 8.0, RUNNING: 2.0, CACHE: 37.5}),
    "text-embeddings-inference": (
        TEI,
        {WAITING: 8.0, RUNNING: "metric_not_exported", CACHE: "metric_not_exported"},
    ),
    "llama.cpp": (LLAMACPP, {WAITING: 8.0, RUNNING: 2.0, CACHE: "metric_not_exported"}),
    "an older llama.cpp": (OLD_LLAMACPP, {WAITING: 8.0, RUNNING: 2.0, CACHE: 37.5}),
}
OF_EIGHT = {name: page for name, (page, _) in PAGES.items()}
"""Pages of servers in whose queue 8 requests wait."""


@pytest.mark.parametrize(("page", "expected"), PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("gpus", [{}, {"nvidia.com/gpu": 1}], ids=["no GPU", "a GPU"])
def test_a_server_page_describes_the_pod_that_serves_it(
    page: str, expected: dict[str, float | str], gpus: dict[str, int]
) -> None:
    world = World(make_pod("llm", gpus=gpus, node="n1"))
    serve(world, page)
    assert {name: world.value("llm", name, T) for name in expected} == expected


@pytest.mark.parametrize("target", SCRAPES.values(), ids=SCRAPES)
@pytest.mark.parametrize("page", OF_EIGHT.values(), ids=OF_EIGHT)
def test_a_scrape_by_prometheus_changes_no_value(page: str, target: dict[str, str]) -> None:
    world = World(make_pod("llm", gpus={}))
    store(world, page, target)
    assert world.value("llm", WAITING, T) == 8.0


def test_a_page_that_two_jobs_scrape_counts_once() -> None:
    world = World(make_pod("llm", gpus={}))
    target = {"pod": "llm", "namespace": "ml"}
    store(world, VLLM, target | {"job": "pods", "instance": "10.0.0.5:8000"})
    more = {"job": "ml/llm", "container": "server", "instance": "10.0.0.5:15020"}
    store(world, VLLM, target | more, origin="10.0.0.5:15020")
    assert world.value("llm", WAITING, T) == 8.0


ADDED = {
    "a job with labelmap": {"app_kubernetes_io_name": "llm", "team": "a"},
    "Thanos receive": {"receive_replica": "1"},
    "a store's replica label that nobody listed": {"prom_ha": "b", "cluster": "c"},
    "a changed target label": {"version_of_the_chart": "2"},
}


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
@pytest.mark.parametrize("page", OF_EIGHT.values(), ids=OF_EIGHT)
def test_labels_added_by_a_scrape_or_a_store_do_not_create_parts(
    page: str, added: dict[str, str]
) -> None:
    world = World(make_pod("llm", gpus={}))
    target = {"pod": "llm", "namespace": "ml", "instance": "10.0.0.5:8000", "job": "a"}
    read = parse(page.encode(), time=T, wanted=CATALOG.series)
    for_both = [target, target | added | {"job": "b"}]
    rows = [
        Sample(r.name, dict(r.labels) | more, r.value, r.time)
        for more in for_both
        for r in read.samples
    ]
    world.store.ingest(ScrapeResult("10.0.0.5:8000", None, rows, T, read.rejects))
    assert world.value("llm", WAITING, T) == 8.0


def test_a_server_sample_without_a_pod_is_counted() -> None:
    world = World(make_pod("llm", gpus={}))
    store(world, TGI, {"instance": "10.0.0.5:80", "namespace": "ml"})
    assert world.value("llm", WAITING, T) == "server_not_scraped"
    assert world.count("server_without_pod") == 2


def test_a_server_page_cannot_describe_devices_or_other_pods() -> None:
    world = World(make_pod("llm"), make_pod("victim"))
    forged = row("DCGM_FI_DEV_GPU_UTIL", 1, "victim")
    forged += 'vllm:num_requests_waiting{pod="victim",namespace="ml"} 9\n'
    serve(world, forged)
    assert world.value("victim", "gpu_utilization", T) == "pod_not_named"
    assert world.value("victim", WAITING, T) == "server_not_scraped"
    assert world.value("llm", WAITING, T) == "server_not_scraped"
    assert world.count("device_sample_of_a_server") == 1
    assert world.count("server_names_another_pod") == 1


FORGED = 'vllm:num_requests_waiting{pod="victim",namespace="ml"} 999\n'
FORGED += 'nv_gpu_utilization{pod="victim",namespace="ml",gpu_uuid="GPU-7"} 0\n'


def test_an_exporter_page_cannot_describe_inference_servers() -> None:
    victim = make_pod("victim", node="n2")
    world = World(victim, make_pod("fake", gpus={}, node="n1"))
    serve(world, 'vllm:num_requests_waiting{engine="0"} 7\n', pod=("ml", "victim"))
    for node in ("n1", "n2"):
        world.scrape(FORGED, T, origin="http://fake", node=node, pod=("ml", "fake"))
        assert world.value("victim", WAITING, T) == 7.0
        assert world.value("victim", "gpu_utilization", T) == "no_exporter_on_node"
        assert world.value("fake", WAITING, T) == "server_not_scraped"
    assert world.count("server_sample_of_an_exporter") == 4


def test_a_pod_that_prometheus_scrapes_cannot_describe_another_pod() -> None:
    world = World(make_pod("victim"), make_pod("fake", gpus={}))
    target = {"pod": "victim", "namespace": "ml", "instance": "10.0.0.5:8000"}
    store(world, 'vllm:num_requests_waiting{engine="0"} 7\n', target)
    forged = {"exported_pod": "victim", "exported_namespace": "ml"}
    target = {"pod": "fake", "namespace": "ml", "instance": "10.0.0.6:8000"}
    page = 'vllm:num_requests_waiting{engine="0"} 999\nnv_gpu_utilization{gpu_uuid="GPU-7"} 0\n'
    store(world, page, target | forged, origin="10.0.0.6:8000")
    assert world.value("victim", WAITING, T) == 7.0
    assert world.value("victim", "gpu_utilization", T) == "pod_not_named"
    assert world.count("server_names_another_pod") == 2


@pytest.mark.parametrize(
    "scraped",
    [
        {"kubernetes_pod_name": "fake", "kubernetes_namespace": "other"},
        {"kubernetes_pod_name": "victim", "kubernetes_namespace": "other"},
    ],
    ids=str,
)
def test_target_labels_of_older_scrape_jobs_name_the_pod_that_was_scraped(
    scraped: dict[str, str],
) -> None:
    world = World(make_pod("victim"), make_pod("fake", namespace="other", gpus={}))
    target = {"pod": "victim", "namespace": "ml", "instance": "10.0.0.5:8000"}
    store(world, 'vllm:num_requests_waiting{engine="0"} 7\n', target)
    forged = {"pod": "victim", "namespace": "ml", "instance": "10.0.0.6:8000"} | scraped
    store(world, 'vllm:num_requests_waiting{engine="0"} 999\n', forged, origin="10.0.0.6:8000")
    assert world.value("victim", WAITING, T) == 7.0
    assert world.count("server_names_another_pod") == 1


def test_a_servers_page_and_an_exporters_page_do_not_mix() -> None:
    world = World(make_pod("llm"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T)
    serve(world, VLLM)
    assert world.value("llm", "gpu_utilization", T) == 70.0
    assert world.value("llm", "gpu_count", T) == 1.0
    assert world.value("llm", WAITING, T) == 8.0
    assert world.value("llm", RUNNING, T) == 6.0


def test_the_next_server_page_does_not_drop_device_data() -> None:
    world = World(make_pod("llm"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T)
    serve(world, VLLM)
    before = world.read("llm", "gpu_utilization", T + 1)
    serve(world, VLLM, T + 1)
    assert world.read("llm", "gpu_utilization", T + 1) is before


def test_the_next_page_removes_an_unloaded_model_from_the_sum() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, TRITON)
    serve(world, 'nv_inference_pending_request_count{model="a",version="1"} 3\n', T + 5)
    assert world.value("llm", WAITING, T + 5) == 3.0


def test_a_server_value_expires_at_the_age_limit() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, VLLM)
    assert world.value("llm", WAITING, T + world.options.oldest + 1) == "stale"


def test_a_page_of_the_predecessor_does_not_describe_the_successor() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, VLLM)
    world.put(make_pod("llm", gpus={}, uid="next", born=T + 5))
    assert world.value("llm", WAITING, T + 6) == "predecessors_sample"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"ready": False}, "pod_not_ready"),
        ({"phase": "Succeeded", "ready": False}, "finished_pod"),
    ],
)
def test_a_server_that_does_not_work_has_no_value(state: dict[str, object], reason: str) -> None:
    world = World(make_pod("llm", gpus={}).replace(**state))
    serve(world, VLLM)
    assert world.value("llm", WAITING, T) == reason


def test_one_engine_and_one_model_can_be_selected() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, VLLM + 'vllm:num_requests_waiting{engine="0",model_name="other"} 11\n')
    assert world.value("llm", WAITING, T, "model=qwen") == 8.0
    assert world.value("llm", WAITING, T, "model=other") == 11.0


def test_devices_of_a_server_are_not_nodes() -> None:
    world = World(make_pod("llm", gpus={}, node="n1"))
    serve(world, VLLM)
    assert world.store.snapshot.nodes() == []

"""Metrics of inference servers, from a page or a store to the value of a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.api.expected import expected_pods
from adapter.api.provider import GpuMetricsProvider
from adapter.attribution.policy import SharingOptions, SharingPolicy
from adapter.attribution.reading import Reading
from adapter.attribution.servers import Servers
from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Owner, Pod, PodRef
from adapter.exposition.page import parse
from adapter.exposition.samples import Sample, ScrapeResult
from adapter.store.store import Store
from apiservice.errors import MetricNotFound
from apiservice.labels.selector import EVERYTHING
from apiservice.provider import GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import CATALOG, World, make_pod, reading, row

T = 1_700_000_000.0
WAITING = "inference_requests_waiting"
RUNNING = "inference_requests_running"
CACHE = "inference_kv_cache_utilization"

VLLM = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_running{engine="0",model_name="qwen"} 4.0
vllm:num_requests_running{engine="1",model_name="qwen"} 2.0
vllm:num_requests_waiting{engine="0",model_name="qwen"} 3.0
vllm:num_requests_waiting{engine="1",model_name="qwen"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="qwen",reason="capacity"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="qwen"} 0.25
"""
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


def serve(world: World, page: str, time: float = T, pod: tuple[str, str] = ("ml", "llm")) -> None:
    """Ingest the page of a pod."""
    read = parse(page.encode(), time=time, wanted=CATALOG.series)
    origin = f"http://{pod[1]}:8000/metrics"
    world.store.ingest(
        ScrapeResult(origin, "n1", read.samples, time, read.rejects, pod, serves=True)
    )


def store(world: World, page: str, target: dict[str, str], origin: str = "10.0.0.5:8000") -> None:
    """Ingest the same samples as Prometheus stores them, with target labels."""
    read = parse(page.encode(), time=T, wanted=CATALOG.series)
    rows = [Sample(r.name, dict(r.labels) | target, r.value, r.time) for r in read.samples]
    world.store.ingest(ScrapeResult(origin, None, rows, T, read.rejects))


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


SCRAPES: dict[str, dict[str, str]] = {
    "PodMonitor": {
        "pod": "llm",
        "namespace": "ml",
        "container": "server",
        "instance": "10.0.0.5:8000",
        "job": "ml/llm",
    },
    "a job named after the pods": {
        "pod": "llm",
        "namespace": "ml",
        "job": "llm",
        "instance": "10.0.0.5:8000",
    },
    "handed on with honor_labels": {"pod": "llm", "namespace": "ml", "instance": "c:1"},
    "Google": {"instance": "llm:metrics", "namespace": "ml", "job": "llm", "cluster": "c"},
}


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
    assert world.value("llm", WAITING, T) == 9.0
    assert world.count("device_row_of_a_server") == 1


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
    assert world.count("server_row_of_an_exporter") == 4


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


TRITON_GPUS = """\
nv_gpu_utilization{gpu_uuid="GPU-8"} 0.25
nv_gpu_utilization{gpu_uuid="GPU-9"} 0.75
nv_gpu_memory_used_bytes{gpu_uuid="GPU-8"} 6
nv_gpu_memory_used_bytes{gpu_uuid="GPU-9"} 2
nv_gpu_memory_total_bytes{gpu_uuid="GPU-8"} 16
nv_gpu_memory_total_bytes{gpu_uuid="GPU-9"} 16
"""
OF_ITS_GPUS = {
    "gpu_utilization": 50.0,
    "gpu_utilization_max": 75.0,
    "nv_gpu_utilization": 0.5,
    "gpu_memory_used_bytes": 8.0,
    "gpu_memory_headroom_bytes": 24.0,
    "gpu_memory_utilization": 25.0,
    "gpu_count": 2.0,
}


@pytest.mark.parametrize("metric", OF_ITS_GPUS)
@pytest.mark.parametrize("way", ["its page", "PodMonitor", "Google"])
def test_the_pod_that_serves_tritons_page_is_the_pod_of_its_gpus(way: str, metric: str) -> None:
    world = World(make_pod("llm", gpus={"nvidia.com/gpu": 2}))
    if way == "its page":
        serve(world, TRITON_GPUS)
    else:
        store(world, TRITON_GPUS, SCRAPES[way])
    assert world.value("llm", metric, T) == OF_ITS_GPUS[metric]


def test_gpu_values_of_triton_count_only_without_an_exporter() -> None:
    world = World(make_pod("llm"))
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    assert world.value("llm", "gpu_utilization", T) == 20.0
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T)
    assert world.value("llm", "gpu_utilization", T) == 70.0
    assert world.value("llm", "gpu_count", T) == 1.0


def test_a_pod_without_a_gpu_has_no_gpu_values() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, TRITON_GPUS)
    assert world.value("llm", "gpu_utilization", T) == "no_gpu_in_spec"


def test_a_server_that_names_another_pods_gpu_does_not_change_its_value() -> None:
    world = World(make_pod("victim", node="n1"), make_pod("llm", node="n1"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "victim"), T, node="n1")
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 1\n', T + 1)
    found = reading(world.read("victim", "gpu_utilization", T + 1))
    assert (found.value, found.devices[0].labels["sharing"]) == (70.0, "exclusive")
    snapshot = world.store.snapshot
    (node,) = snapshot.nodes()
    assert reading(snapshot.node(node, "gpu_utilization", EVERYTHING, T + 1)).value == 70.0


def test_the_value_of_a_shared_gpu_from_triton_is_copied_to_all_pods() -> None:
    world = World(make_pod("llm", gpus={"nvidia.com/gpu.shared": 1}))
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    found = reading(world.read("llm", "gpu_utilization", T))
    assert (found.value, found.devices[0].attribution.value) == (20.0, "copied")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (SharingPolicy.EQUAL, "pod_not_named"),
        (SharingPolicy.MEMORY, "pod_not_named"),
        (SharingPolicy.EXACT, "not_exact"),
    ],
)
def test_the_value_of_a_shared_gpu_from_triton_is_not_split_among_unknown_pods(
    policy: SharingPolicy, reason: str
) -> None:
    sharing = SharingOptions(policy=policy)
    world = World(make_pod("llm", gpus={"nvidia.com/gpu.shared": 1}), sharing=sharing)
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    assert world.value("llm", "gpu_utilization", T) == reason


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
    assert world.value("llm", WAITING, T + 6) == "predecessors_row"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"ready": False}, "pod_not_ready"),
        ({"phase": "Succeeded", "ready": False}, "finished_pod"),
    ],
)
def test_a_server_that_does_not_work_has_no_value(state: dict[str, object], reason: str) -> None:
    world = World(replace(make_pod("llm", gpus={}), **state))  # type: ignore[arg-type]  # fields by name
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


RS = Owner("apps/v1", "ReplicaSet", "llm-5d9")


def replica(name: str, owner: Owner | None = RS, template: str = "5d9") -> Pod:
    labels = {"pod-template-hash": template}
    return replace(make_pod(name, gpus={}), owner=owner, labels=labels)


A, B = replica("a"), replica("b")
NEXT = replica("c", Owner("apps/v1", "ReplicaSet", "llm-7f1"), "7f1")
LONE = replica("lone", None)
ASKS = replace(LONE, annotations={"gpu-metrics-adapter.io/scrape": "true"})
OTHER = replica("web", Owner("apps/v1", "ReplicaSet", "web-1"))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((A, B), ["a", "b"], id="a sibling of one that was seen"),
        pytest.param((A, NEXT), ["a", "c"], id="of another revision of the Deployment"),
        pytest.param((A, LONE, OTHER), ["a"], id="not a stranger"),
        pytest.param((A, ASKS), ["a", "lone"], id="one that asks to be read"),
        pytest.param((LONE, OTHER), [], id="nobody where nothing was seen"),
    ],
)
def test_a_sum_needs_every_pod_that_should_serve_a_page(
    pods: tuple[Pod, ...], expected: list[str]
) -> None:
    world = World(*pods)
    serve(world, VLLM, pod=("ml", "a"))
    found = at_once(expected_pods(pods, CATALOG.metrics[WAITING], world.store.snapshot))
    assert [pod.ref.name for pod in found] == expected


def test_a_device_metric_needs_only_pods_with_devices() -> None:
    world = World(A, make_pod("gpu"))
    found = at_once(
        expected_pods((A, make_pod("gpu")), CATALOG.metrics["gpu_count"], world.store.snapshot)
    )
    assert [pod.ref for pod in found] == [PodRef("ml", "gpu")]


def objects_lab(*pods: Pod) -> tuple[Store, GpuMetricsProvider]:
    return indexed_lab(*pods)[:2]


def indexed_lab(*pods: Pod) -> tuple[Store, GpuMetricsProvider, PodIndex]:
    world = World(*pods)
    return world.store, world.custom, world.index


def deployment(provider: GpuMetricsProvider) -> list[int]:
    resource = GroupResource.parse("deployments.apps")
    query = ObjectQuery(resource, "ml", "llm", WAITING, EVERYTHING, EVERYTHING)
    try:
        return [item.milli for item in at_once(provider.values(query, T)).items]
    except MetricNotFound:
        return []


def rows_at(time: float) -> Any:
    return parse(b"tgi_queue_size 8\n", time=time).samples


def page(pod: str) -> ScrapeResult:
    rows = rows_at(T)
    return ScrapeResult(f"http://{pod}:80/metrics", "n1", rows, T, {}, ("ml", pod), serves=True)


def test_a_deployments_queue_is_the_sum_over_its_pods() -> None:
    store, provider = objects_lab(A, B)
    store.ingest(page("a"))
    store.ingest(page("b"))
    assert deployment(provider) == [16_000]


def test_a_deployments_queue_is_absent_while_a_ready_pods_page_is_missing() -> None:
    store, provider = objects_lab(A, B)
    store.ingest(page("a"))
    assert deployment(provider) == []
    assert provider.absent["server_not_scraped"] == 1


def namespace(provider: GpuMetricsProvider, now: float) -> list[int]:
    resource = GroupResource.parse("namespaces")
    query = ObjectQuery(resource, None, "ml", WAITING, EVERYTHING, EVERYTHING)
    try:
        return [item.milli for item in at_once(provider.values(query, now)).items]
    except MetricNotFound:
        return []


@pytest.mark.parametrize("after", [70.0, 700.0, 7000.0])
def test_a_sum_stays_absent_for_as_long_as_a_servers_page_is_missing(after: float) -> None:
    """Two pods of different workloads; the exporter of one is dropped after ten minutes."""
    store, provider = objects_lab(replica("a", None), replica("b", None))
    store.ingest(page("a"))
    store.ingest(page("b"))
    assert namespace(provider, T) == [16_000]
    store.ingest(replace(page("b"), received=T + after, samples=rows_at(T + after)))
    assert namespace(provider, T + after) == []


def test_a_sum_stays_absent_while_a_server_answers_with_an_empty_page() -> None:
    store, provider = objects_lab(replica("a", None), replica("b", None))
    store.ingest(page("a"))
    store.ingest(page("b"))
    store.ingest(replace(page("a"), received=T + 1, samples=()))
    assert namespace(provider, T + 1) == []


def test_a_pod_of_the_same_name_without_a_page_is_not_expected() -> None:
    first, b = replica("a", None), replica("b", None)
    store, provider, index = indexed_lab(first, b)
    store.ingest(page("a"))
    store.ingest(page("b"))
    store.ingest(replace(page("a"), received=T + 1, samples=()))
    index.replace([replace(first, uid="next"), b])
    assert namespace(provider, T + 1) == [8_000]


def test_server_data_is_bounded_by_the_number_of_living_pods() -> None:
    index = PodIndex()
    servers = Servers(index)
    for at in range(5_000):
        pod = make_pod(f"pod-{at}", uid=f"uid-{at}")
        index.replace([pod])
        servers.note([pod.ref])
        assert pod.ref in servers
    assert len(servers) <= 1_100


def test_a_pod_that_is_not_ready_is_not_expected() -> None:
    store, provider = objects_lab(A, replace(B, ready=False))
    store.ingest(page("a"))
    assert deployment(provider) == [8_000]


def test_discovery_lists_a_server_metric_for_all_resources_except_nodes() -> None:
    _, provider = objects_lab()
    listed = {str(r.resource) for r in provider.resources() if r.metric == WAITING}
    assert {"pods", "services", "deployments.apps", "namespaces"} <= listed
    assert "nodes" not in listed


def test_servers_on_a_node_give_it_no_value() -> None:
    world = World(make_pod("llm", gpus={}, node="n1"))
    serve(world, VLLM)
    assert not isinstance(world.node("n1", WAITING, T), Reading)

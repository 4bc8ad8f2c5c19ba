"""Fields of inference servers in every spelling, and the neutral metrics from them."""

from __future__ import annotations

import pytest

from tests.adapter.world import CATALOG, World, make_pod

WAITING, RUNNING = "inference_requests_waiting", "inference_requests_running"
CACHE = "inference_kv_cache_utilization"
V0, V1 = 'engine="0",model_name="m"', 'engine="1",model_name="m"'
A, B = 'model="a",version="1"', 'model="b",version="1"'
TRTLLM = "nv_trt_llm_request_metrics"
BLOCKS = "nv_trt_llm_kv_cache_block_metrics"

PAGES = {
    "vllm queue over engines": (
        f"vllm:num_requests_waiting{{{V0}}} 3\nvllm:num_requests_waiting{{{V1}}} 4\n",
        WAITING,
        7.0,
    ),
    "vllm by reason is another count of the same": (
        (
            f"vllm:num_requests_waiting{{{V0}}} 3\n"
            f'vllm:num_requests_waiting_by_reason{{{V0},reason="capacity"}} 3\n'
        ),
        WAITING,
        3.0,
    ),
    "vllm running": (f"vllm:num_requests_running{{{V0}}} 2\n", RUNNING, 2.0),
    "vllm cache over engines": (
        f"vllm:kv_cache_usage_perc{{{V0}}} 0.2\nvllm:kv_cache_usage_perc{{{V1}}} 0.4\n",
        CACHE,
        30.0,
    ),
    "vllm cache, older name": (f"vllm:gpu_cache_usage_perc{{{V0}}} 0.2\n", CACHE, 20.0),
    "vllm cache that is not a fraction": (
        f"vllm:kv_cache_usage_perc{{{V0}}} 20\n",
        CACHE,
        "no_value",
    ),
    "vllm behind ray": (f"ray_vllm_num_requests_waiting{{{V0}}} 3\n", WAITING, 3.0),
    "vllm behind ray, colon kept": (f"ray_vllm:num_requests_waiting{{{V0}}} 3\n", WAITING, 3.0),
    "vllm cache behind ray": (f"ray_vllm_kv_cache_usage_perc{{{V0}}} 0.5\n", CACHE, 50.0),
    "triton queue over models": (
        (
            f"nv_inference_pending_request_count{{{A}}} 3\n"
            f"nv_inference_pending_request_count{{{B}}} 4\n"
        ),
        WAITING,
        7.0,
    ),
    "triton with tensorrt-llm: both queues": (
        (
            f"nv_inference_pending_request_count{{{A}}} 3\n"
            f'{TRTLLM}{{{A},request_type="waiting"}} 4\n'
            f'{TRTLLM}{{{A},request_type="max"}} 512\n'
        ),
        WAITING,
        7.0,
    ),
    "tensorrt-llm running": (f'{TRTLLM}{{{A},request_type="scheduled"}} 4\n', RUNNING, 4.0),
    "tensorrt-llm cache, models without one left out": (
        (
            f'{BLOCKS}{{{A},kv_cache_block_type="fraction"}} 0.25\n'
            f'{BLOCKS}{{{A},kv_cache_block_type="max"}} 6239\n'
            f"nv_inference_pending_request_count{{{A}}} 0\n"
            f"nv_inference_pending_request_count{{{B}}} 0\n"
            'nv_inference_pending_request_count{model="c",version="1"} 0\n'
        ),
        CACHE,
        25.0,
    ),
    "tgi": ("tgi_queue_size 5\n", WAITING, 5.0),
    "tgi running": ("tgi_batch_current_size 6\n", RUNNING, 6.0),
    "tgi has no cache": ("tgi_queue_size 5\n", CACHE, "metric_not_exported"),
    "sglang": ('sglang:num_queue_reqs{model_name="m"} 5\n', WAITING, 5.0),
    "sglang running": ('sglang:num_running_reqs{model_name="m"} 6\n', RUNNING, 6.0),
    "sglang cache": ('sglang:token_usage{model_name="m"} 0.5\n', CACHE, 50.0),
    "sglang with priorities: the whole queue is reported beside its parts": (
        (
            'sglang:num_queue_reqs{model_name="m",priority=""} 5\n'
            'sglang:num_queue_reqs{model_name="m",priority="1"} 2\n'
            'sglang:num_queue_reqs{model_name="m",priority="2"} 3\n'
        ),
        WAITING,
        5.0,
    ),
    "sglang schedulers of several data-parallel ranks": (
        (
            'sglang:num_queue_reqs{model_name="m",tp_rank="0",dp_rank="0"} 5\n'
            'sglang:num_queue_reqs{model_name="m",tp_rank="0",dp_rank="1"} 4\n'
            'sglang:num_queue_reqs{model_name="m",tp_rank="1",dp_rank="1"} 4\n'
        ),
        WAITING,
        9.0,
    ),
    "vllm replicas of one pod behind ray": (
        (
            f'ray_vllm_num_requests_waiting{{{V0},ReplicaId="a",WorkerId="1"}} 5\n'
            f'ray_vllm_num_requests_waiting{{{V0},ReplicaId="b",WorkerId="2"}} 4\n'
        ),
        WAITING,
        9.0,
    ),
    "verbatim": (f"vllm:num_requests_waiting{{{V0}}} 3\n", "vllm:num_requests_waiting", 3.0),
}


def served(page: str, *times: float) -> World:
    world = World(make_pod("p", gpus={}))
    for time in times or (100.0,):
        world.scrape(page, time, pod=("ml", "p"), serves=True)
    return world


@pytest.mark.parametrize("name", PAGES)
def test_server_samples_become_neutral_metrics_of_a_pod_without_a_gpu(name: str) -> None:
    page, metric, expected = PAGES[name]
    assert served(page).value("p", metric, 101.0) == expected


RATE = "inference_requests_per_second"
PICKED = "inference_gateway_requests_per_second"
NEW = 'model_name="m",target_model_name="m",fairness_id="{}",priority="0"'
OLD = 'model_name="m",target_model_name="m",priority="0"'
COUNTS = {
    "sglang, streamed or not": (
        ('sglang:num_requests_total{model_name="m",is_streaming="true"}', 20),
        ('sglang:num_requests_total{model_name="m",is_streaming="false"}', 40),
    ),
    "sglang, under the first name of that label": (
        ('sglang:num_requests_total{model_name="m",stream="true"}', 20),
        ('sglang:num_requests_total{model_name="m",stream="false"}', 40),
    ),
    "sglang, under labels that its user chose": (
        ('sglang:num_requests_total{model_name="m",tenant=""}', 10),
        ('sglang:num_requests_total{model_name="m",tenant="a"}', 20),
        ('sglang:num_requests_total{model_name="m",tenant="b"}', 30),
    ),
    "sglang, by each rank of one scheduler": (
        ('sglang:num_requests_total{model_name="m",tp_rank="0"}', 60),
        ('sglang:num_requests_total{model_name="m",tp_rank="1"}', 60),
    ),
    "dynamo before TensorRT-LLM had a prefix": (
        ('trtllm:request_success_total{model_name="m",finished_reason="stop"}', 50),
        ('trtllm:request_success_total{model_name="m",finished_reason="length"}', 10),
    ),
    "a picker's deprecated name beside the new one": (
        (f"llm_d_epp_request_total{{{NEW.format('a')}}}", 40),
        (f"llm_d_epp_request_total{{{NEW.format('b')}}}", 20),
        (f"inference_objective_request_total{{{OLD}}}", 60),
    ),
    "a picker's deprecated name alone": ((f"inference_objective_request_total{{{OLD}}}", 60),),
}


@pytest.mark.parametrize("rows", COUNTS.values(), ids=COUNTS)
def test_each_request_counts_once_however_a_page_divides_them(
    rows: tuple[tuple[str, int], ...],
) -> None:
    """60 requests within 15 s."""
    world, metric = World(make_pod("p", gpus={})), RATE if ":" in rows[0][0] else PICKED
    world.store.demand.ask(metric, "ml", 100.0)
    for time, share in ((100.0, 0), (115.0, 1)):
        page = "".join(f"{row} {share * count}\n" for row, count in rows)
        world.scrape(page, time, pod=("ml", "p"), serves=True)
    assert world.value("p", metric, 116.0) == 4.0


def queued(*points: tuple[float, float], pending: str = "") -> World:
    world = World(make_pod("p", gpus={}))
    for time, microseconds in points:
        page = f"nv_inference_queue_duration_us{{{A}}} {microseconds}\n{pending}"
        world.scrape(page, time, pod=("ml", "p"), serves=True)
    return world


def test_the_queue_of_triton_is_derived_from_waiting_times() -> None:
    """Little's law: 15 s of waiting within 5 s are 3 requests at a time."""
    world = queued((100.0, 0.0), (105.0, 15e6))
    assert world.value("p", WAITING, 106.0) == 3.0
    assert world.value("p", "nv_inference_queue_duration_us", 106.0) == 3e6


def test_a_restart_of_triton_does_not_give_a_negative_queue() -> None:
    assert queued((100.0, 50e6), (105.0, 5e6)).value("p", WAITING, 106.0) == 1.0


def test_one_reading_of_a_counter_gives_no_rate() -> None:
    assert queued((100.0, 50e6)).value("p", WAITING, 101.0) == "no_value"


def test_a_counter_that_is_read_less_often_than_the_window_has_a_rate() -> None:
    assert queued((100.0, 0.0), (140.0, 40e6)).value("p", WAITING, 141.0) == 1.0


def test_the_rate_does_not_replace_a_queue_length_from_triton() -> None:
    pending = f"nv_inference_pending_request_count{{{A}}} -1\n"
    world = queued((100.0, 0.0), (105.0, 15e6), pending=pending)
    assert world.value("p", WAITING, 106.0) == "no_value"


def test_one_query_requests_every_spelling() -> None:
    assert {"vllm:num_requests_waiting", "ray_vllm_num_requests_waiting"} <= set(
        CATALOG.groups["servers"]
    )

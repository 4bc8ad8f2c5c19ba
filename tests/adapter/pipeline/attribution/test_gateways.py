"""Gateways of inference servers: llm-d's endpoint picker and the frontend of Dynamo."""

from __future__ import annotations

import pytest

from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from tests.adapter.world import CATALOG, World, make_pod

T = 1_700_000_000.0
WAITING = "inference_gateway_requests_waiting"
RUNNING = "inference_gateway_requests_running"

_MODEL = 'model_name="qwen",target_model_name="qwen"'
_QUEUE = """\
{name}{{fairness_id="team-a",priority="0",inference_pool="chat",model_name="qwen"}} 3
{name}{{fairness_id="team-b",priority="0",inference_pool="chat",model_name="qwen"}} 4
{name}{{fairness_id="team-b",priority="-1",inference_pool="chat",model_name="qwen"}} 1
""".format
_RUNNING = """\
{name}{{fairness_id="team-a",priority="0",model_name="qwen",target_model_name="qwen"}} 5
{name}{{fairness_id="team-b",priority="0",model_name="qwen",target_model_name="qwen"}} 6
""".format
_POOL = """\
{0}average_queue_size{{name="chat"}} 0.5
{0}average_running_requests{{name="chat"}} 5.5
{0}average_kv_cache_utilization{{name="chat"}} 0.25
""".format
_OLD_SATURATION = 'inference_extension_flow_control_pool_saturation{inference_pool="chat"} 0.5\n'
SATURATION = """\
llm_d_epp_flow_control_pool_saturation{inference_pool="chat",stage="decode"} 0.5
llm_d_epp_flow_control_pool_saturation{inference_pool="chat",stage="effective"} 1.5
"""
IDLE = _POOL("llm_d_epp_") + 'llm_d_epp_ready_endpoints{name="chat"} 2\n' + SATURATION
OLD_RUNNING = 'inference_objective_running_requests{model_name="qwen"} 11\n'
OLD_QUEUE = _QUEUE(name="inference_extension_flow_control_queue_size")
PICKER = (
    IDLE
    + _QUEUE(name="llm_d_epp_flow_control_queue_size")
    + _RUNNING(name="llm_d_epp_request_running")
    + OLD_QUEUE
    + OLD_RUNNING
)
"""llm-d writes the deprecated names beside the current ones."""
EXTENSION = (
    _POOL("inference_pool_")
    + 'inference_pool_ready_pods{name="chat"} 2\n'
    + _OLD_SATURATION
    + OLD_QUEUE
    + OLD_RUNNING
)
"""The picker of the Gateway API inference extension, before llm-d continued it."""
BETWEEN = _QUEUE(name="llm_d_router_epp_flow_control_queue_size") + _POOL("llm_d_router_epp_")
DYNAMO = """\
dynamo_frontend_active_requests{model="qwen"} 12
dynamo_frontend_active_requests{model="llama"} 3
dynamo_frontend_inflight_requests{model="qwen"} 12
dynamo_frontend_inflight_requests{model="llama"} 3
dynamo_frontend_queued_requests{model="qwen"} 7
dynamo_frontend_queued_requests{model="llama"} 1
dynamo_frontend_stage_requests{stage="route",phase="aggregated"} 2
"""
OLD_DYNAMO = "\n".join(row for row in DYNAMO.splitlines() if "active" not in row) + "\n"
DYNAMO_0_5 = """\
dynamo_frontend_inflight_requests_total{model="qwen"} 12
dynamo_frontend_queued_requests_total{model="qwen"} 7
dynamo_frontend_requests_total{model="qwen",status="success"} 900
"""
WITH_ROUTER = """\
dynamo_frontend_router_queue_pending_requests{worker_type="prefill"} 1
dynamo_frontend_router_queue_pending_requests{worker_type="decode"} 2
"""
PAGES: dict[str, tuple[str, dict[str, float | str]]] = {
    "llm-d": (
        PICKER,
        {
            WAITING: 8.0,
            RUNNING: 11.0,
            "llm_d_epp_average_queue_size": 0.5,
            "inference_pool_average_queue_size": 0.5,
            "llm_d_epp_ready_endpoints": 2.0,
            "llm_d_epp_flow_control_pool_saturation": 1.5,
        },
    ),
    "llm-d, idle: it removes the series of its queue": (
        IDLE,
        {WAITING: 0.0, RUNNING: "metric_not_exported"},
    ),
    "llm-d without flow control": (
        _POOL("llm_d_epp_"),
        {WAITING: "metric_not_exported", "inference_pool_average_kv_cache_utilization": 0.25},
    ),
    "Gateway API inference extension": (
        EXTENSION,
        {
            WAITING: 8.0,
            RUNNING: 11.0,
            "inference_pool_average_running_requests": 5.5,
            "inference_pool_ready_pods": 2.0,
            "inference_extension_flow_control_queue_size": 8.0,
        },
    ),
    "llm-d between the names": (BETWEEN, {WAITING: 8.0, "llm_d_epp_average_queue_size": 0.5}),
    "Dynamo": (DYNAMO, {WAITING: 8.0, RUNNING: 15.0}),
    "Dynamo with the names before": (OLD_DYNAMO, {WAITING: 8.0, RUNNING: 15.0}),
    "Dynamo 0.5": (DYNAMO_0_5, {WAITING: 7.0, RUNNING: 12.0}),
    "Dynamo with the queue of its router": (DYNAMO + WITH_ROUTER, {WAITING: 3.0, RUNNING: 15.0}),
    "the queue of a gateway is not that of a server": (
        PICKER + DYNAMO,
        {"inference_requests_waiting": "metric_not_exported"},
    ),
}


def serve(world: World, page: str, time: float = T, pod: str = "epp") -> None:
    """Ingest the page of a pod."""
    read = parse(page.encode(), time=time, wanted=CATALOG.series)
    ref = ("ml", pod)
    world.store.ingest(
        ScrapeResult(f"http://{pod}", "n1", read.samples, time, read.rejects, ref, serves=True)
    )


@pytest.mark.parametrize(("page", "expected"), PAGES.values(), ids=PAGES)
def test_a_gateway_page_describes_the_pod_that_serves_it(
    page: str, expected: dict[str, float | str]
) -> None:
    world = World(make_pod("epp", gpus={}))
    serve(world, page)
    assert {name: world.value("epp", name, T) for name in expected} == expected


def test_the_queue_is_0_and_not_unknown_after_the_picker_removed_its_series() -> None:
    """The picker removes the series of a flow that has been idle for minutes."""
    world = World(make_pod("epp", gpus={}))
    serve(world, PICKER.replace("} 3", "} 0").replace("} 4", "} 0").replace("} 1\n", "} 0\n"))
    seen = []
    for after in range(5, 200, 5):
        serve(world, IDLE, T + after)
        seen.append(world.value("epp", WAITING, T + after))
    assert seen == [0.0] * len(seen)


def test_a_queue_that_is_not_a_number_is_not_0() -> None:
    world = World(make_pod("epp", gpus={}))
    name = "llm_d_epp_flow_control_queue_size"
    serve(world, IDLE + f'{name}{{fairness_id="a",inference_pool="chat"}} -1\n')
    assert world.value("epp", WAITING, T) == "no_value"


def test_a_prometheus_that_scrapes_the_picker_changes_no_value() -> None:
    world = World(make_pod("epp", gpus={}))
    target = 'namespace="ml",pod="epp",job="epp",instance="10.0.0.5:9090"'
    page = "".join(
        f"{row.replace('{', '{' + target + ',', 1)}\n" for row in PICKER.splitlines() if row
    )
    read = parse(page.encode(), time=T, wanted=CATALOG.series)
    world.store.ingest(ScrapeResult("10.0.0.5:9090", None, read.samples, T, read.rejects))
    assert [world.value("epp", name, T) for name in (WAITING, RUNNING)] == [8.0, 11.0]


def _flows(*rows: tuple[str, str, float]) -> str:
    name = "llm_d_epp_flow_control_queue_size"
    labels = 'priority="0",inference_pool="chat"'
    return IDLE + "".join(
        f'{name}{{fairness_id="{flow}",model_name="{model}",{labels}}} {value:g}\n'
        for flow, model, value in rows
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param(
            'dynamo_frontend_queued_requests{model=""} 0\n'
            'dynamo_frontend_queued_requests{model="qwen"} 40\n',
            40.0,
            id="an empty name does not hide the others",
        ),
        pytest.param(
            _flows(("a", "0,m", 3), ("a,0", "m", 4)),
            7.0,
            id="names with commas do not meet",
        ),
        pytest.param(_flows(("a", "m", 3), ("b", "m", -1)), "no_value", id="a sum needs each flow"),
    ],
)
def test_labels_that_clients_choose_hide_no_request(page: str, expected: float | str) -> None:
    world = World(make_pod("epp", gpus={}))
    serve(world, page)
    assert world.value("epp", WAITING, T) == expected


UNDECLARED = {
    "Dynamo's router": (
        "dynamo_frontend_router_queue_pending_requests",
        'model="qwen",worker_type="decode"',
        WAITING,
    ),
    "Dynamo's frontend": ("dynamo_frontend_queued_requests", 'model="qwen"', WAITING),
    "Dynamo's running requests": ("dynamo_frontend_active_requests", 'model="qwen"', RUNNING),
    "llm-d's queue": ("llm_d_epp_flow_control_queue_size", 'fairness_id="a"', WAITING),
    "llm-d's running requests": ("llm_d_epp_request_running", 'fairness_id="a"', RUNNING),
    "the extension": ("inference_objective_running_requests", 'model_name="qwen"', RUNNING),
    "Ray Serve": ("ray_serve_deployment_queued_queries", 'deployment="d",route="/"', WAITING),
}
"""Gauge -> labels that the catalogue knows, and the metric."""


def _with_new_label(series: str, labels: str) -> str:
    values = {"batch": 40, "interactive": 2, "none": 0}
    return "".join(f'{series}{{{labels},new="{n}"}} {v}\n' for n, v in values.items())


@pytest.mark.parametrize(("series", "labels", "metric"), UNDECLARED.values(), ids=UNDECLARED)
def test_samples_that_differ_in_a_label_that_nobody_declared_are_added_up(
    series: str, labels: str, metric: str
) -> None:
    world = World(make_pod("epp", gpus={}))
    serve(world, _with_new_label(series, labels))
    assert world.value("epp", metric, T) == 42.0
    assert not world.store.rejects.totals


@pytest.mark.parametrize(("series", "labels", "metric"), UNDECLARED.values(), ids=UNDECLARED)
def test_in_a_store_where_the_label_may_be_a_replicas_none_hides_a_larger_one(
    series: str, labels: str, metric: str
) -> None:
    world = World(make_pod("epp", gpus={}))
    target = 'namespace="ml",pod="epp",instance="10.0.0.5:9090"'
    page = _with_new_label(series, f"{labels},{target}")
    read = parse(page.encode(), time=T, wanted=CATALOG.series)
    world.store.ingest(ScrapeResult("10.0.0.5:9090", None, read.samples, T, read.rejects))
    assert world.value("epp", metric, T) == 40.0

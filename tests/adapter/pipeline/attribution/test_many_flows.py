"""A server page with more label sets than are read: no sum of some of its parts is served."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from adapter.pipeline.devices.options import TelemetryOptions
from tests.adapter.world import World, make_pod

T = 1_700_000_000.0
WAITING = "inference_gateway_requests_waiting"
RUNNING = "inference_gateway_requests_running"
RATE = "inference_gateway_requests_per_second"
P90 = "inference_gateway_request_seconds_p90"
METRICS = (WAITING, RUNNING, RATE, P90)
TOO_MANY = "too_many_label_sets"
MOST = 8


def families(
    flows: int, counted: int, *, older: bool = False, bounds: Sequence[str] = ("0.1", "+Inf")
) -> dict[str, str]:
    """Return the series of a picker: each flow has 1 request waiting, 2 running, and a counter."""
    names = [f'fairness_id="u{flow}",model_name="m"' for flow in range(flows)]
    times = "llm_d_epp_request_duration_seconds"
    made = {
        "saturation": 'llm_d_epp_flow_control_pool_saturation{inference_pool="p"} 1.4\n',
        "queue": "".join(f"llm_d_epp_flow_control_queue_size{{{n}}} 1\n" for n in names),
        "running": "".join(f"llm_d_epp_request_running{{{n}}} 2\n" for n in names),
        "total": "".join(f"llm_d_epp_request_total{{{n}}} {counted}\n" for n in names),
        "times": "".join(
            f'{times}_bucket{{{n},streaming="true",le="{bound}"}} {counted}\n'
            for n in names
            for bound in bounds
        ),
    }
    if older:
        total = 'inference_objective_request_total{model_name="m"}'
        made |= {"older": f"{total} {flows * counted}\n"}
    return made


def page(flows: int, counted: int, order: tuple[str, ...] = (), *, older: bool = False) -> str:
    made = families(flows, counted, older=older)
    return "".join(made[name] for name in (order or sorted(made)))


def picker(most: int = MOST) -> World:
    world = World(make_pod("epp", gpus={}), options=TelemetryOptions(server_series=most))
    for metric in METRICS:
        world.value("epp", metric, T - 1.0)
    return world


def serve(world: World, text: str, time: float) -> None:
    origin = "http://10.0.0.5:9090/metrics"
    world.scrape(text, time, origin=origin, pod=("ml", "epp"), serves=True)


ORDERS = tuple(permutations(families(1, 1)))


@pytest.mark.parametrize("flows", [1, MOST // 2, MOST, MOST + 1, 5 * MOST])
def test_a_value_is_of_all_flows_or_absent_in_any_order_of_the_page(flows: int) -> None:
    for order in ORDERS:
        world = picker()
        for step in range(3):
            serve(world, page(flows, 100 + 60 * step, order), T + 30.0 * step)
        now = T + 60.0
        assert world.value("epp", WAITING, now) == flows
        assert world.value("epp", RUNNING, now) == 2 * flows
        assert world.value("epp", RATE, now) in (2.0 * flows, TOO_MANY)
        if flows <= MOST // 2:
            assert world.value("epp", RATE, now) == 2.0 * flows
        if flows > MOST:
            assert TOO_MANY in (world.value("epp", RATE, now), world.value("epp", P90, now))


def test_what_was_read_of_fewer_flows_is_not_served_beside_more() -> None:
    world = picker()
    for step, flows in enumerate((3, 3, 20, 20, 3, 3, 3)):
        now = T + 30.0 * step
        serve(world, page(flows, 100 + 60 * step), now)
        seen = [world.value("epp", metric, now) for metric in (WAITING, RUNNING, RATE)]
        assert seen[:2] == [flows, 2 * flows]
        if flows == 20:
            assert seen[2] == TOO_MANY
        elif step in (1, 5, 6):
            assert seen[2] == 6.0
        else:  # an increase needs two pages that were read in full
            assert isinstance(seen[2], str)


def test_the_same_count_with_fewer_labels_is_read_instead() -> None:
    world = picker()
    order = ("older", *sorted(families(1, 1)))
    for step in range(3):
        serve(world, page(20, 100 + 60 * step, order, older=True), T + 30.0 * step)
    assert world.value("epp", RATE, T + 60.0) == 40.0


def test_the_parts_of_another_page_of_the_pod_are_not_the_sum() -> None:
    world = picker()
    for step in range(3):
        serve(world, page(20, 100 + 60 * step), T + 30.0 * step)
        other, time = "http://10.0.0.5:9091/metrics", T + 30.0 * step
        text = page(1, 100 + 60 * step)
        world.scrape(text, time, origin=other, pod=("ml", "epp"), serves=True)
    assert world.value("epp", RATE, T + 60.0) == TOO_MANY


LATENCIES = (*(str(bound / 100) for bound in range(1, 35)), "+Inf")
"""As many buckets as the picker has."""


@pytest.mark.parametrize("latencies", [(), LATENCIES], ids=["counters", "histograms"])
@pytest.mark.parametrize("flows", [1, 60, 107, 110, 120, 300, 450, 600])
def test_the_bounds_of_a_page_leave_out_whole_metrics(
    flows: int, latencies: tuple[str, ...]
) -> None:
    """With what `serve` reads of a page at most."""
    world = picker(TelemetryOptions().server_series)
    order = ("saturation", "queue", "running", "total", "times")
    for step in range(3):
        families_now = families(flows, 100 + 60 * step, bounds=latencies)
        serve(world, "".join(families_now[name] for name in order), T + 30.0 * step)
    now = T + 60.0
    correct = {WAITING: flows, RUNNING: 2 * flows, RATE: 2.0 * flows}
    seen = {metric: world.value("epp", metric, now) for metric in correct}
    assert seen == {m: TOO_MANY if seen[m] == TOO_MANY else correct[m] for m in correct}
    if flows <= 60:
        assert seen == correct

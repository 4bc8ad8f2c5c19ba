"""Latencies through the metrics APIs: from the histograms on servers' pages to a quantile."""

from __future__ import annotations

import pytest

from adapter.answers.api.aggregate import Aggregate, PodValue, combine, pool_latencies, read_pods
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.runtime.steps import Steps, at_once
from tests.adapter.world import CATALOG, World, make_pod, reading

TTFT = "inference_time_to_first_token_seconds"
P90 = CATALOG.metrics[f"{TTFT}_p90"]
BOUNDS = ("0.1", "0.25", "0.5", "1.0", "2.5")


def page(*hits: int, total: float = 0.0, engine: str = "0") -> str:
    """A page of vLLM: how often each bucket was hit since the start, that above the bounds last."""
    labels = f'engine="{engine}",model_name="opal-7b"'
    name, written, below = "vllm:time_to_first_token_seconds", "", 0
    for bound, count in zip((*BOUNDS, "+Inf"), hits, strict=True):
        below += count
        written += (
            f'{name}_bucket{{engine="{engine}",le="{bound}",model_name="opal-7b"}} {below}.0\n'
        )
    written += f"{name}_count{{{labels}}} {below}.0\n{name}_sum{{{labels}}} {total}\n"
    return f"vllm:num_requests_running{{{labels}}} 3.0\n{written}"


class Servers(World):
    """Pods of one workload, whose pages are read every five seconds."""

    def __init__(self, *names: str, least: int = 10) -> None:
        pods = [make_pod(name, gpus={}, labels={"app": "llm"}) for name in names]
        super().__init__(*pods, options=TelemetryOptions(min_requests=least))
        for name in names:
            self.value(name, f"{TTFT}_p90", 1000.0)  # the first question starts the reading

    def serve(self, name: str, text: str, time: float) -> None:
        self.scrape(text, time, origin=f"http://{name}:8000", pod=("ml", name), serves=True)


def test_a_quantile_is_interpolated_in_the_bucket_of_the_increase() -> None:
    world = Servers("a")
    world.serve("a", page(100, 0, 0, 0, 0, 0), 1000.0)
    assert world.value("a", f"{TTFT}_p90", 1001.0) == "reading_begins"
    world.serve("a", page(105, 5, 0, 10, 0, 0, total=12.0), 1005.0)
    assert world.value("a", f"{TTFT}_p50", 1006.0) == 0.25
    assert world.value("a", f"{TTFT}_p90", 1006.0) == 0.9
    assert world.value("a", f"{TTFT}_mean", 1006.0) == 0.6
    assert reading(world.read("a", f"{TTFT}_p90", 1006.0)).note == (
        "between 0.5 s and 1 s; 20 in 5 s"
    )


def test_a_latency_above_the_last_bound_is_the_bound_and_says_so() -> None:
    world = Servers("a")
    world.serve("a", page(0, 0, 0, 0, 0, 0), 1000.0)
    world.serve("a", page(5, 0, 0, 0, 0, 15), 1005.0)
    latency = reading(world.read("a", f"{TTFT}_p90", 1006.0))
    assert (latency.value, latency.note) == (2.5, "above 2.5 s, the last bound; 20 in 5 s")


@pytest.mark.parametrize(("hits", "reason"), [(0, "no_requests"), (9, "too_few_requests")])
def test_without_enough_requests_there_is_no_latency(hits: int, reason: str) -> None:
    world = Servers("a")
    world.serve("a", page(7, 0, 0, 0, 0, 0), 1000.0)
    world.serve("a", page(7 + hits, 0, 0, 0, 0, 0), 1005.0)
    assert world.value("a", f"{TTFT}_p90", 1006.0) == reason


def test_engines_of_a_pod_add_up() -> None:
    world = Servers("a")
    for time, fast, slow in ((1000.0, 0, 0), (1005.0, 30, 10)):
        both = page(fast, 0, 0, 0, 0, 0) + page(0, 0, 0, slow, 0, 0, engine="1")
        world.serve("a", both, time)
    assert world.value("a", f"{TTFT}_p90", 1006.0) == 0.8


def test_a_restart_counts_from_zero() -> None:
    world = Servers("a")
    world.serve("a", page(0, 0, 0, 0, 500, 0), 1000.0)
    world.serve("a", page(10, 0, 0, 0, 500, 0), 1005.0)
    world.serve("a", page(0, 10, 0, 0, 0, 0), 1010.0)
    assert world.value("a", f"{TTFT}_p95", 1011.0) == 0.235


def test_nothing_is_read_before_somebody_asks() -> None:
    world = World(make_pod("a", gpus={}))
    world.scrape(page(0, 0, 0, 0, 0, 0), 1000.0, origin="u", pod=("ml", "a"), serves=True)
    (series,) = world.store.snapshot.series_naming(PodRef("ml", "a"))
    assert set(series.history.latest()) == {"vllm:num_requests_running"}


def test_a_page_with_a_flaw_gives_no_latency_and_the_rest_of_it_stays() -> None:
    world = Servers("a")
    world.serve("a", page(0, 0, 0, 0, 0, 0), 1000.0)
    world.serve("a", page(20, 0, -3, 0, 0, 0), 1005.0)
    assert isinstance(world.read("a", f"{TTFT}_p90", 1100.0), Absence)
    assert world.count("buckets_decrease") == 1
    assert world.value("a", "inference_requests_running", 1006.0) == 3.0


@pytest.mark.parametrize("bound", ["-Inf", "-1", "-1e-9", "1e308", "NaN", "", "0x10", "9" * 5000])
def test_a_bound_that_is_not_a_duration_costs_the_histogram_and_nothing_else(bound: str) -> None:
    world = Servers("a", "b")
    labels = f'engine="0",le="{bound}",model_name="opal-7b"'
    name = f"vllm:time_to_first_token_seconds_bucket{{{labels}}}"
    for time, hits in ((1000.0, 0), (1005.0, 40)):
        good = page(hits, 0, 0, 0, 0, 0)
        world.serve("a", f"{name} {hits // 2}\n{good}", time)
        world.serve("b", good, time)
    assert isinstance(world.read("a", f"{TTFT}_p50", 1006.0), Absence)
    assert world.count("bad_bucket_bound") == 2
    assert world.value("a", "inference_requests_running", 1006.0) == 3.0
    assert world.value("b", f"{TTFT}_p50", 1006.0) == 0.05


def _many(servers: int, *pods: str) -> Servers:
    world = Servers(*pods)
    for time, hits in ((1000.0, 0), (1005.0, 40)):
        for name in pods:
            pages = (page(hits, 0, 0, 0, 0, 0, engine=f"{n}") for n in range(servers))
            world.serve(name, "".join(pages), time)
    return world


def _read(world: Servers) -> Steps[list[PodValue]]:
    return read_pods(
        world.pods.values(), P90, lambda pod: world.read(pod.ref.name, P90.name, 1006.0)
    )


def test_a_step_reads_the_latency_of_one_pod_and_adds_up_few_servers() -> None:
    """One step took a third of a second for 16 pods with as many servers as a page may have."""
    world = _many(100, *(f"p{n}" for n in range(4)))
    assert sum(1 for _ in _read(world)) == 4
    adding = pool_latencies(at_once(_read(world)), P90, Aggregate.MEAN, world.options)
    assert sum(1 for _ in adding) >= 4


def test_pods_that_share_a_latency_name_each_server_once() -> None:
    """The list was as long as pods times servers: 25 million entries for 5,000 pods."""
    world = _many(3, *(f"p{n}" for n in range(5)))
    whole = at_once(pool_latencies(at_once(_read(world)), P90, Aggregate.MEAN, world.options))
    combined = combine(Aggregate.MEAN, [reading(row.value) for row in whole], partial=False)
    assert len(combined.devices) == 3 * 5

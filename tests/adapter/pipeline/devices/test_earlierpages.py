"""A counter that appears on a server's page began at 0, if the pages before show that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.catalog.servermeasures import FINISHED, OUTPUT_TOKENS, gateway_metric
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.serve.ownmetrics import rows
from tests.adapter.world import CATALOG, World, make_pod, reading

T = 1000.0
ORIGIN = "http://10.0.0.5:8000/metrics"
GATEWAY_FINISHED = gateway_metric(FINISHED)
GATEWAY_TOKENS = gateway_metric(OUTPUT_TOKENS)
REQUEST_P50 = "inference_request_seconds_p50"
METRICS = (FINISHED, OUTPUT_TOKENS, REQUEST_P50, GATEWAY_FINISHED, GATEWAY_TOKENS)


def histogram(name: str, labels: str, count: int) -> str:
    """All values of the histogram are between 1 and 2 seconds."""
    beside = labels and labels + ","
    return (
        f'{name}_bucket{{{beside}le="1"}} 0\n'
        f'{name}_bucket{{{beside}le="2"}} {count}\n'
        f'{name}_bucket{{{beside}le="+Inf"}} {count}\n'
        f"{name}_sum{{{labels}}} {1.5 * count}\n"
        f"{name}_count{{{labels}}} {count}\n"
    )


def picker(**flows: int) -> str:
    page = 'llm_d_epp_flow_control_pool_saturation{inference_pool="p",stage="effective"} 0.4\n'
    for flow, count in flows.items():
        labels = f'model_name="m",fairness_id="{flow}"'
        page += f"llm_d_epp_request_total{{{labels}}} {count}\n"
        page += histogram("llm_d_epp_request_output_tokens", labels, 40 * count)
    return page


def sglang(**customers: int) -> str:
    page = 'sglang:num_running_reqs{model_name="m",tp_rank="0"} 2\n'
    for customer, count in customers.items():
        labels = f'model_name="m",customer="{customer}"'
        page += f"sglang:num_requests_total{{{labels}}} {count}\n"
        page += f"sglang:generation_tokens_total{{{labels}}} {40 * count}\n"
        page += histogram("sglang:e2e_request_latency_seconds", labels, count)
    return page


def counter(name: str, label: str, beside: str = "") -> Callable[..., str]:
    """What writes a page with one counter."""

    def page(**counts: int) -> str:
        lines = [f'{name}{{{label}="{value}"}} {count}\n' for value, count in counts.items()]
        return beside + "".join(lines)

    return page


tei = counter("te_request_success", "method", "te_queue_size{} 0\n")
triton = counter(
    "nv_inference_request_success", "model", "nv_inference_pending_request_count{} 0\n"
)
dynamo = counter(
    "dynamo_frontend_requests_total", "model", 'dynamo_frontend_active_requests{model="a"} 1\n'
)
modular = counter("maxserve_request_count_total", "code", "maxserve_num_requests_running{} 1\n")
vllm = counter(
    "vllm:request_success_total", "finished_reason", 'vllm:num_requests_running{engine="0"} 1\n'
)
ray = counter("ray_vllm_request_success_total", "engine", "ray_vllm_num_requests_running{} 1\n")


def world(options: TelemetryOptions | None = None) -> World:
    """A server of which every metric is asked for."""
    made = World(make_pod("p", gpus={}), options=options or TelemetryOptions(min_requests=1))
    for metric in METRICS:
        made.value("p", metric, T)
    return made


def scrape(at: World, page: str, time: float) -> None:
    at.scrape(page, time, origin=ORIGIN, pod=("ml", "p"), serves=True)


def served(*pages: str, every: float = 10.0, options: TelemetryOptions | None = None) -> World:
    at = world(options)
    for number, page in enumerate(pages):
        scrape(at, page, T + every * number)
    return at


PAGES: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {
    "a new flow of a picker": (
        (picker(a=100), picker(a=100, b=60)),
        {GATEWAY_FINISHED: 6.0, GATEWAY_TOKENS: 360.0},
    ),
    "new flows on each page": (
        (picker(), picker(a=50), picker(a=50, b=50), picker(a=50, b=50, c=50)),
        {GATEWAY_FINISHED: 5.0, GATEWAY_TOKENS: 300.0},
    ),
    "a flow that goes on counting": (
        (picker(a=100), picker(a=130, b=60), picker(a=160, b=90)),
        {GATEWAY_FINISHED: 7.5},
    ),
    "a new customer of SGLang": (
        (sglang(a=100), sglang(a=100, b=60)),
        {FINISHED: 6.0, OUTPUT_TOKENS: 240.0, REQUEST_P50: 1.5},
    ),
    "a fresh SGLang": (
        (sglang(), sglang(a=60)),
        {FINISHED: 6.0, OUTPUT_TOKENS: 240.0, REQUEST_P50: 1.5},
    ),
    "the first batch of TEI": ((tei(single=9), tei(single=9, batch=60)), {FINISHED: 6.0}),
    "the first request of TEI": ((tei(), tei(batch=60)), {FINISHED: 6.0}),
    "a model that Triton loads": ((triton(a=9), triton(a=9, b=60)), {FINISHED: 6.0}),
    "a new model of a frontend": ((dynamo(a=9), dynamo(a=9, b=60)), {GATEWAY_FINISHED: 6.0}),
    "a new code of MAX": ((modular(c200=9), modular(c200=9, c503=60)), {FINISHED: 6.0}),
    "the first requests of vLLM": ((vllm(), vllm(stop=60)), {FINISHED: 6.0}),
    "a restart between the pages": ((sglang(a=900), sglang(b=60)), {FINISHED: 6.0}),
    "a restart of the same customer": ((sglang(a=900), sglang(), sglang(a=60)), {FINISHED: 3.0}),
    "a page without the series, then more": (
        (sglang(a=900, b=9), sglang(b=9), sglang(a=960, b=9)),
        {FINISHED: 3.0},
    ),
    "after a page that was cut": (
        (sglang(a=9), sglang(a=9) + "sglang:num_req", sglang(a=9, b=60)),
        {FINISHED: 3.0},
    ),
}


@pytest.mark.parametrize(("pages", "expected"), PAGES.values(), ids=PAGES)
def test_what_a_new_series_counted_is_not_lost(
    pages: tuple[str, ...], expected: Mapping[str, float]
) -> None:
    at = served(*pages)
    now = T + 10.0 * len(pages)
    assert {metric: at.value("p", metric, now) for metric in expected} == expected


UNKNOWN: Mapping[str, tuple[str, ...]] = {
    "the first page": (sglang(a=9, b=900),),
    "a page that was cut": (sglang(a=9) + 'sglang:num_requests_total{customer="b"} 9',),
    "a line that cannot be read": (sglang(a=9) + "sglang:num_requests_total{b} 9\n",),
    "a number that cannot be read": (
        sglang(a=9) + 'sglang:num_requests_total{model_name="m",customer="b"} x\n',
    ),
    "a number that is none": (
        sglang(a=9) + 'sglang:num_requests_total{model_name="m",customer="b"} NaN\n',
    ),
    "a time of its own": (sglang(a=9) + 'sglang:num_queue_reqs{model_name="m"} 0 999000\n',),
}


@pytest.mark.parametrize("pages", UNKNOWN.values(), ids=UNKNOWN)
def test_a_page_that_cannot_show_it_makes_no_rise(pages: tuple[str, ...]) -> None:
    at = served(*pages, sglang(a=9, b=900))
    assert at.value("p", FINISHED, T + 20.0) == 0.0


def test_a_series_that_was_not_read_for_may_have_been_on_the_page() -> None:
    at = World(make_pod("p", gpus={}))
    scrape(at, sglang(a=900), T)
    at.value("p", FINISHED, T + 5.0)
    scrape(at, sglang(a=905), T + 10.0)
    assert at.value("p", FINISHED, T + 11.0) == "reading_begins"
    scrape(at, sglang(a=915, b=10), T + 20.0)
    value = at.value("p", FINISHED, T + 21.0)
    assert isinstance(value, float)
    assert value <= 2.0


def test_of_a_server_with_too_many_parts_nothing_is_concluded() -> None:
    options = TelemetryOptions(server_series=2)
    at = served(sglang(a=9, b=9, c=900), sglang(a=9, c=900), options=options)
    assert isinstance(at.value("p", FINISHED, T + 20.0), str)


IDLE: Mapping[str, str] = {
    "cut inside a part": vllm(stop=9000) + "vllm:request_success_total{finished_re",
    "a number that cannot be read": vllm(stop=9000)
    + 'vllm:request_success_total{finished_reason="length"} x\n',
    "a number that is none": vllm(stop=9000)
    + 'vllm:request_success_total{finished_reason="length"} NaN\n',
}


@pytest.mark.parametrize("page", IDLE.values(), ids=IDLE)
def test_a_part_that_one_page_does_not_show_makes_no_rise(page: str) -> None:
    """Each page of a server that does nothing; the sum without the part is not a restart."""
    whole = vllm(stop=9000, length=9000)
    at = world()
    for number, text in enumerate((whole, whole, page, whole, whole)):
        scrape(at, text, T + 10.0 * number)
        if number:
            assert at.value("p", FINISHED, T + 10.0 * number) == 0.0


def test_a_queue_of_flows_is_not_smaller_where_the_page_was_cut() -> None:
    queue = "llm_d_epp_flow_control_queue_size"
    flows = "".join(f'{queue}{{fairness_id="u{flow}",model_name="m"}} 10\n' for flow in range(5))
    at = served(flows, flows, flows.removesuffix("10\n"))
    assert at.value("p", "inference_gateway_requests_waiting", T + 30.0) == 50.0


def test_a_gauge_that_is_no_longer_on_the_page_is_not_revived() -> None:
    finished = 'vllm:request_success_total{engine="0"} 9\n'
    running = 'vllm:num_requests_running{engine="%d"} %d\n'
    both = running % (0, 40) + running % (1, 1) + finished
    at = served(both, both, running % (1, 1), running % (1, 1), running % (1, 1) + finished)
    assert at.value("p", "inference_requests_running", T + 41.0) == 1.0


def test_a_page_of_the_proxy_alone_shows_nothing_of_the_server() -> None:
    """Istio merges the pages of a pod; a user reads a series of its proxy."""
    row = MetricSettings.model_validate(
        {
            "name": "mesh_rps",
            "series": "istio_requests_total",
            "kind": "rate",
            "scope": "server",
        }
    )
    at = World(
        make_pod("p", gpus={}),
        catalog=CATALOG.extended(*rows([row], CATALOG)),
        options=TelemetryOptions(min_requests=1),
    )
    for metric in METRICS:
        at.value("p", metric, T)
    proxy = 'istio_requests_total{response_code="200"} 100\n'
    for number, page in enumerate((proxy, proxy + sglang(a=100_000), proxy + sglang(a=100_010))):
        scrape(at, page, T + 10.0 * number)
    assert at.value("p", FINISHED, T + 21.0) == 1.0


def test_parts_that_return_after_too_many_others_do_not_count_again() -> None:
    options = TelemetryOptions(min_requests=1, server_series=20)
    first = sglang(**{f"a{number}": 900 for number in range(15)})
    other = sglang(**{f"b{number}": 9 for number in range(15)})
    third = sglang(**{f"c{number}": 9 for number in range(15)})
    at = world(options)
    for number, page in enumerate((first, first, other, third, other, first, first)):
        scrape(at, page, T + 5.0 * number)
        value = at.value("p", FINISHED, T + 5.0 * number)
        assert isinstance(value, str) or value <= 15 * 9 / 5.0


def test_parts_of_ranks_leave_room_for_those_of_customers() -> None:
    ranks = "".join(
        f'sglang:num_running_reqs{{model_name="m",dp_rank="{rank}"}} 1\n' for rank in range(12)
    )
    customers = {f"c{number}": 60 for number in range(10)}
    options = TelemetryOptions(min_requests=1, server_series=20)
    at = served(ranks + sglang(**customers), ranks + sglang(**customers, new=60), options=options)
    assert at.value("p", FINISHED, T + 20.0) == 6.0


def test_a_flawed_histogram_was_on_the_page() -> None:
    flawed = sglang(a=900).replace('le="2"} 900', 'le="2"} 1000')
    at = served(flawed, sglang(a=900))
    assert isinstance(at.value("p", REQUEST_P50, T + 20.0), str)


def test_another_pod_at_the_same_address_does_not_continue() -> None:
    at = World(make_pod("p", gpus={}), make_pod("q", gpus={}))
    for metric in METRICS:
        at.value("p", metric, T)
    scrape(at, sglang(), T)
    at.scrape(sglang(a=900), T + 10.0, origin=ORIGIN, pod=("ml", "q"), serves=True)
    assert isinstance(at.value("q", FINISHED, T + 11.0), str)


def test_the_workers_of_ray_may_bring_a_past() -> None:
    at = served(ray(a=9), ray(a=9, b=900))
    assert at.value("p", FINISHED, T + 20.0) == 0.0


def test_a_stored_page_shows_nothing_of_what_it_does_not_have() -> None:
    at = world()
    target = {"namespace": "ml", "pod": "p", "instance": "10.0.0.5:8000"}
    for number, page in enumerate((vllm(), vllm(stop=900))):
        time = T + 10.0 * number
        read = parse(page.encode(), time=time, wanted=at.store.demand.series)
        samples = [s._replace(labels={**s.labels, **target}) for s in read.samples]
        at.store.ingest(ScrapeResult("10.0.0.5:8000", None, samples, time))
    assert isinstance(at.value("p", FINISHED, T + 20.0), str)


def test_the_series_of_a_user_may_have_a_past() -> None:
    row = MetricSettings.model_validate(
        {"name": "jobs_per_second", "series": "jobs_total", "kind": "rate", "scope": "server"}
    )
    at = World(make_pod("p", gpus={}), catalog=CATALOG.extended(*rows([row], CATALOG)))
    scrape(at, 'jobs_total{queue="a"} 9\n', T)
    scrape(at, 'jobs_total{queue="a"} 9\njobs_total{queue="b"} 900\n', T + 10.0)
    assert at.value("p", "jobs_per_second", T + 11.0) == 0.0


LABELS = ("a", "b", "c", "d", "e")
COUNTS = st.dictionaries(st.sampled_from(LABELS), st.integers(0, 50), max_size=len(LABELS))


@pytest.mark.parametrize(
    ("page", "metric"), [(picker, GATEWAY_FINISHED), (sglang, FINISHED), (tei, FINISHED)]
)
@given(steps=st.lists(COUNTS, min_size=2, max_size=11))
def test_the_increases_of_all_label_sets_are_what_was_counted(
    page: Callable[..., str], metric: str, steps: list[dict[str, int]]
) -> None:
    counts: dict[str, int] = {}
    pages = []
    for step in steps:
        counts = {label: counts.get(label, 0) + step.get(label, 0) for label in counts | step}
        pages.append(page(**counts))
    at = served(*pages, every=5.0)
    answer = at.read("p", metric, T + 5.0 * len(steps))
    counted = sum(sum(step.values()) for step in steps[1:])
    seconds = 5.0 * (len(steps) - 1)
    if counts:
        assert reading(answer).value == pytest.approx(counted / seconds)
    latency = at.read("p", REQUEST_P50, T + 5.0 * len(steps))
    if page is sglang and counted:
        assert isinstance(latency, Reading)
        assert sum(part.increase.count for part in latency.devices if part.increase) == counted

"""The limits for pod pages in the store."""

from __future__ import annotations

from dataclasses import replace

from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.store import Store
from tests.adapter.world import CATALOG, World, make_pod, said

NOW = 1_700_000_000.0
OPTIONS = TelemetryOptions(server_bytes=200_000, server_series=4)


def page(pod: int, models: range, now: float = NOW, namespace: str = "ns") -> ScrapeResult:
    text = "".join(f'vllm:num_requests_waiting{{model_name="m{m}"}} 1\n' for m in models)
    read = parse(text.encode(), time=now, wanted=CATALOG.series)
    return ScrapeResult(
        f"http://{pod}", "n", read.samples, now, pod=(namespace, f"p{pod}"), serves=True
    )


def filled(options: TelemetryOptions, *results: ScrapeResult) -> Store:
    world = World(*(make_pod(f"p{number}") for number in range(40)), options=options)
    for result in results:
        world.store.ingest(result)
    return world.store


def test_the_parts_of_one_server_are_bounded() -> None:
    store = filled(OPTIONS, page(0, range(6)))
    assert store.size.all_series == 4
    assert store.rejects.totals["too_many_devices"] == 2


def test_a_page_above_the_limit_of_a_pod_keeps_the_previous_page() -> None:
    options = replace(OPTIONS, server_series=100)
    store = filled(options, page(0, range(2)), page(0, range(10), NOW + 5))
    assert store.size.all_series == 2
    assert store.rejects.totals["over_budget"] == 10


def test_all_pods_share_one_budget_and_release_it() -> None:
    pages = [page(number, range(3)) for number in range(40)]
    store = filled(OPTIONS, *pages)
    held = store.size.exporters
    assert 15 < held < 40
    assert store.rejects.totals["over_budget"] == 3 * (40 - held)

    again = page(0, range(3), NOW + 5)
    store.ingest(again)  # a page that replaces the previous one needs no further room
    assert store.rejects.totals["over_budget"] == 3 * (40 - held)

    for number in range(1, 40):
        store.forget(f"http://{number}")
    late = NOW + OPTIONS.oldest + 10
    store.ingest(page(0, range(3), late))
    store.ingest(page(39, range(3), late))
    assert store.size.exporters == 2
    assert store.rejects.totals["over_budget"] == 3 * (40 - held)


def test_a_namespace_that_fills_the_budget_yields_to_another() -> None:
    hoard = [page(number, range(3)) for number in range(40)]
    mine = [page(100 + number, range(3), namespace="mine") for number in range(4)]
    pods = [
        make_pod(f"p{n}", namespace="ns" if n < 100 else "mine")
        for n in (*range(40), *range(100, 104))
    ]
    world = World(*pods, options=OPTIONS)
    for result in (*hoard, *mine, *hoard, *hoard):
        world.store.ingest(result)
    values = [
        said(world.read(f"p{100 + n}", "vllm:num_requests_waiting", NOW, namespace="mine"))
        for n in range(4)
    ]
    assert values == [3.0] * 4
    assert 10 < world.store.size.exporters <= 21


def test_two_namespaces_share_the_budget_equally() -> None:
    store = filled(OPTIONS)
    for _ in range(3):
        for number in range(40):
            store.ingest(page(number, range(3), namespace="a"))
        for number in range(40, 80):
            store.ingest(page(number, range(3), namespace="b"))
    held = [int(origin.removeprefix("http://")) for origin in store.snapshot.states]
    first = sum(1 for number in held if number < 40)
    assert abs(2 * first - len(held)) <= 2


def test_an_address_that_moved_to_another_namespace_counts_once() -> None:
    store = filled(OPTIONS, page(0, range(3)), page(0, range(3), NOW + 5, namespace="other"))
    for number in range(1, 30):
        store.ingest(page(number, range(3), NOW + 5, namespace="other"))
    alone = filled(OPTIONS, *(page(number, range(3)) for number in range(30)))
    assert store.size.exporters == alone.size.exporters


def test_samples_count_too() -> None:
    options = replace(OPTIONS, server_bytes=16 * 3500, window=1e6, age_limit=1e6)
    store = filled(options, *(page(0, range(1), NOW + number) for number in range(100)))
    assert 0 < store.rejects.totals["over_budget"] < 100


def test_exporters_are_not_counted() -> None:
    result = page(0, range(4))
    world = World(make_pod("p0"), options=replace(OPTIONS, server_bytes=1))
    text = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="p0",namespace="ns"} 1\n'
    rows = parse(text.encode(), time=NOW, wanted=CATALOG.series).samples
    world.store.ingest(replace(result, samples=rows, serves=False, pod=None))
    assert world.store.size.all_series == 1
    assert world.store.rejects.totals["over_budget"] == 0

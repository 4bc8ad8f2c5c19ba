"""Every spelling of a pod's name, of exporters and servers, scraped directly and from a store."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.podspellings import SPELLINGS
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.world import World, make_pod, said

T = 1_700_000_000.0
UTIL = "DCGM_FI_DEV_GPU_UTIL"
QUEUE = "vllm:num_requests_waiting"
WAITING = "inference_requests_waiting"
Labels = Mapping[str, str]

PAIRS = {
    f"{spelling.pod} {namespace}": {spelling.pod: "llm", namespace: "ml"}
    for spelling in SPELLINGS
    for namespace in dict.fromkeys((*spelling.namespaces, "namespace"))
}
TARGET = {"pod": "dcgm-x", "namespace": "gpu", "container": "exporter"}
SCRAPED = {"instance": "10.0.0.7:9400", "job": "dcgm-exporter"}
OTEL = {"k8s_pod_name": "dcgm-x", "k8s_namespace_name": "gpu", "k8s_node_name": "n1"}


def honored(page: Labels, target: Labels) -> Labels:
    """``honor_labels: true``: the page's labels win."""
    return {**target, **page}


def renamed(page: Labels, target: Labels) -> Labels:
    """``honor_labels: false``: the target's labels win, and the page's are kept beside them."""
    return {f"exported_{n}" if n in target else n: v for n, v in page.items()} | dict(target)


SCRAPES: dict[str, Callable[[Labels], Labels]] = {
    "no target labels": lambda page: honored(page, SCRAPED),
    "honorLabels true": lambda page: honored(page, TARGET | SCRAPED),
    "honorLabels false": lambda page: renamed(page, TARGET | SCRAPED),
    "target label pod_name": lambda page: renamed(page, {"pod_name": "dcgm-x"} | SCRAPED),
    "Istio's labels": lambda page: renamed(
        page, {"pod_name": "dcgm-x", "namespace": "gpu"} | SCRAPED
    ),
    "OpenTelemetry": lambda page: honored(page, OTEL | SCRAPED),
    "OpenTelemetry without translation": lambda page: honored(
        page, {"k8s.pod.name": "dcgm-x", "k8s.namespace.name": "gpu"} | SCRAPED
    ),
    "the older example of Prometheus": lambda page: honored(
        page, {"kubernetes_pod_name": "dcgm-x", "kubernetes_namespace": "gpu"} | SCRAPED
    ),
}


def cluster() -> World:
    return World(
        make_pod("llm", node="n1", ip="10.0.0.5"),
        make_pod("dcgm-x", namespace="gpu", gpus={}, node="n1", ip="10.0.0.7", uid="x"),
    )


def put(world: World, *rows: tuple[str, Labels, float], node: str | None = None) -> None:
    samples = [Sample(name, dict(labels), value, T) for name, labels, value in rows]
    world.store.ingest(ScrapeResult("10.0.0.7:9400", node, samples, T, {}))


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_an_exporters_page_names_the_workload_in_every_spelling(pair: Labels) -> None:
    world = cluster()
    idle = {"UUID": "GPU-1", "gpu": "1"}
    put(world, (UTIL, {**pair, "UUID": "GPU-0"}, 70.0), (UTIL, idle, 3.0), node="n1")
    assert world.value("llm", "gpu_utilization", T) == 70.0


@pytest.mark.parametrize("scrape", SCRAPES.values(), ids=SCRAPES)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_store_names_the_workload_in_every_spelling(
    pair: Labels, scrape: Callable[[Labels], Labels]
) -> None:
    world = cluster()
    put(
        world,
        (UTIL, scrape({"UUID": "GPU-0", "gpu": "0", **pair}), 70.0),
        (UTIL, scrape({"UUID": "GPU-1", "gpu": "1"}), 3.0),
    )
    assert world.value("llm", "gpu_utilization", T) == 70.0
    assert said(world.read("dcgm-x", "gpu_utilization", T, namespace="gpu")) != 3.0


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("instance", ["10.0.0.5:8000", "10.0.0.99:8000"])
def test_a_store_names_the_server_in_every_spelling(pair: Labels, instance: str) -> None:
    world = cluster()
    put(world, (QUEUE, {**pair, "instance": instance, "job": "vllm", "engine": "0"}, 7.0))
    assert world.value("llm", WAITING, T) == 7.0
    assert not world.store.rejects.totals


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_page_of_a_server_may_name_its_own_pod_in_every_spelling(pair: Labels) -> None:
    for pod, value in (("llm", 7.0), ("other", "server_not_scraped")):
        world = World(make_pod("llm"), make_pod("other", uid="o"))
        sample = Sample(QUEUE, {**pair, "engine": "0"}, 7.0, T)
        world.store.ingest(
            ScrapeResult("http://s", None, [sample], T, {}, pod=("ml", pod), serves=True)
        )
        assert world.value(pod, WAITING, T) == value


def test_the_address_of_the_target_names_a_server() -> None:
    world = cluster()
    row = (QUEUE, {"instance": "10.0.0.5:8000", "job": "vllm"}, 7.0)
    put(world, row)
    assert world.value("llm", WAITING, T) == 7.0


@pytest.mark.parametrize(
    "labels",
    [
        {"instance": "10.0.0.6:8000"},
        {"instance": "10.0.0.5:8000", "cluster": "b"},
        {"instance": "10.0.0.5:8000", "namespace": "other"},
        {"instance": "10.0.0.5:8000", "k8s_pod_name": "another"},
    ],
    ids=str,
)
def test_an_address_that_may_be_another_pods_names_no_server(labels: Labels) -> None:
    world = cluster()
    put(world, (QUEUE, labels, 7.0))
    assert world.value("llm", WAITING, T) == "server_not_scraped"
    assert world.count("server_without_pod") == 1


def test_an_address_of_several_pods_names_no_server() -> None:
    world = World(make_pod("llm", ip="10.0.0.5"), make_pod("b", ip="10.0.0.5", uid="b"))
    put(world, (QUEUE, {"instance": "10.0.0.5:8000"}, 7.0))
    assert world.value("llm", WAITING, T) == "server_not_scraped"


def test_an_address_follows_its_pod() -> None:
    """Also on pages that are taken in by a plan, and for a pod that is known later."""
    world = World(make_pod("llm"))
    layout, labels = object(), {"instance": "10.0.0.5:8000"}

    def scrape(time: float) -> None:
        made = [Sample(QUEUE, labels, 7.0, time)]
        samples = LayoutSamples(layout, array("d", [7.0]), time, partial(list, made))
        world.store.ingest(ScrapeResult("10.0.0.5:8000", None, samples, time, {}))

    for time in (T, T + 5):
        scrape(time)
    assert world.value("llm", WAITING, T + 5) == "server_not_scraped"
    world.put(make_pod("llm", ip="10.0.0.5"))
    for time in (T + 10, T + 15):
        scrape(time)
        assert world.value("llm", WAITING, time) == 7.0
    world.put(make_pod("llm", ip="10.0.0.6"), make_pod("next", ip="10.0.0.5", uid="n"))
    for time in (T + 20, T + 25):
        scrape(time)
        assert world.value("next", WAITING, time) == 7.0
        assert world.value("llm", WAITING, time) != 7.0


@pytest.mark.parametrize("known_later", [True, False])
def test_another_pod_that_labels_may_name_is_found_when_it_exists(*, known_later: bool) -> None:
    """Also on pages that are taken in by a plan."""
    workload = make_pod("llm", node="n1")
    world = World() if known_later else World(workload)
    labels = {"UUID": "GPU-0", "k8s_pod_name": "llm", "k8s_namespace_name": "ml"} | SCRAPED
    layout = object()
    for number in range(4):
        if number == 2:
            world.put(workload)
        time = T + 5 * number
        made = [Sample(UTIL, labels, 70.0, time)]
        samples = LayoutSamples(layout, array("d", [70.0]), time, partial(list, made))
        world.store.ingest(ScrapeResult("10.0.0.7:9400", None, samples, time, {}))
    assert world.value("llm", "gpu_utilization", T + 15) == 70.0


@pytest.mark.parametrize("label", ["pod_name", "podname"])
def test_the_exporters_own_name_beside_the_workload_drops_nothing(label: str) -> None:
    world = cluster()
    target = {label: "dcgm-x"} | SCRAPED
    put(
        world,
        (UTIL, {"UUID": "GPU-0", "pod": "llm", "namespace": "ml", **target}, 81.0),
        (UTIL, {"UUID": "GPU-1", **target}, 2.0),
    )
    assert world.value("llm", "gpu_utilization", T) == 81.0
    assert not world.store.rejects.totals


def test_instances_of_a_board_stay_apart_in_a_store_that_writes_lower_case() -> None:
    world = World(*(make_pod(p, gpus={"nvidia.com/mig-1g.10gb": 1}, uid=p) for p in "ab"))
    put(
        world,
        *(
            (
                "dcgm_fi_prof_gr_engine_active",
                {
                    "uuid": "gpu-1",
                    "gpu": "0",
                    "gpu_i_id": instance,
                    "gpu_i_profile": "1g.10gb",
                    "pod": pod,
                    "namespace": "ml",
                    "instance": "10.0.0.7:9400",
                },
                value,
            )
            for pod, instance, value in (("a", "11", 0.91), ("b", "12", 0.07))
        ),
    )
    assert world.value("a", "gpu_utilization", T) == 91.0
    assert world.value("b", "gpu_utilization", T) == 7.0
    assert world.value("a", "gpu_utilization", T, "mig_profile=1g.10gb") == 91.0

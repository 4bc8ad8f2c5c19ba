"""Servers at several ports of one pod, and pages that repeat the samples of others."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.cluster.pod import ContainerPort
from adapter.pipeline.devices.readpages import PageState
from adapter.pipeline.devices.serveraddress import ServerAddress, address
from tests.adapter.pipeline.attribution.serverscene import WAITING, T, store
from tests.adapter.pipeline.attribution.test_unnamedpods import Pages
from tests.adapter.world import World, make_pod, row

LLM = make_pod("llm", gpus={}, ip="192.0.2.4")
TARGET = {"pod": "llm", "namespace": "ml", "job": "ml/llm"}
QUEUES = {"8000": 2, "8001": 9, "8002": 4, "8003": 0}
"""Port -> the requests that wait there."""


def queue(waiting: int, labels: str = 'engine="0",model_name="m"') -> str:
    return f"vllm:num_requests_waiting{{{labels}}} {waiting}\n"


def stored(world: World, waiting: int, instance: str, **more: str) -> None:
    store(world, queue(waiting), TARGET | {"instance": instance} | more, origin=instance)


@pytest.mark.parametrize(
    "instance",
    ["192.0.2.4:{port}", "llm:{port}", "http://192.0.2.4:{port}/metrics", "gpu-node-1:{port}"],
)
def test_servers_at_the_ports_of_a_pod_add_up_in_a_store(instance: str) -> None:
    world = World(LLM)
    for port, waiting in QUEUES.items():
        stored(world, waiting, instance.format(port=port))
    assert world.value("llm", WAITING, T) == 15.0


def test_the_name_of_the_port_replaces_its_number() -> None:
    world = World(LLM)
    for port, waiting in QUEUES.items():
        stored(world, waiting, f"gpu-node-1/{port}", endpoint=f"p{port}")
    assert world.value("llm", WAITING, T) == 15.0


REPLICAS = ("prometheus_replica", "prometheus", "replica", "__replica__", "ha_pair")


@pytest.mark.parametrize("label", REPLICAS)
def test_two_prometheus_servers_that_scrape_the_same_ports_count_once(label: str) -> None:
    world = World(LLM)
    rows = ""
    for port, waiting in QUEUES.items():
        for replica in ("a", "b"):
            target = f'instance="192.0.2.4:{port}",endpoint="p{port}",{label}="{replica}"'
            rows += queue(waiting, f'engine="0",model_name="m",{target}')
    store(world, rows, TARGET, origin="prometheus")
    assert world.value("llm", WAITING, T) == 15.0


def test_servers_at_the_ports_of_a_pod_add_up_when_their_pages_are_read() -> None:
    world = World(LLM)
    for port, waiting in QUEUES.items():
        url = f"http://192.0.2.4:{port}/metrics"
        world.scrape(queue(waiting), T, origin=url, pod=("ml", "llm"), serves=True)
    assert world.value("llm", WAITING, T) == 15.0


def test_a_port_that_is_no_longer_named_is_not_added_to_the_one_that_is() -> None:
    world = World(LLM)
    for port, time in (("8000", T), ("8001", T + 5)):
        url = f"http://192.0.2.4:{port}/metrics"
        world.scrape(queue(7), time, origin=url, pod=("ml", "llm"), serves=True)
        assert world.value("llm", WAITING, time) == 7.0
        world.store.forget(url)


def test_the_next_page_of_a_server_does_not_end_an_exporter_that_is_gone() -> None:
    world = World(make_pod("llm", ip="192.0.2.4", node="n1"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T, origin="http://exporter", node="n1")
    world.store.forget("http://exporter")
    world.scrape(queue(7), T + 1, origin=URL, pod=("ml", "llm"), serves=True)
    assert world.value("llm", "gpu_utilization", T + 1) == 70.0


def test_the_name_and_the_number_of_a_port_are_one_server() -> None:
    ports = (ContainerPort("metrics", 8000), ContainerPort("other", 8001))
    world = World(LLM.replace(ports=ports))
    stored(world, 7, "192.0.2.4:8000")
    stored(world, 7, "llm:metrics")
    assert world.value("llm", WAITING, T) == 7.0
    stored(world, 4, "llm:other")
    assert world.value("llm", WAITING, T) == 11.0


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost", "[::]", "[::1]"])
def test_a_server_may_name_itself_by_the_address_that_it_listens_on(host: str) -> None:
    world = World(LLM)
    page = queue(7, f'server="{host}:8000"')
    url = "http://192.0.2.4:8000/metrics"
    world.scrape(page, T, origin=url, pod=("ml", "llm"), serves=True)
    assert world.value("llm", WAITING, T) == 7.0
    world.scrape(page.replace("8000", "8001"), T, origin=url, pod=("ml", "llm"), serves=True)
    assert isinstance(world.value("llm", WAITING, T), str)


def test_an_agent_that_serves_the_pages_of_other_ports_adds_nothing() -> None:
    world = World(LLM)
    stored(world, 7, "192.0.2.4:8000")
    stored(world, 7, "192.0.2.4:15020", endpoint="http-envoy-prom")
    assert world.value("llm", WAITING, T) == 7.0
    alone = World(LLM)
    stored(alone, 7, "192.0.2.4:15020")
    assert alone.value("llm", WAITING, T) == 7.0


def test_a_gateway_that_hands_on_with_honor_labels_adds_nothing_to_the_pods_own_page() -> None:
    """aibrix' gateway plugin names the pod; the store keeps the name with ``honor_labels``."""
    world = World(LLM)
    stored(world, 7, "192.0.2.4:8000")
    again = {"instance": "198.51.100.9:8080", "job": "gateway", "gateway_pod": "gateway-0"}
    store(world, "num_requests_waiting 7\n", TARGET | again, origin="198.51.100.9:8080")
    assert world.value("llm", WAITING, T) == 7.0


def test_what_a_gateway_hands_on_counts_once_the_pods_own_page_is_too_old() -> None:
    world = World(LLM)
    stored(world, 7, "192.0.2.4:8000")
    late = T + world.options.oldest + 5
    labels = 'engine="0",model_name="m",pod="llm",namespace="ml",instance="198.51.100.9:8080"'
    world.scrape(queue(5, labels), late, origin="198.51.100.9:8080")
    assert world.value("llm", WAITING, late) == 5.0


OTHERS = {
    "a URL": 'server="http://198.51.100.4:8000"',
    "another name of the label": 'worker_url="https://engine-0.engines.ml.svc:8000/"',
    "an address": 'pd_node="198.51.100.4:8000"',
    "a host name with a port": 'worker="engine-0:8000"',
    "an IPv6 address": 'backend="[2001:db8::4]:8000"',
    "a URL of any protocol with a port": 'peer="nats://engine-0:4222/x"',
    "a gRPC worker": 'worker="grpc://engine-0"',
    "another port of the pod": 'server="http://192.0.2.4:8001"',
}


URL = "http://192.0.2.4:8000/metrics"


def pages(*states: PageState) -> World:
    world = World(LLM)
    world.store.pages = Pages(server=states)
    return world


@pytest.mark.parametrize("label", OTHERS.values(), ids=OTHERS)
def test_a_sample_that_names_another_server_is_not_the_pages_own(label: str) -> None:
    world = pages(PageState(URL, LLM.ref, T, ""))
    world.scrape(queue(7, label), T, origin=URL, pod=("ml", "llm"), serves=True)
    assert world.value("llm", WAITING, T) == "server_page_of_others"
    assert world.count("server_names_another_server") == 1


@pytest.mark.parametrize("label", OTHERS.values(), ids=OTHERS)
def test_a_store_gives_a_router_nothing_of_its_servers(label: str) -> None:
    world = World(LLM)
    target = TARGET | {"instance": "192.0.2.4:8000"}
    store(world, queue(7, label), target, origin="192.0.2.4:8000")
    assert world.value("llm", WAITING, T) == "server_not_scraped"
    assert world.count("server_names_another_server") == 1


NO_SERVERS = {
    "the URL of the cluster": 'cluster="https://api.prod.example:6443"',
    "the address of the cluster": 'k8s_cluster_name="198.51.100.1:6443"',
    "a bucket with the model": 'model_uri="s3://models/llama"',
    "a repository of models": 'storage_uri="hf://org/llama"',
    "a volume with the model": 'model_path="pvc://models/llama"',
}


@pytest.mark.parametrize("label", NO_SERVERS.values(), ids=NO_SERVERS)
def test_the_place_of_a_cluster_or_of_a_model_is_not_a_server(label: str) -> None:
    world = World(LLM)
    target = TARGET | {"instance": "192.0.2.4:8000"}
    store(world, queue(7, label), target, origin="192.0.2.4:8000")
    assert world.value("llm", WAITING, T) == 7.0
    world = World(LLM)
    world.scrape(queue(7, label), T, origin=URL, pod=("ml", "llm"), serves=True)
    assert world.value("llm", WAITING, T) == 7.0


def test_a_sum_over_ports_is_absent_while_one_of_the_pages_is_missing() -> None:
    world = pages(
        PageState(URL, LLM.ref, T, ""),
        PageState("http://192.0.2.4:8001/metrics", LLM.ref, 0.0, "cannot connect"),
    )
    world.scrape(queue(7), T, origin=URL, pod=("ml", "llm"), serves=True)
    absence = world.read("llm", WAITING, T)
    assert isinstance(absence, Absence)
    assert (absence.reason, absence.detail) == (
        "server_down",
        "http://192.0.2.4:8001/metrics has never answered: cannot connect",
    )


def test_a_page_without_a_known_series_is_not_down() -> None:
    error = "the page has no series that the catalogue contains; it looks like Ollama"
    world = pages(PageState(URL, LLM.ref, 0.0, error, unknown=True))
    world.scrape("", T, origin="another")
    absence = world.read("llm", WAITING, T)
    assert isinstance(absence, Absence)
    assert (absence.reason, absence.detail) == ("server_page_unknown", f"{URL} answers: {error}")


OWN = {
    "its own address": 'server="http://192.0.2.4:8000/v1"',
    "a model in a bucket": 'model_name="s3://models/m"',
    "a word": 'server="llm-0"',
    "a name with a colon": 'lora="adapter:12"',
    "an address without a port": 'NodeAddress="192.0.2.4"',
}


@pytest.mark.parametrize("label", OWN.values(), ids=OWN)
def test_a_sample_that_names_its_own_server_counts(label: str) -> None:
    world = World(LLM)
    world.scrape(queue(7, label), T, origin=URL, pod=("ml", "llm"), serves=True)
    assert world.value("llm", WAITING, T) == 7.0


ADDRESSES = {
    "192.0.2.4:8000": ServerAddress("192.0.2.4", "8000"),
    "[2001:db8::4]:8000": ServerAddress("2001:db8::4", "8000"),
    "https://user@host.svc:8443/metrics?a=b:1": ServerAddress("host.svc", "8443"),
    "llm-0:metrics": ServerAddress("llm-0", "metrics"),
    "gpu-node-1": ServerAddress("gpu-node-1", ""),
    "2001:db8::4": ServerAddress("", ""),
    "": ServerAddress("", ""),
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_an_address_is_a_host_and_a_port(text: str) -> None:
    assert address(text) == ADDRESSES[text]

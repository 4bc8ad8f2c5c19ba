"""Sums over the servers of a workload, and pages that are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.answers.api.expectedpods import expected_pods
from adapter.answers.api.provider import GpuMetricsProvider
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.attribution.servers import Servers
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Owner, Pod, PodRef
from adapter.pipeline.store.store import Store
from apiservice.errors import MetricNotFound
from apiservice.labels.selector import EVERYTHING
from apiservice.provider import GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.pipeline.attribution.serverscene import VLLM, WAITING, T, page, rows_at, serve
from tests.adapter.world import CATALOG, World, make_pod

RS = Owner("apps/v1", "ReplicaSet", "llm-5d9")


def replica(name: str, owner: Owner | None = RS, template: str = "5d9") -> Pod:
    labels = {"pod-template-hash": template}
    return make_pod(name, gpus={}).replace(owner=owner, labels=labels)


A, B = replica("a"), replica("b")
NEXT = replica("c", Owner("apps/v1", "ReplicaSet", "llm-7f1"), "7f1")
LONE = replica("lone", None)
ASKS = LONE.replace(annotations={"gpu-metrics-adapter.io/scrape": "true"})
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
    needed = at_once(expected_pods(pods, CATALOG.metrics[WAITING], world.store.snapshot))
    assert [pod.ref.name for pod in needed] == expected


def test_a_device_metric_needs_only_pods_with_devices() -> None:
    world = World(A, make_pod("gpu"))
    needed = at_once(
        expected_pods((A, make_pod("gpu")), CATALOG.metrics["gpu_count"], world.store.snapshot)
    )
    assert [pod.ref for pod in needed] == [PodRef("ml", "gpu")]


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
    index.replace([first.replace(uid="next"), b])
    assert namespace(provider, T + 1) == [8_000]


def test_server_data_is_bounded_by_the_number_of_living_pods() -> None:
    index = PodIndex()
    servers = Servers(index)
    for number in range(5_000):
        pod = make_pod(f"pod-{number}", uid=f"uid-{number}")
        index.replace([pod])
        servers.note([pod.ref])
        assert pod.ref in servers
    assert len(servers) <= 1_100


def test_a_pod_that_is_not_ready_is_not_expected() -> None:
    store, provider = objects_lab(A, B.replace(ready=False))
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

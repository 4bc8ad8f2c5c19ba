"""Answers to API requests about pods, nodes, namespaces and workloads."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace

import pytest

from adapter.answers.api.provider import GpuMetricsProvider
from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Owner, Pod, PodRef
from adapter.pipeline.cluster.services import Service, Services
from adapter.server.serve.ownmetrics import rows
from apiservice.errors import BadQuery, MetricNotFound, NotFound, Unavailable
from apiservice.labels.selector import EVERYTHING
from apiservice.labels.selector import parse as selector
from apiservice.provider import GroupResource, MetricValue, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

NOW = 1_700_000_000.0
POD = make_pod(
    "a",
    namespace="ns",
    uid="uid-a",
    node="n1",
    ip="10.0.0.1",
    labels={"app": "inf"},
    owner=Owner("apps/v1", "ReplicaSet", "inf-5d9"),
    containers=("c",),
)
A = POD.replace(labels={"app": "inf", "pod-template-hash": "5d9"})
B = A.replace(ref=PodRef("ns", "b"), uid="uid-b")
OTHER = POD.replace(ref=PodRef("ns", "other"), labels={"app": "train"}, owner=None)
UTIL = (
    'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-{pod}",modelName="{model}",container="c",'
    'namespace="ns",pod="{pod}"}} {value}\n'
)
USED = (
    'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-{pod}",modelName="{model}",container="c",'
    'namespace="ns",pod="{pod}"}} {value}\n'
)


class Lab(World):
    """A world with a provider of custom metrics."""

    def page(self, text: str, time: float = NOW) -> None:
        self.scrape(text, time, origin="http://n1:9400/metrics", node="n1")

    def ask(self, resource: str, name: str | None = None, **parts: object) -> list[MetricValue]:
        namespaced = resource not in ("nodes", "namespaces")
        query = ObjectQuery(
            GroupResource.parse(resource),
            "ns" if namespaced else None,
            name,
            "gpu_utilization",
            EVERYTHING,
            EVERYTHING,
        )
        return list(at_once(self.custom.values(replace(query, **parts), NOW)).items)  # type: ignore[arg-type]  # fields by name

    def values(self, resource: str, name: str | None = None, **parts: object) -> Mapping[str, int]:
        return {item.described.name: item.milli for item in self.ask(resource, name, **parts)}


@pytest.fixture
def lab() -> Lab:
    made = Lab(
        A,
        B,
        OTHER,
        nodes={"n1": {"pool": "t4"}},
        services=[Service("ns", "front", selector("app=inf"))],
    )
    made.page(
        UTIL.format(pod="a", value=90, model="T4")
        + UTIL.format(pod="b", value=30, model="L4")
        + UTIL.format(pod="other", value=5, model="T4")
        + USED.format(pod="a", value=100, model="T4")
    )
    return made


def test_a_star_selects_every_pod_that_the_selector_matches(lab: Lab) -> None:
    assert lab.values("pods", object_selector=selector("app=inf")) == {"a": 90_000, "b": 30_000}
    assert lab.values("pods") == {"a": 90_000, "b": 30_000, "other": 5_000}


def test_a_name_selects_one_pod(lab: Lab) -> None:
    (item,) = lab.ask("pods", "a")
    assert (item.described.kind, item.described.namespace) == ("Pod", "ns")
    assert (item.timestamp, item.window) == (int(NOW), 30)


def test_a_metric_selector_chooses_devices(lab: Lab) -> None:
    assert lab.values("pods", metric_selector=selector("model=L4")) == {"b": 30_000}


def test_an_unready_pod_is_left_out(lab: Lab) -> None:
    lab.index.replace([A, B.replace(ready=False)])
    assert lab.values("pods") == {"a": 90_000}
    assert lab.custom.absent == {"pod_not_ready": 1}


def test_without_fresh_values_a_star_gives_an_empty_list_and_a_name_gives_not_found(
    lab: Lab,
) -> None:
    lab.index.replace([A.replace(ref=PodRef("ns", "new"))])
    assert lab.ask("pods") == []
    with pytest.raises(MetricNotFound, match="gpu_utilization for pods new"):
        lab.ask("pods", "new")


def test_an_unknown_metric_is_not_found(lab: Lab) -> None:
    with pytest.raises(MetricNotFound, match="the metric nope for pods"):
        lab.ask("pods", metric="nope")


def test_requests_are_rejected_before_the_first_list_of_pods(lab: Lab) -> None:
    fresh = ObjectLookup(PodIndex(), Services(), Nodes())
    provider = GpuMetricsProvider(Catalog(), lab.store, fresh)
    query = ObjectQuery(GroupResource("pods", ""), "ns", None, "gpu_count", EVERYTHING, EVERYTHING)
    with pytest.raises(Unavailable, match="not been listed yet"):
        at_once(provider.values(query, NOW))


WORKLOADS = {
    "services": ("front", "Service", "v1", 60_000),
    "deployments.apps": ("inf", "Deployment", "apps/v1", 60_000),
    "replicasets.apps": ("inf-5d9", "ReplicaSet", "apps/v1", 60_000),
}


@pytest.mark.parametrize("resource", WORKLOADS)
def test_the_value_of_a_workload_is_the_mean_over_its_pods(resource: str, lab: Lab) -> None:
    name, kind, api_version, milli = WORKLOADS[resource]
    (item,) = lab.ask(resource, name)
    assert (item.described.kind, item.described.api_version) == (kind, api_version)
    assert item.milli == milli


def test_a_custom_workload_is_found_by_its_owner_reference(lab: Lab) -> None:
    owner = Owner("ray.io/v1", "RayCluster", "ray")
    lab.index.replace([A.replace(owner=owner)])
    (item,) = lab.ask("rayclusters.ray.io", "ray")
    assert (item.described.kind, item.described.api_version) == ("RayCluster", "ray.io/v1")


def test_the_value_of_a_namespace_covers_all_its_pods(lab: Lab) -> None:
    (item,) = lab.ask("namespaces", "ns")
    assert item.described.namespace is None
    assert item.milli == 41_667
    assert lab.values("namespaces") == {"ns": 41_667}


def test_a_sum_without_a_ready_pod_is_absent(lab: Lab) -> None:
    with pytest.raises(MetricNotFound):
        lab.ask("services", "front", metric="gpu_memory_used_bytes")
    lab.index.replace([A, B.replace(ready=False)])
    assert lab.values("services", "front", metric="gpu_memory_used_bytes") == {
        "front": 100 * 1048576 * 1000
    }


def test_a_mean_is_served_if_at_most_half_of_the_pods_lack_a_reading(lab: Lab) -> None:
    silent = [A.replace(ref=PodRef("ns", f"silent{n}")) for n in range(3)]
    lab.index.replace([A, B, *silent[:2]])
    assert lab.values("services", "front") == {"front": 60_000}
    lab.index.replace([A, B, *silent])
    with pytest.raises(MetricNotFound):
        lab.ask("services", "front")


@pytest.mark.parametrize("resource", ["services", "deployments.apps", "namespaces"])
def test_a_terminating_pod_does_not_count_in_the_value_of_an_object(
    lab: Lab, resource: str
) -> None:
    """It does not count as a replica any more and is idle: it would lower the mean."""
    lab.index.replace([A, B.replace(deleting=True)])
    name = {"services": "front", "deployments.apps": "inf", "namespaces": "ns"}[resource]
    assert lab.values(resource, name) == {name: 90_000}


def test_only_a_value_that_does_not_fit_a_quantity_is_left_out(lab: Lab) -> None:
    """Such an item would not parse and would make its whole list invalid."""
    row = MetricSettings(name="beyond", series="tokens", unit=Unit.NUMBER, high=1e17)
    catalog = Catalog().extended(*rows([row], Catalog()))
    page = UTIL.replace("DCGM_FI_DEV_GPU_UTIL", "tokens")
    text = page.format(pod="a", model="T4", value="5e16") + page.format(
        pod="b", model="T4", value=7
    )
    other = Lab(A, B, catalog=catalog)
    other.page(text)
    assert other.values("pods", metric="beyond") == {"b": 7000}
    assert other.custom.absent["too_large"] == 1
    with pytest.raises(MetricNotFound):
        other.ask("pods", "a", metric="beyond")


def test_a_pod_without_a_gpu_is_not_expected(lab: Lab) -> None:
    web = [A.replace(ref=PodRef("ns", f"web{n}"), gpus={}) for n in range(9)]
    lab.index.replace([A, B, *web])
    assert lab.values("services", "front") == {"front": 60_000}


def test_the_value_of_a_node_covers_its_devices_and_its_labels_select_it(lab: Lab) -> None:
    assert lab.values("nodes", "n1") == {"n1": 41_667}
    assert lab.values("nodes") == {"n1": 41_667}
    assert lab.values("nodes", object_selector=selector("pool=t4")) == {"n1": 41_667}
    assert lab.values("nodes", object_selector=selector("pool=a100")) == {}


def test_an_object_metric_on_a_node_names_a_namespace_too(lab: Lab) -> None:
    assert lab.values("nodes", "n1", namespace="ns") == {"n1": 41_667}


def test_nodes_are_not_listed_below_a_namespace(lab: Lab) -> None:
    with pytest.raises(BadQuery, match="nodes are not namespaced"):
        lab.ask("nodes", namespace="ns")


TENANT = POD.replace(ref=PodRef("tenant", "t"), uid="uid-t", owner=None)


@pytest.mark.parametrize("pods", [[A, TENANT], [TENANT], []])
def test_a_node_below_a_namespace_shows_nothing_of_other_namespaces(
    lab: Lab, pods: list[Pod]
) -> None:
    """Permission for one namespace must not reveal the value of another pod alone on a node."""
    lab.index.replace(pods)
    page = UTIL.replace('namespace="ns"', 'namespace="tenant"')
    lab.page(page.format(pod="t", value=77, model="T4"), NOW + 1)

    with pytest.raises(NotFound, match="request nodes/n1/gpu_utilization without a namespace"):
        lab.ask("nodes", "n1", namespace="ns")
    assert lab.values("nodes", "n1") != {}


def test_samples_of_another_namespaces_pod_hide_a_node_too(lab: Lab) -> None:
    """Such a pod uses a GPU without requesting one in its spec."""
    lab.index.replace([A, TENANT.replace(gpus={})])
    page = UTIL.replace('namespace="ns"', 'namespace="tenant"').format(pod="t", value=7, model="T4")
    lab.page(page + UTIL.format(pod="a", value=90, model="T4"), NOW + 1)

    with pytest.raises(NotFound):
        lab.ask("nodes", "n1", namespace="ns")


def test_every_service_of_a_namespace_is_listed_and_selected_by_its_labels(lab: Lab) -> None:
    lab.objects.services.replace(
        [
            Service("ns", "front", selector("app=inf"), {"tier": "web"}),
            Service("ns", "back", selector("app=train")),
            Service("ns", "nobody", selector("app=none")),
            Service("ns", "manual", None),
            Service("other", "front", selector("app=inf")),
        ]
    )

    assert lab.values("services") == {"front": 60_000, "back": 5_000}
    assert lab.values("services", object_selector=selector("tier=web")) == {"front": 60_000}
    assert lab.values("services", namespace="empty") == {}


@pytest.mark.parametrize("resource", ["deployments.apps", "replicasets.apps"])
def test_every_workload_of_a_namespace_is_listed(lab: Lab, resource: str) -> None:
    assert lab.values(resource) == {WORKLOADS[resource][0]: 60_000}
    assert lab.values(resource, namespace="empty") == {}


def test_every_resource_that_discovery_lists_accepts_a_star(lab: Lab) -> None:
    listed = {str(row.resource) for row in lab.custom.resources()}
    kinds = {item.described.kind for resource in listed for item in lab.ask(resource)}
    assert {"Pod", "Node", "Namespace", "Service", "Deployment", "ReplicaSet"} <= kinds


def test_labels_of_workloads_are_not_known(lab: Lab) -> None:
    with pytest.raises(BadQuery, match="leave labelSelector out"):
        lab.ask("deployments.apps", object_selector=selector("a=b"))


@pytest.mark.parametrize("name", [None, "front"])
@pytest.mark.parametrize("resource", ["podz", "service", "deployments", "deployments.extensions"])
def test_a_resource_that_does_not_exist_is_not_found(
    lab: Lab, resource: str, name: str | None
) -> None:
    with pytest.raises(MetricNotFound, match=f"the metric gpu_utilization for {resource}"):
        lab.ask(resource, name)


def test_a_list_over_too_many_pods_is_refused_with_the_bound(lab: Lab) -> None:
    pods = [A.replace(ref=PodRef("ns", f"p{n}")) for n in range(2001)]
    lab.index.replace(pods)
    with pytest.raises(BadQuery, match="more than 500 objects or 2000 pods: name one"):
        lab.ask("services")


def test_a_list_of_too_many_objects_is_refused_with_the_bound(lab: Lab) -> None:
    services = [Service("ns", f"s{n}", selector("app=none")) for n in range(501)]
    lab.objects.services.replace(services)
    with pytest.raises(BadQuery, match="more than 500 objects"):
        lab.ask("services")


def test_labels_of_namespaces_are_not_known(lab: Lab) -> None:
    with pytest.raises(BadQuery, match="leave labelSelector out"):
        lab.ask("namespaces", object_selector=selector("a=b"))


def test_an_error_reading_services_is_returned(lab: Lab) -> None:
    blind = ObjectLookup(lab.objects.pod_index, Services(), Nodes())
    provider = GpuMetricsProvider(Catalog(), lab.store, blind)
    query = ObjectQuery(
        GroupResource("services", ""), "ns", "front", "gpu_count", EVERYTHING, EVERYTHING
    )
    with pytest.raises(Unavailable, match="Services could not be read: not watched"):
        list(at_once(provider.values(query, NOW)).items)


def test_a_value_ends_with_its_age_limit(lab: Lab) -> None:
    query = ObjectQuery(
        GroupResource("pods", ""), "ns", "a", "gpu_utilization", EVERYTHING, EVERYTHING
    )
    answer = at_once(lab.custom.values(query, NOW))
    assert answer.expires == NOW + 65
    with pytest.raises(MetricNotFound):
        at_once(lab.custom.values(query, answer.expires))


def test_the_same_object_is_returned_until_something_changes(lab: Lab) -> None:
    (first,) = lab.ask("pods", "a")
    assert lab.ask("pods", "a") == [first]
    lab.page(UTIL.format(pod="a", value=50, model="T4"), NOW + 1)
    (second,) = lab.ask("pods", "a")
    assert second.milli == 70_000


def test_the_version_grows_with_values_and_with_the_cluster(lab: Lab) -> None:
    versions = [lab.custom.version]
    lab.page(UTIL.format(pod="a", value=50, model="T4"), NOW + 1)
    versions.append(lab.custom.version)
    lab.index.replace([A])
    versions.append(lab.custom.version)
    lab.objects.nodes.replace([])
    versions.append(lab.custom.version)
    assert versions == sorted(set(versions))


def test_all_metrics_under_a_resource_agree_on_being_namespaced(lab: Lab) -> None:
    scopes: dict[GroupResource, set[bool]] = {}
    for row in lab.custom.resources():
        scopes.setdefault(row.resource, set()).add(row.namespaced)
    assert all(len(kinds) == 1 for kinds in scopes.values())
    assert scopes[GroupResource("nodes", "")] == scopes[GroupResource("namespaces", "")] == {False}
    listed = {(str(row.resource), row.metric) for row in lab.custom.resources()}
    assert {
        ("pods", "DCGM_FI_DEV_GPU_UTIL"),
        ("pods", "dcgm_fi_dev_gpu_util"),
        ("pods", "gpu_utilization"),
        ("deployments.apps", "gpu_utilization"),
    } <= listed


def _alive(kind: type) -> int:
    gc.collect()
    return sum(1 for thing in gc.get_objects() if type(thing) is kind)


def test_data_of_deleted_pods_is_dropped(lab: Lab) -> None:
    """A cluster that creates and deletes pods for months does not fill memory."""
    before = _alive(MetricValue)
    for generation in range(40):
        pods = [OTHER.replace(ref=PodRef("ns", f"g{generation}-{n}")) for n in range(10)]
        lab.index.replace(pods)
        page = "".join(UTIL.format(pod=pod.ref.name, value=7, model="T4") for pod in pods)
        lab.page(page, NOW + generation / 100)
        assert len(lab.ask("pods")) == 10

    assert _alive(MetricValue) - before <= 20


def test_the_cache_is_bounded_if_every_metric_selector_is_different(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.pipeline.store.answercache._MAX_ANSWERS", 400)
    before = _alive(Reading)
    for seed in range(600):
        assert lab.values("pods", "a", metric_selector=selector(f"model!=m{seed}")) == {"a": 90_000}

    assert _alive(Reading) - before <= 420
    lab.page(UTIL.format(pod="a", value=90, model="T4"))
    lab.values("pods")
    assert _alive(Reading) - before <= 10

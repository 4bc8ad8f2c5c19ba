"""``metrics.k8s.io`` by ``resourceRules``: pods and nodes, as clients of the API see them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapter.answers.rules.service import RuleService, read_file
from adapter.answers.rules.store import RuleStore, StoreOptions
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from tests.adapter.answers.rules.engine import Engine, Row, running, vector
from tests.adapter.world import make_pod
from tests.apiservice.world import World, make_world

BASE = "/apis/metrics.k8s.io/v1beta1"
RULES = """
resourceRules:
  cpu:
    containerQuery: cpu{<<.LabelMatchers>>} by (<<.GroupBy>>)
    nodeQuery: nodecpu{<<.LabelMatchers>>} by (<<.GroupBy>>)
    resources: &labels
      overrides:
        ns: {resource: namespace}
        pod: {resource: pod}
        host: {resource: node}
    containerLabel: container
  memory:
    containerQuery: memory{<<.LabelMatchers>>} by (<<.GroupBy>>)
    nodeQuery: nodememory{<<.LabelMatchers>>} by (<<.GroupBy>>)
    resources: *labels
    containerLabel: container
  window: 1m30s
"""


@dataclass
class Stage:
    """A server, its rules and its store."""

    world: World
    service: RuleService
    engine: Engine
    answers: dict[str, list[Row]]

    async def get(self, path: str) -> dict[str, Any]:
        answer = await self.world.get(f"{BASE}/{path}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def status(self, path: str) -> tuple[int, str]:
        answer = await self.world.get(f"{BASE}/{path}")
        return answer.status_code, answer.json()["message"]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as made:
        yield made


@pytest.fixture
async def stage(engine: Engine, tmp_path: Path) -> AsyncIterator[Stage]:
    async for made in staged(engine, tmp_path, RULES):
        yield made


async def staged(engine: Engine, folder: Path, rules: str) -> AsyncIterator[Stage]:
    file = folder / "rules.yaml"
    file.write_text(rules)
    index, nodes = PodIndex(), Nodes()
    web = {"app": "web"}
    index.replace(
        [
            make_pod("web-0", namespace="a", labels=web),
            make_pod("web-1", namespace="a", labels=web),
            make_pod("job-0", namespace="a"),
            make_pod("web-0", namespace="b"),
            make_pod("new-0", namespace="b", phase="Pending"),
        ]
    )
    nodes.replace([Node("n0", {"zone": "x"}), Node("n1", {})])
    answers: dict[str, list[Row]] = {}
    engine.answer = answering(answers)
    store = RuleStore(PrometheusOptions(engine.url, 60, timeout=5), StoreOptions(30, 60))
    options = RuleOptions(file, resource_metrics=True)
    lookup = ObjectLookup(index, Services(), nodes)
    service = RuleService(options, read_file(options), store, lookup, None)
    async for world in make_world(service.resource_group):
        yield Stage(world, service, engine, answers)
    await store.close()


def answering(answers: Mapping[str, list[Row]]) -> Callable[[str], tuple[int, bytes]]:
    """Answer each query by the series that it names."""
    return lambda query: (200, vector(*answers.get(query.partition("{")[0], ()), time=1000.5))


def of(pod: str, container: str, number: str) -> Row:
    return {"pod": pod, "container": container}, number


def fill(stage: Stage) -> None:
    stage.answers["cpu"] = [of("web-0", "app", "0.25"), of("web-0", "side", "1.5")]
    stage.answers["memory"] = [of("web-0", "app", "1048576"), of("web-0", "side", "1000")]
    stage.answers["nodecpu"] = [({"host": "n0"}, "3")]
    stage.answers["nodememory"] = [({"host": "n0"}, str(3 << 30))]


async def test_a_pod_has_its_containers_with_cpu_and_memory(stage: Stage) -> None:
    fill(stage)
    pod = await stage.get("namespaces/a/pods/web-0")
    assert pod.pop("metadata")["labels"] == {"app": "web"}
    assert pod == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "timestamp": "1970-01-01T00:16:40Z",
        "window": "1m30s",
        "containers": [
            {"name": "app", "usage": {"cpu": "250m", "memory": "1Mi"}},
            {"name": "side", "usage": {"cpu": "1500m", "memory": "1k"}},
        ],
    }


async def test_a_node_has_its_usage_and_one_without_values_is_left_out(stage: Stage) -> None:
    fill(stage)
    nodes = await stage.get("nodes")
    assert nodes["kind"] == "NodeMetricsList"
    (item,) = nodes["items"]
    assert (item["metadata"]["name"], item["usage"]) == ("n0", {"cpu": "3", "memory": "3Gi"})
    assert (await stage.get("nodes/n0"))["usage"] == item["usage"]
    code, message = await stage.status("nodes/n1")
    assert (code, message) == (404, 'nodes.metrics.k8s.io "n1" not found')
    assert sorted(stage.engine.asked) == [
        'nodecpu{host=~"n0|n1"} by (host)',
        'nodememory{host=~"n0|n1"} by (host)',
    ]


async def test_all_requests_for_a_namespace_send_two_queries(stage: Stage) -> None:
    fill(stage)
    for path in ("", "?labelSelector=app%3Dweb", "?limit=1", "/web-0"):
        await stage.get(f"namespaces/a/pods{path}")
    assert sorted(stage.engine.asked) == [
        'cpu{ns="a",pod=~"job-0|web-0|web-1"} by (pod,container)',
        'memory{ns="a",pod=~"job-0|web-0|web-1"} by (pod,container)',
    ]


async def test_many_pods_are_several_queries(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.answers.rules.usage.MAX_OBJECTS", 2)
    fill(stage)
    await stage.get("namespaces/a/pods")
    assert sorted(stage.engine.asked) == [
        'cpu{ns="a",pod="web-1"} by (pod,container)',
        'cpu{ns="a",pod=~"job-0|web-0"} by (pod,container)',
        'memory{ns="a",pod="web-1"} by (pod,container)',
        'memory{ns="a",pod=~"job-0|web-0"} by (pod,container)',
    ]


async def test_selectors_choose_among_the_pods_of_all_namespaces(stage: Stage) -> None:
    fill(stage)
    pods = await stage.get("pods?labelSelector=app%3Dweb")
    assert [item["metadata"]["namespace"] for item in pods["items"]] == ["a"]
    everything = await stage.get("pods")
    names = [
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in everything["items"]
    ]
    assert names == [("a", "web-0"), ("b", "web-0")]
    one = await stage.get("pods?fieldSelector=metadata.namespace%3Db")
    assert len(one["items"]) == 1


async def test_a_pod_without_cpu_or_without_memory_is_left_out(stage: Stage) -> None:
    stage.answers["cpu"] = [of("web-0", "app", "1")]
    stage.answers["memory"] = [of("web-1", "app", "1")]
    assert (await stage.get("namespaces/a/pods"))["items"] == []
    assert (await stage.status("namespaces/a/pods/web-0"))[0] == 404


async def test_a_container_without_one_of_them_lacks_it_and_is_counted(stage: Stage) -> None:
    fill(stage)
    stage.answers["memory"] = [of("web-0", "app", "1024")]
    pod = await stage.get("namespaces/a/pods/web-0")
    assert [container["usage"] for container in pod["containers"]] == [
        {"cpu": "250m", "memory": "1Ki"},
        {"cpu": "1500m"},
    ]
    assert stage.service.store.left_out["incomplete"] == 1


async def test_what_is_not_a_container_of_the_manifest_has_zero_instead(stage: Stage) -> None:
    stage.answers["cpu"] = [of("web-0", "app", "1")]
    stage.answers["memory"] = [of("web-0", name, "1024") for name in ("", "POD", "app")]
    pod = await stage.get("namespaces/a/pods/web-0")
    assert {container["name"]: container["usage"]["cpu"] for container in pod["containers"]} == {
        "": "0",
        "POD": "0",
        "app": "1",
    }


async def test_nan_and_negative_values_are_left_out_and_counted(stage: Stage) -> None:
    fill(stage)
    stage.answers["cpu"] = [of("web-0", "app", "NaN"), of("web-1", "app", "-1")]
    stage.answers["memory"] += [of("web-1", "app", "1")]
    assert (await stage.get("namespaces/a/pods"))["items"] == []
    left_out = stage.service.store.left_out
    assert (left_out["nan"], left_out["negative"]) == (1, 1)


async def test_series_of_unknown_pods_are_ignored(stage: Stage) -> None:
    stage.answers["cpu"] = [of("gone", "app", "1")]
    stage.answers["memory"] = [of("gone", "app", "1")]
    assert (await stage.get("namespaces/a/pods"))["items"] == []
    assert (await stage.status("namespaces/a/pods/gone"))[0] == 404


async def test_a_pod_that_does_not_run_has_no_metrics(stage: Stage) -> None:
    stage.answers["cpu"] = [of("web-0", "app", "1"), of("new-0", "app", "1")]
    stage.answers["memory"] = [of("web-0", "app", "1"), of("new-0", "app", "1")]
    (item,) = (await stage.get("namespaces/b/pods"))["items"]
    assert item["metadata"]["name"] == "web-0"
    assert (await stage.status("namespaces/b/pods/new-0"))[0] == 404


async def test_kubectl_gets_a_table(stage: Stage) -> None:
    fill(stage)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    answer = await stage.world.get(f"{BASE}/namespaces/a/pods", accept=accept)
    table = answer.json()
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "cpu",
        "memory",
        "Window",
    ]
    assert [row["cells"] for row in table["rows"]] == [["web-0", "1750m", "1049576", "1m30s"]]


async def test_a_store_that_fails_gives_503_with_the_reason(stage: Stage) -> None:
    stage.engine.answer = lambda query: (500, b"broken")
    code, message = await stage.status("namespaces/a/pods")
    assert code == 503
    assert "the query of the rule failed" in message


async def test_a_file_without_resource_rules_gives_503(engine: Engine, tmp_path: Path) -> None:
    async for stage in staged(engine, tmp_path, "rules: []\n"):
        code, message = await stage.status("nodes")
        assert (code, "has no usable resourceRules" in message) == (503, True)
        (problem,) = stage.service.rules.problems
        assert "has no metrics" in problem.text


async def test_a_rule_without_the_label_of_namespaces_gives_503(
    engine: Engine, tmp_path: Path
) -> None:
    async for stage in staged(engine, tmp_path, RULES.replace("ns: {resource: namespace}", "")):
        code, message = await stage.status("namespaces/a/pods")
        assert code == 503
        assert "resourceRules.cpu maps no label to namespaces" in message


async def test_a_missing_query_leaves_its_resource_without_metrics(
    engine: Engine, tmp_path: Path
) -> None:
    rules = "\n".join(line for line in RULES.splitlines() if "nodememory" not in line)
    async for stage in staged(engine, tmp_path, rules):
        assert (await stage.get("nodes"))["items"] == []
        (problem,) = stage.service.rules.problems
        assert "nodeQuery is missing" in problem.text
        assert stage.engine.asked == []


async def test_labels_by_template_are_found(engine: Engine, tmp_path: Path) -> None:
    rules = """
resourceRules:
  cpu: &rule
    containerQuery: cpu{<<.LabelMatchers>>}
    nodeQuery: nodecpu{<<.LabelMatchers>>}
    resources: {template: "kube_<<.Resource>>"}
    containerLabel: c
  memory: *rule
"""
    async for stage in staged(engine, tmp_path, rules):
        pods = await stage.get("namespaces/b/pods")
        assert pods["items"] == []
        assert stage.engine.asked == ['cpu{kube_namespace="b",kube_pod="web-0"}']


async def test_discovery_lists_both_resources_without_a_singular(stage: Stage) -> None:
    rows = {row["name"]: row for row in (await stage.get(""))["resources"]}
    assert {name: row["namespaced"] for name, row in rows.items()} == {"nodes": False, "pods": True}
    assert {row["singularName"] for row in rows.values()} == {""}
    assert rows["pods"]["verbs"] == ["get", "list"]


async def test_a_flood_for_one_namespace_sends_two_queries_and_delays_no_other(
    stage: Stage,
) -> None:
    """300 requests with selectors, names and fields of their own, while the store hangs on them."""
    fill(stage)
    answer, release = stage.engine.answer, threading.Event()

    def slow(query: str) -> tuple[int, bytes]:
        if 'ns="a"' in query:
            release.wait(60)
        return answer(query)

    stage.engine.answer = slow
    questions = [
        f"namespaces/a/pods{form.format(n)}"
        for n in range(100)
        for form in ("?labelSelector=app!%3Dx{}", "?fieldSelector=metadata.name!%3Dx{}", "/x{}")
    ]
    flood = [asyncio.ensure_future(stage.world.get(f"{BASE}/{path}")) for path in questions]
    try:
        await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            pods = await stage.get("namespaces/b/pods")
        assert [item["metadata"]["name"] for item in pods["items"]] == ["web-0"]
        assert not release.is_set()
        assert len([query for query in stage.engine.asked if 'ns="a"' in query]) <= 2
    finally:
        release.set()
        codes = {response.status_code for response in await asyncio.gather(*flood)}
    assert codes <= {200, 400, 404, 503}
    assert len([query for query in stage.engine.asked if 'ns="a"' in query]) <= 4
    assert (await stage.status("namespaces/a/pods/nobody"))[0] == 404


async def test_a_hostile_answer_costs_its_own_request_alone(stage: Stage) -> None:
    """Series of 5,000 unknown pods, names of 100 kB, numbers out of range: none is served."""
    fill(stage)
    stage.answers["cpu"] += [of(f"made-up-{n}", "app", "1") for n in range(5_000)]
    stage.answers["cpu"] += [of("web-0", "x" * 100_000, "1"), of("web-1", "app", "1e308")]
    stage.answers["memory"] += [of("web-1", "app", "1e400"), of("web-1", "app", "-5")]
    pods = await stage.get("namespaces/a/pods")
    (item,) = pods["items"]
    assert item["metadata"]["name"] == "web-0"
    assert [container["name"] for container in item["containers"]] == ["app", "side"]
    assert stage.service.store.left_out["bad_name"] == 1
    assert len(json.dumps(pods)) < 5_000


async def test_the_containers_of_a_pod_are_bounded(stage: Stage) -> None:
    fill(stage)
    stage.answers["cpu"] += [of("web-0", f"c{n}", "1") for n in range(1_000)]
    (item,) = (await stage.get("namespaces/a/pods"))["items"]
    assert len(item["containers"]) <= 256
    assert stage.service.store.left_out["too_many"] == 1_002 - 256

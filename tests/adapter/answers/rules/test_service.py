"""The rules as they are served: discovery, answers, and metrics of the catalogue beside them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import structlog

from adapter.answers.rules import objects as listing
from adapter.answers.rules.ruleproviders import CustomWithRules, ExternalWithRules
from adapter.answers.rules.ruleset import RuleSet
from adapter.answers.rules.service import RuleService, read_file
from adapter.answers.rules.store import RuleStore, StoreOptions
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from apiservice.errors import BadQuery, MetricNotFound, Unavailable
from apiservice.labels.selector import EVERYTHING, parse
from apiservice.provider import (
    Answer,
    ExternalQuery,
    ExternalValue,
    GroupResource,
    MetricResource,
    MetricValue,
    ObjectQuery,
)
from apiservice.runtime.steps import Steps, run_in_slices
from tests.adapter.answers.rules.engine import Engine, running, vector
from tests.adapter.world import make_pod

NOW = 1_700_000_000.0
RULES = """
rules:
- seriesQuery: 'requests{namespace!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
      service: {resource: service}
      node: {resource: node}
  name: {as: rate}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
- seriesQuery: 'broken{'
  metricsQuery: <<.Nope>>
externalRules:
- seriesQuery: lag
  resources: {overrides: {namespace: {resource: namespace}}}
  name: {as: Lag}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (topic)
- seriesQuery: everywhere
  resources: {namespaced: false}
  metricsQuery: <<.Series>>{<<.LabelMatchers>>}
- seriesQuery: nowhere
  metricsQuery: <<.Series>>{<<.LabelMatchers>>}
"""
PODS, SERVICES = GroupResource("pods", ""), GroupResource("services", "")
NODES, SPACES = GroupResource("nodes", ""), GroupResource("namespaces", "")


class ApiServer:
    """Lists Services, and has no discovery documents."""

    def __init__(self) -> None:
        self.names: Sequence[str] = ("web", "api")
        self.paths: list[str] = []
        self.fails = False
        self.more = ""

    async def ask(self, path: str, accept: str) -> bytes:
        if path.startswith("/api?") or path in ("/api", "/apis"):
            raise OSError("no discovery")
        self.paths.append(path)
        if self.fails:
            raise OSError("403 forbidden")
        items = [{"metadata": {"name": name}} for name in self.names]
        return msgspec.json.encode({"metadata": {"continue": self.more}, "items": items})


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as made:
        made.series = {
            'requests{namespace!=""}': [
                {"__name__": "requests", "namespace": "a", "pod": "p", "service": "s", "node": "n"}
            ],
            "lag": [{"__name__": "lag", "namespace": "a", "topic": "t"}],
            "everywhere": [{"__name__": "everywhere", "x": "1"}],
            "nowhere": [{"__name__": "nowhere"}],
        }
        yield made


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "rules.yaml"
    made.write_text(RULES)
    return made


@pytest.fixture
async def service(engine: Engine, server: ApiServer, file: Path) -> AsyncIterator[RuleService]:
    index = PodIndex()
    index.replace(
        [make_pod("p", namespace="a", labels={"app": "web"}), make_pod("q", namespace="a")]
    )
    store = RuleStore(PrometheusOptions(engine.url, 60, timeout=5), StoreOptions(0.001, 60))
    options = RuleOptions(file, widen=False)
    made = RuleService(
        options,
        read_file(options),
        store,
        ObjectLookup(index, Services(), Nodes()),
        server.ask,
    )
    await made.discover()
    yield made
    await store.close()


def about(
    resource: GroupResource, name: str | None, namespace: str | None = "a", **more: str
) -> ObjectQuery:
    return ObjectQuery(
        resource,
        namespace,
        name,
        more.get("metric", "rate"),
        parse(more.get("labels", "")),
        parse(more.get("series", "")),
    )


async def values(service: RuleService, query: ObjectQuery) -> dict[str, int]:
    answer = await run_in_slices(service.custom.values(query, NOW))
    return {item.described.name: item.milli for item in answer.items}


def answering(label: str, **numbers: str) -> Callable[[str], tuple[int, bytes]]:
    rows = [({label: name}, number) for name, number in numbers.items()]
    return lambda query: (200, vector(*rows))


async def test_discovery_lists_the_metrics_and_a_broken_rule_costs_only_itself(
    service: RuleService,
) -> None:
    rows = [(str(row.resource), row.metric, row.namespaced) for row in service.custom.resources()]
    assert rows == [
        ("namespaces", "rate", False),
        ("nodes", "rate", False),
        ("pods", "rate", True),
        ("services", "rate", True),
    ]
    assert list(service.external.metrics()) == ["Lag", "everywhere", "nowhere"]
    (problem,) = service.rules.problems
    assert (problem.rule, problem.line) == ("rules[1]", 13)


async def test_one_object_is_asked_for_by_its_name(service: RuleService, engine: Engine) -> None:
    engine.answer = answering("pod", p="0.5", q="7")
    assert await values(service, about(PODS, "p")) == {"p": 500}
    assert engine.asked == ['sum(requests{namespace="a",pod="p"}) by (pod)']
    answer = await run_in_slices(service.custom.values(about(PODS, "p"), NOW))
    (item,) = answer.items
    assert (item.described.kind, item.described.api_version) == ("Pod", "v1")
    assert (item.described.namespace, item.timestamp, item.window) == ("a", int(NOW), None)


async def test_all_pods_are_those_that_the_labels_select(
    service: RuleService, engine: Engine
) -> None:
    engine.answer = answering("pod", p="1", q="2", gone="3")
    assert await values(service, about(PODS, None)) == {"p": 1000, "q": 2000}
    assert await values(service, about(PODS, None, labels="app=web", series="m=x")) == {"p": 1000}
    assert engine.asked == [
        'sum(requests{namespace="a",pod=~"p|q"}) by (pod)',
        'sum(requests{m="x",namespace="a",pod="p"}) by (pod)',
    ]


async def test_other_objects_are_listed_by_the_api_server_once(
    service: RuleService, engine: Engine, server: ApiServer
) -> None:
    engine.answer = answering("service", web="1")
    for _ in range(3):
        assert await values(service, about(SERVICES, None, labels="app in (b,a)")) == {"web": 1000}
    (path,) = server.paths
    assert urlsplit(path).path == "/api/v1/namespaces/a/services"
    assert parse_qs(urlsplit(path).query) == {
        "limit": [str(listing.MAX_OBJECTS)],
        "labelSelector": ["app in (a,b)"],
    }


async def test_a_list_that_fails_or_is_too_long_is_an_error(
    service: RuleService, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fails = True
    with pytest.raises(Unavailable, match="grant list on services"):
        await values(service, about(SERVICES, None))
    server.fails, server.more = False, "token"
    with pytest.raises(BadQuery, match="more than"):
        await values(service, about(SERVICES, None))
    monkeypatch.setattr(listing, "MAX_OBJECTS", 1)
    with pytest.raises(BadQuery, match="more than 1 pods"):
        await values(service, about(PODS, None))


async def test_root_objects_have_no_namespace(service: RuleService, engine: Engine) -> None:
    engine.answer = answering("namespace", a="1")
    assert await values(service, about(SPACES, "a", None)) == {"a": 1000}
    engine.answer = answering("node", n="1")
    assert await values(service, about(NODES, "n", None)) == {"n": 1000}
    assert engine.asked == [
        'sum(requests{namespace="a"}) by (namespace)',
        'sum(requests{node="n"}) by (node)',
    ]
    with pytest.raises(MetricNotFound):
        await values(service, about(NODES, "n", "a"))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (about(PODS, "p", metric="other"), "the metric other for pods"),
        (about(PODS, None, "empty"), "the metric rate for pods"),
        (about(PODS, 'p"} or up{x="'), "the metric rate for pods"),
        (about(PODS, "p"), r"the query of rules\[0\] returns nothing with its pod"),
    ],
)
async def test_what_does_not_exist_is_not_found(
    service: RuleService, query: ObjectQuery, text: str
) -> None:
    with pytest.raises(MetricNotFound, match=text):
        await values(service, query)


async def test_nan_is_left_out_and_a_scalar_is_an_error(
    service: RuleService, engine: Engine
) -> None:
    engine.answer = answering("pod", p="NaN", q="1")
    assert await values(service, about(PODS, None)) == {"q": 1000}
    assert service.store.left_out["nan"] == 1
    engine.answer = answering("pod", p="NaN")
    with pytest.raises(MetricNotFound, match=r"left out \(nan\)"):
        await values(service, about(PODS, "p", series="other=1"))
    scalar = {"resultType": "scalar", "result": [NOW, "1"]}
    body = json.dumps({"status": "success", "data": scalar}).encode()
    engine.answer = lambda query: (200, body)
    with pytest.raises(Unavailable, match="returns a scalar"):
        await values(service, about(PODS, "q"))


async def external(service: RuleService, metric: str, selector: str = "") -> list[ExternalValue]:
    query = ExternalQuery("a", metric, parse(selector))
    return list((await run_in_slices(service.external.values(query, NOW))).items)


async def test_external_metrics_are_series_of_the_namespace(
    service: RuleService, engine: Engine
) -> None:
    engine.answer = answering("topic", t="-2", u="NaN")
    (item,) = await external(service, "lag", "topic!=x")
    assert (item.metric, item.labels, item.milli) == ("lag", {"topic": "t"}, -2000)
    await external(service, "everywhere", "topic=x")
    assert engine.asked == [
        'sum(lag{topic!="x",namespace="a"}) by (topic)',
        'everywhere{topic="x"}',
    ]
    assert service.wide.queries == 0, "external metrics are asked for each namespace and selector"
    with pytest.raises(MetricNotFound, match="maps no label to namespaces"):
        await external(service, "nowhere")
    with pytest.raises(MetricNotFound):
        await external(service, "unknown")


async def test_a_discovery_that_fails_keeps_the_metrics_and_is_counted(
    service: RuleService, engine: Engine
) -> None:
    before, version = service.custom.resources(), service.custom.version
    failed = service.discovery_failures
    engine.series_status = 500
    await service.discover()
    assert service.custom.resources() is before
    assert service.custom.version == version
    assert service.discovery_failures == failed + 5
    assert service.last_discovery == 0.0  # the API server of this test has no discovery
    engine.series_status = 200
    engine.series.clear()
    await service.discover()
    assert list(service.custom.resources()) == []
    assert service.custom.version > version


async def test_equal_series_queries_are_asked_once(service: RuleService, engine: Engine) -> None:
    assert sorted(engine.selectors) == sorted({*engine.selectors})
    assert len(engine.selectors) == 4


async def test_a_changed_file_is_used_and_a_bad_one_is_not(
    service: RuleService, file: Path
) -> None:
    assert not await service.reload()
    _rewrite(file, RULES.replace("as: rate", "as: other"))
    assert not await service.reload()  # it may still be being written
    assert await service.reload()
    await service.discover()
    assert {row.metric for row in service.custom.resources()} == {"other"}
    _rewrite(file, "rules: {")
    await service.reload()
    with structlog.testing.capture_logs() as logs:
        assert not await service.reload()
    assert "is not YAML" in service.file_problem
    assert [row["event"] for row in logs] == ["rules file rejected; the previous rules stay active"]
    assert len(service.rules.custom) == 1
    _rewrite(file, RULES)
    await service.reload()
    assert await service.reload()
    assert not service.file_problem


async def test_reading_the_file_leaves_the_loop_free(service: RuleService, file: Path) -> None:
    free = threading.Event()
    freed: list[bool] = []

    def read(options: RuleOptions) -> RuleSet:
        freed.append(free.wait(30))
        return read_file(options)

    _rewrite(file, RULES)
    await service.reload()
    with mock.patch("adapter.answers.rules.service.read_file", read):
        reading = asyncio.create_task(service.reload())
        while not freed and not free.is_set():
            await asyncio.sleep(0)
            free.set()
        assert await reading
    assert freed == [True]


async def test_a_file_on_which_the_program_fails_is_rejected_and_noted(
    service: RuleService, file: Path
) -> None:
    _rewrite(file, RULES)
    await service.reload()
    with mock.patch("adapter.answers.rules.ruleset.rule_set", side_effect=IndexError("list")):
        assert not await service.reload()
    assert "IndexError" in service.file_problem
    assert len(service.rules.custom) == 1


async def test_a_configmap_that_changes_is_read_again_and_one_that_ends_keeps_its_rules(
    tmp_path: Path, engine: Engine
) -> None:
    """As the kubelet mounts it: `..data` is renamed to a new folder, and the file is a link."""
    for version, text in (("v1", RULES), ("v2", RULES.replace("requests{", "answers{"))):
        (tmp_path / version).mkdir()
        (tmp_path / version / "config.yaml").write_text(text)
    (tmp_path / "v3").mkdir()
    data, file = tmp_path / "..data", tmp_path / "config.yaml"
    data.symlink_to("v1")
    file.symlink_to("..data/config.yaml")
    options = RuleOptions(file)
    store = RuleStore(PrometheusOptions(engine.url, 60), StoreOptions(1, 60))
    objects = ObjectLookup(PodIndex(), Services(), Nodes())
    made = RuleService(options, read_file(options), store, objects, None)
    for version, used in (("v2", True), ("v3", False)):
        new = tmp_path / "..new"
        new.symlink_to(version)
        new.replace(data)
        assert [await made.reload(), await made.reload()] == [False, used]
        assert made.rules.custom[0].selector.startswith("answers{")
    assert "cannot be read" in made.file_problem


COSTLY = "<<$x := `" + "a" * 20 + "`>>" + "<<$x = print $x $x>>" * 28
"""A template that doubles a text, up to its bound."""


async def test_reading_costly_templates_leaves_the_loop_free(
    tmp_path: Path, engine: Engine
) -> None:
    """It held the loop for half a minute, and so `/livez`: here the loop turns meanwhile."""
    file = tmp_path / "rules.yaml"
    rule = {"seriesQuery": "up", "metricsQuery": COSTLY}
    file.write_text("rules: []\n")
    store = RuleStore(PrometheusOptions(engine.url, 60), StoreOptions(1, 60))
    objects = ObjectLookup(PodIndex(), Services(), Nodes())
    made = RuleService(RuleOptions(file), read_file(RuleOptions(file)), store, objects, None)
    assert not await made.reload(), "the file is as it was"
    _rewrite(file, msgspec.json.encode({"rules": [rule] * 300}).decode())
    # The change is noticed at the second look, as files are that are written in parts.
    while (reloading := asyncio.create_task(made.reload())) and not made.rules.problems:
        turns = 0
        while not reloading.done():
            await asyncio.sleep(0)
            turns += 1
    assert len(made.rules.problems) == 300
    assert turns > 20
    await store.close()


def _rewrite(file: Path, text: str) -> None:
    file.write_text(text)
    # The size may be equal, and the clock of the file system may be coarse.
    modified = file.stat().st_mtime_ns
    os.utime(file, ns=(modified, modified + 1_000_000_000 + len(text)))


class BuiltIn:
    """A catalogue with one metric of pods."""

    version = 1
    rows = (MetricResource(PODS, "rate", True), MetricResource(PODS, "gpu", True))

    def resources(self) -> Sequence[MetricResource]:
        return self.rows

    def metrics(self) -> Sequence[str]:
        return ("lag", "gpu")

    def values(self, query: ObjectQuery, now: float) -> Steps[Answer[MetricValue]]:
        yield
        return Answer((), 1.0)


class BuiltInExternal(BuiltIn):
    def values(  # type: ignore[override]  # another query than its parent
        self, query: ExternalQuery, now: float
    ) -> Steps[Answer[ExternalValue]]:
        yield
        return Answer((), 1.0)


@pytest.mark.parametrize(("prefer", "served_by"), [(True, "rules"), (False, "catalogue")])
async def test_the_settings_decide_about_a_metric_of_both(
    service: RuleService, engine: Engine, prefer: bool, served_by: str
) -> None:
    engine.answer = answering("pod", p="1")
    both = CustomWithRules(BuiltIn(), service.custom, prefer_rules=prefer)
    with structlog.testing.capture_logs() as logs:
        rows = both.resources()
        assert both.resources() is rows
    (row,) = logs
    assert (row["metrics"], row["served_by"]) == (["pods/rate"], served_by)
    assert len(rows) == 5
    assert both.both == 1
    items = (await run_in_slices(both.values(about(PODS, "p"), NOW))).items
    assert len(items) == prefer
    assert not (await run_in_slices(both.values(about(PODS, "p", metric="gpu"), NOW))).items
    engine.answer = answering("service", web="1")
    assert (await run_in_slices(both.values(about(SERVICES, "web"), NOW))).items


@pytest.mark.parametrize("prefer", [True, False])
async def test_the_settings_decide_about_an_external_metric_of_both(
    service: RuleService, engine: Engine, prefer: bool
) -> None:
    engine.answer = answering("topic", t="1")
    both = ExternalWithRules(BuiltInExternal(), service.external, prefer_rules=prefer)
    assert sorted(both.metrics()) == ["Lag", "everywhere", "gpu", "lag", "nowhere"]
    assert both.both == 1
    query = ExternalQuery("a", "lag", EVERYTHING)
    assert len((await run_in_slices(both.values(query, NOW))).items) == prefer
    query = ExternalQuery("a", "everywhere", EVERYTHING)
    assert (await run_in_slices(both.values(query, NOW))).items

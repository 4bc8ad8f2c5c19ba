"""Labels, resources, and the metrics of series."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.rules import apidiscovery, registry, series
from adapter.answers.rules.apidiscovery import MAX_RESOURCES, read_kinds
from adapter.answers.rules.kinds import BUILT_IN, KindTable, ResourceKind
from adapter.answers.rules.registry import Registry, build
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import RuleText
from adapter.answers.rules.series import MAX_NAME, SeriesShape, decode
from adapter.pipeline.sources.errors import SourceError
from apiservice.provider import GroupResource
from apiservice.runtime.steps import at_once

KINDS = KindTable(
    (
        *BUILT_IN,
        ResourceKind("metrics.k8s.io", "v1beta1", "pods", "pod", "PodMetrics"),
        ResourceKind("cheese.io", "v1", "brands", "brand", "Brand"),
        ResourceKind("storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass"),
    )
)
PODS, SPACES = GroupResource("pods", ""), GroupResource("namespaces", "")


def rule(**keys: object) -> MetricRule:
    given: dict[str, object] = {"series_query": "up", "metrics_query": "up", **keys}
    return MetricRule(RuleText("rules[0]", 1, **given))  # type: ignore[arg-type]  # the keys are its fields


def overrides(**labels: str) -> tuple[tuple[str, GroupResource], ...]:
    return tuple((label, GroupResource.parse(text)) for label, text in labels.items())


def shape(name: str, *labels: str) -> SeriesShape:
    return SeriesShape(name, frozenset(labels))


def made(*rules: tuple[MetricRule, Sequence[SeriesShape]], external: bool = False) -> Registry:
    custom, outside = ((), rules) if external else (rules, ())
    return at_once(build(custom, outside, KINDS))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pod", "pods"),
        ("Pods", "pods"),
        ("deployment.apps", "deployments.apps"),
        ("deployment", "deployments.apps"),
        ("storageclass.storage", "storageclasses.storage.k8s.io"),
        ("pods.metrics.k8s.io", "pods.metrics.k8s.io"),
        ("deployment.batch", None),
        ("nothing", None),
    ],
)
def test_a_name_means_the_first_resource_of_the_name(name: str, found: str | None) -> None:
    kind = KINDS.find(GroupResource.parse(name))
    assert (None if kind is None else str(kind.name)) == found


def test_a_template_recognizes_labels_and_makes_them() -> None:
    made_of = rule(template="k_<<.Group>>_<<.Resource>>", overrides=overrides(ns="namespace"))
    metrics = made(
        (made_of, [shape("up", "ns", "k__pod", "k_apps_deployment", "k_cheese_io_brand", "k__x")])
    )
    # An empty group does not match, and cheese_io is not a group: as in prometheus-adapter.
    assert [str(row.resource) for row in metrics.resources] == ["deployments.apps", "namespaces"]
    metric = metrics.custom[GroupResource("deployments", "apps"), "up"]
    assert (metric.label, metric.namespace_label) == ("k_apps_deployment", "ns")


def test_overrides_name_labels_of_any_resource_and_the_series_label_is_used() -> None:
    labels = overrides(ns="namespace", namespace="namespaces", app="deployment.apps", b="brand")
    metrics = made((rule(overrides=labels), [shape("up", "namespace", "app", "b", "other")]))
    metric = metrics.custom[GroupResource("brands", "cheese.io"), "up"]
    assert (metric.label, metric.namespace_label) == ("b", "namespace")
    assert {str(resource) for resource, _ in metrics.custom} == {
        "namespaces",
        "deployments.apps",
        "brands.cheese.io",
    }


def test_a_resource_that_the_cluster_lacks_costs_its_override_only() -> None:
    metrics = made((rule(overrides=overrides(pod="pod", x="nothing")), [shape("up", "pod", "x")]))
    assert list(metrics.custom) == [(PODS, "up")]
    assert [(label, str(wanted)) for _, label, wanted in metrics.unknown] == [("x", "nothing")]


def test_a_rule_without_labels_for_resources_makes_no_metric() -> None:
    assert not made((rule(), [shape("up", "pod", "namespace")])).custom


def test_the_later_rule_and_the_later_series_count() -> None:
    first = rule(overrides=overrides(pod="pod"), as_="m")
    second = rule(overrides=overrides(instance="pod"), as_="m")
    metrics = made(
        (first, [shape("a", "pod")]), (second, [shape("b", "instance"), shape("c", "instance")])
    )
    metric = metrics.custom[PODS, "m"]
    assert (metric.rule, metric.series, metric.label) == (second, "c", "instance")


def test_discovery_rows_share_one_scope_for_each_resource() -> None:
    metrics = made(
        (
            rule(template="<<.Resource>>"),
            [shape("up", "namespace", "pod", "node", "persistentvolume", "storageclass")],
        )
    )
    assert [(str(row.resource), row.namespaced) for row in metrics.resources] == [
        ("namespaces", False),
        ("nodes", False),
        ("persistentvolumes", False),
        ("pods", True),
        ("storageclasses.storage.k8s.io", True),
    ]
    assert metrics.find(PODS, "up", namespaced=True) is not None
    assert metrics.find(PODS, "up", namespaced=False) is None
    assert metrics.find(GroupResource("node", ""), "up", namespaced=True) is None
    assert metrics.find(GroupResource("pod", ""), "up", namespaced=True) is not None
    assert metrics.find(GroupResource("nothing", ""), "up", namespaced=True) is None


def test_external_metrics_are_found_by_their_name_and_in_lower_case() -> None:
    upper = rule(as_="Lag", overrides=overrides(ns="namespace"))
    metrics = made((upper, [shape("lag", "ns")]), (rule(as_="x"), [shape("up")]), external=True)
    metric = metrics.find_external("lag")
    assert metric is metrics.find_external("Lag")
    assert metric is not None
    assert metric.namespace_label == "ns"
    other = metrics.find_external("x")
    assert other is not None
    assert other.namespace_label is None
    assert metrics.find_external("y") is None


def test_metrics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_METRICS", 3)
    shapes = [shape(f"m{number}", "pod") for number in range(5)]
    labels = overrides(pod="pod")
    metrics = made((rule(overrides=labels), shapes))
    assert (len(metrics.custom), metrics.left_out) == (3, 2)
    outside = made((rule(), shapes), external=True)
    assert (len(outside.external), outside.left_out) == (3, 2)


def body(*rows: object, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": rows, **more}).encode()


def test_series_with_equal_names_and_labels_are_one_shape_at_the_last_place() -> None:
    rows = [{"__name__": name, "pod": pod} for name, pod in (("a", "1"), ("b", "1"), ("a", "2"))]
    shapes = at_once(decode(body(*rows, warnings=["w"])))
    assert shapes.found == (shape("b", "pod"), shape("a", "pod"))
    assert shapes.warnings == ("w",)


def test_malformed_and_surplus_series_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = "x" * (MAX_NAME + 1)
    bad = ({"pod": "1"}, {"__name__": 1}, "x", {"__name__": long}, {"__name__": "a", long: ""})
    shapes = at_once(decode(body({"__name__": "a"}, *bad)))
    assert (shapes.found, shapes.left_out) == ((shape("a"),), len(bad))
    monkeypatch.setattr(series, "MAX_SERIES", 4)
    monkeypatch.setattr(series, "MAX_SHAPES", 2)
    shapes = at_once(decode(body(*({"__name__": f"m{number}"} for number in range(6)))))
    assert (len(shapes.found), shapes.left_out) == (2, 4)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(("__name__", "pod", "a", ",", "},{", ":")),
            st.sampled_from(
                ("},{", '"},{', '\\"},{', "\\", ":", "", "x", '},{"__name__":"x"', '"},{"')
            ),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_a_large_answer_gives_the_same_shapes_as_a_small_one(rows: list[dict[str, str]]) -> None:
    """A label's value may be, contain or end with what is between two series."""
    text = json.dumps(
        {"status": "success", "data": [{"z": "1", **row} for row in rows]}, separators=(",", ":")
    ).encode()
    small = at_once(decode(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series, "MAX_PARTS", 1)
        assert at_once(decode(text)) == small


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (b"<html>", "not_json", "is not the series API's"),
        (b'{"status":"error","errorType":"bad_data","error":"oh"}', "query", "bad_data: oh"),
        (b'{"status":"success","data":{}}', "not_json", "is not the series API's"),
    ],
)
def test_another_answer_is_an_error(answer: bytes, reason: str, text: str) -> None:
    with pytest.raises(SourceError, match=text) as raised:
        at_once(decode(answer))
    assert raised.value.reason == reason


AGGREGATED = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "pods",
                                "singularResource": "pod",
                                "scope": "Namespaced",
                                "responseKind": {"kind": "Pod"},
                            }
                        ],
                    }
                ],
            }
        ],
    },
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {"name": "custom.metrics.k8s.io"}, "versions": [{"version": "v1"}]},
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "deployments",
                                "singularResource": "deployment",
                                "scope": "Namespaced",
                                "responseKind": {"kind": "Deployment"},
                            }
                        ],
                    }
                ],
            },
        ],
    },
}
OLDER = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod"},
            {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod"},
        ]
    },
    "/apis": {
        "groups": [
            {
                "name": "apps",
                "versions": [
                    {"groupVersion": "apps/v1beta1", "version": "v1beta1"},
                    {"groupVersion": "apps/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }
        ]
    },
    "/apis/apps/v1": {
        "resources": [{"name": "deployments", "namespaced": True, "kind": "Deployment"}]
    },
}


@pytest.mark.parametrize(("pages", "failed"), [(AGGREGATED, ()), (OLDER, ("apps/v1beta1",))])
async def test_the_resources_of_the_cluster_are_read_in_both_forms(
    pages: dict[str, object], failed: tuple[str, ...]
) -> None:
    async def ask(path: str, accept: str) -> bytes:
        return msgspec.json.encode(pages[path])

    kinds = await read_kinds(ask)
    assert kinds.failed == failed
    assert kinds.table.kinds == (
        ResourceKind("", "v1", "pods", "pod", "Pod"),
        ResourceKind("apps", "v1", "deployments", "deployment", "Deployment"),
    )


async def test_the_group_versions_of_an_older_cluster_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apidiscovery, "MAX_GROUP_VERSIONS", 1)
    paths: list[str] = []

    async def ask(path: str, accept: str) -> bytes:
        paths.append(path)
        return msgspec.json.encode(OLDER[path])

    kinds = await read_kinds(ask)
    assert [kind.resource for kind in kinds.table.kinds] == ["pods", "deployments"]
    assert paths == ["/api", "/api/v1", "/apis", "/apis/apps/v1"], "not /apis/apps/v1beta1"


async def test_the_resources_of_the_cluster_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_RESOURCES > 1
    monkeypatch.setattr(apidiscovery, "MAX_RESOURCES", 1)

    async def ask(path: str, accept: str) -> bytes:
        return msgspec.json.encode(AGGREGATED[path])

    assert len((await read_kinds(ask)).table.kinds) == 1

"""One rule: filters, names and queries."""

from __future__ import annotations

import pytest

from adapter.answers.rules.compiling import RuleError
from adapter.answers.rules.matchers import valid_name
from adapter.answers.rules.pattern import LONGEST, Pattern, PatternError
from adapter.answers.rules.rule import LONGEST_QUERY, MetricRule, RuleObjects
from adapter.answers.rules.rulefile import Filter, RuleText
from apiservice.errors import BadQuery
from apiservice.labels.selector import EVERYTHING, parse

QUERY = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
TWO = RuleObjects("pod", ["a", "b"], "ns", "namespace")


def rule(**keys: object) -> MetricRule:
    given: dict[str, object] = {"series_query": "up", "metrics_query": QUERY, **keys}
    return MetricRule(RuleText("rules[0]", 1, **given))  # type: ignore[arg-type]  # the keys are its fields


@pytest.mark.parametrize(
    ("matches", "as_", "metric"),
    [
        ("", "", "http_requests_total"),
        ("^(.*)_total$", "", "http_requests"),
        ("^(.*)_total", "${1}_per_second", "http_requests_per_second"),
        ("^http_(.*)_total$", "$1", "requests"),
        ("^http_(.*)_total$", "$1_rate", ""),
        ("^http_(?P<what>.*)_(total)$", "${what}_${2}_$$x$2x", "requests_total_$x"),
        ("requests", "", "requests"),
        ("", "fixed", "fixed"),
        ("^(a)?http", "[$1]$", "[]$"),
    ],
)
def test_the_name_of_a_metric(matches: str, as_: str, metric: str) -> None:
    assert rule(matches=matches, as_=as_).metric("http_requests_total") == metric


def test_filters_and_the_name_decide_which_series_a_rule_admits() -> None:
    made = rule(
        matches="^http_",
        series_filters=(Filter("_total$", positive=True), Filter("bad", False)),
    )
    names = ("http_a_total", "http_a", "http_bad_total", "grpc_a_total")
    assert [made.admits(name) for name in names] == [True, False, False, False]


@pytest.mark.parametrize(
    ("selector", "matchers"),
    [
        ("", ""),
        ("x=1", 'x="1",'),
        ("x!=1", 'x!="1",'),
        ("x in (1)", 'x=~"1",'),
        ("x in (2,1)", 'x=~"1|2",'),
        ("x notin (1)", 'x!~"1",'),
        ("x notin (1,2)", 'x!~"1|2",'),
        ("x", 'x!="",'),
        ("!x", 'x="",'),
        ("z=1,a=2", 'a="2",z="1",'),
    ],
)
def test_a_metric_selector_becomes_matchers(selector: str, matchers: str) -> None:
    wanted = f'sum(up{{{matchers}namespace="ns",pod=~"a|b"}}) by (pod)'
    assert rule().query("up", TWO, parse(selector)) == wanted


@pytest.mark.parametrize("selector", ["x>1", "x<1", "example.com/x=1", "a-b=1"])
def test_a_selector_that_prometheus_cannot_express_is_rejected(selector: str) -> None:
    with pytest.raises(BadQuery):
        rule().query("up", TWO, parse(selector))


def test_one_object_is_matched_exactly_and_root_objects_have_no_namespace() -> None:
    assert rule().query("up", RuleObjects("node", ["n"], None), EVERYTHING) == (
        'sum(up{node="n"}) by (node)'
    )


def test_values_by_name_join_the_values() -> None:
    made = rule(metrics_query='<<index .LabelValuesByName "pod">>/<<.LabelValuesByName.x>>')
    assert made.query("up", TWO, parse("x in (1,2)")) == "a|b/1|2"


@pytest.mark.parametrize(
    ("namespace", "wanted"), [("ns", 'up{x="1",space="ns"}'), (None, 'up{x="1"}')]
)
def test_an_external_query_is_limited_to_the_namespace(namespace: str | None, wanted: str) -> None:
    made = rule(metrics_query="<<.Series>>{<<.LabelMatchers>>}<<.GroupBy>>")
    assert made.external_query("up", namespace, "space", parse("x=1")) == wanted


def test_a_template_that_fails_or_writes_nothing_is_an_error_of_the_request() -> None:
    with pytest.raises(BadQuery, match="empty query"):
        rule(metrics_query="<<if eq .GroupBy `x`>>up<<end>>").query("up", TWO, EVERYTHING)
    with pytest.raises(BadQuery, match="out of range"):
        rule(metrics_query="<<index .GroupBySlice 3>>").query("up", TWO, EVERYTHING)


@pytest.mark.parametrize("name", ['a"} or up{x="', "a b", "", "a\\", "-a", "a" * 254, "ä", "a\n"])
def test_a_name_that_could_change_the_query_is_not_a_name(name: str) -> None:
    assert not valid_name(name)


@pytest.mark.parametrize("name", ["a", "web-0", "system:node", "a.b-c", "node_1"])
def test_names_of_objects_are_names(name: str) -> None:
    assert valid_name(name)


@pytest.mark.parametrize("text", ["(?=a)", "(", r"(a)\1", "a" * (LONGEST + 1)])
def test_an_expression_that_go_does_not_know_is_rejected(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)


def test_an_expression_takes_linear_time() -> None:
    """With a backtracking engine, this would take hours."""
    assert not Pattern("^(a+)+$").matches("a" * 200 + "b")


def test_an_expression_that_needs_much_memory_is_rejected() -> None:
    with pytest.raises(PatternError, match="too large"):
        Pattern(r"(\pL\pM\pN\pS){900}")


def test_a_series_query_is_bounded() -> None:
    with pytest.raises(RuleError, match="more than 65536 characters"):
        rule(series_query="x" * (LONGEST_QUERY + 1))

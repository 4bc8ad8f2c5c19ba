"""Rules that can never answer, and other doubts, each found in the text of the rule alone."""

from __future__ import annotations

import textwrap

import pytest

from adapter.answers.rules.ruleset import rules_of
from adapter.answers.rules.seriesquery import find_stray_sign, matchers_of

PODS = "resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
QUERY = "metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"


def doubts(*rules: str, external: bool = False) -> list[str]:
    key = "externalRules" if external else "rules"
    items = [textwrap.indent(text, "  ").replace("  ", "- ", 1) for text in rules]
    compiled = rules_of(f"{key}:\n{chr(10).join(items)}\n".encode())
    assert len(compiled.external if external else compiled.custom) == len(rules), compiled.problems
    assert not any(problem.broken for problem in compiled.problems)
    return [f"{problem.rule}: {problem.text}" for problem in compiled.problems]


def rule(query: str = "'up'", *more: str, objects: str = PODS, metrics: str = QUERY) -> str:
    return "\n".join([f"seriesQuery: {query}", objects, *more, metrics])


NEVER = {
    "matchers that exclude each other": (
        rule("""'up{job="a",job!="a"}'"""),
        "never answers: the matchers of job exclude each other",
    ),
    "a value that the expression lacks": (
        rule("""'{__name__="up",job="a",job=~"b|c"}'"""),
        "never answers: the matchers of job exclude each other",
    ),
    "two names": (
        rule("""'up{__name__="down"}'"""),
        "never answers: the matchers of __name__ exclude each other",
    ),
    "a filter without the only series": (
        rule("'requests_total'", "seriesFilters: [{isNot: _total$}]"),
        "never answers: seriesFilters or name.matches leave out requests_total, its only series",
    ),
    "an expression without the only series": (
        rule("'requests'", "name: {matches: ^(.*)_total$}"),
        "never answers: seriesFilters or name.matches leave out requests, its only series",
    ),
    "no object": (
        rule(objects="resources: {}"),
        "never answers: resources maps no label to an object",
    ),
    "only labels that the query excludes": (
        rule("""'up{namespace="",pod=""}'"""),
        "never answers: seriesQuery excludes every label that resources maps",
    ),
    "no namespace": (
        rule(objects="resources: {overrides: {pod: {resource: pods}, svc: {resource: service}}}"),
        "never answers: resources maps labels to pods, services, and none to their namespace",
    ),
    "a name that runs on": (
        rule("'a_total'", "name: {matches: ^(.*)_total$, as: $1_per_second}"),
        "never answers: name.as '$1_per_second' gives an empty name: $1_per_second is",
    ),
    "a name that runs on, of many series": (
        rule("""'{__name__=~"^a_"}'""", "name: {matches: ^(.*)_total$, as: $1_per_second}"),
        "never answers: name.as '$1_per_second' gives an empty name",
    ),
    "a name that no path can have": (
        rule("'a'", 'name: {as: "a/b"}'),
        "never answers: 'a/b' is not a name that an HPA can contain",
    ),
    "a percent sign": (
        rule("'a'", 'name: {matches: "^(.*)$", as: "${1}%"}'),
        "never answers: 'a%' is not a name that an HPA can contain",
    ),
}
HINTS = {
    "a group that is missing": (
        rule("'a'", "name: {matches: ^(.*)$, as: gpu_$2}"),
        "name.as refers to 2, which matches lacks",
    ),
    "a group that runs on": (
        rule("'a'", "name: {matches: ^(.*)$, as: gpu_$1_mean}"),
        "name.as refers to 1_mean, which matches lacks: $1_mean is one name; write ${1}_mean",
    ),
    "a selector of everything": (
        rule("'{job=~\".*\"}'"),
        "Prometheus refuses a seriesQuery without a name",
    ),
    "a query without labels": (
        rule(metrics="metricsQuery: sum(rate(up{<<.LabelMatchers>>}[5m]))"),
        "the query drops every label",
    ),
}


@pytest.mark.parametrize(("given", "said"), [*NEVER.values(), *HINTS.values()])
def test_a_doubt_is_named_and_the_rule_stays(given: str, said: str) -> None:
    (doubt,) = doubts(given)
    assert doubt.startswith(f"rules[0]: {said}")


NONE = {
    "a plain rule": rule(),
    "a template": rule(objects="resources: {template: <<.Resource>>}"),
    "many series": rule("""'{__name__=~"^a_",job!=""}'""", "seriesFilters: [{isNot: _total$}]"),
    "a resource that only the cluster knows": rule(
        objects="resources: {overrides: {gw: {group: example.org, resource: gateway}}}"
    ),
    "nodes": rule(objects="resources: {overrides: {node: {resource: node}}}"),
    "a name with groups": rule("'a_total'", "name: {matches: ^(.*)_total$, as: '${1}_rate'}"),
    "the whole name": rule("'a_total'", "name: {as: $0}"),
    "an engine's own syntax": rule("""'{a="b" or c="d"}'"""),
    "a query without an aggregation": rule(metrics="metricsQuery: up{<<.LabelMatchers>>}"),
    "a comment": rule(metrics="metricsQuery: |\n  up{<<.LabelMatchers>>} # (not closed"),
}


@pytest.mark.parametrize("given", NONE.values(), ids=NONE)
def test_a_rule_that_may_answer_is_in_no_doubt(given: str) -> None:
    assert doubts(given) == []


def test_external_rules_need_no_object() -> None:
    assert doubts(rule(objects="resources: {}"), external=True) == []


def test_rules_with_one_name_for_one_object_clash() -> None:
    named = "name: {as: rps}"
    service = "resources: {overrides: {namespace: {resource: namespace}, s: {resource: service}}}"
    pods = "resources: {overrides: {ns: {resource: namespaces}, p: {resource: pods}}}"
    assert doubts(rule("'a'", named), rule("'b'", named, objects=service)) == []
    assert doubts(rule("'a'", named), rule("'b'", named, objects=pods)) == [
        "rules[0]: rules[1] has the name rps too, and counts while it finds series"
    ]
    assert doubts(rule("'rps'"), rule("'b'", named)) == [
        "rules[0]: rules[1] has the name rps too, and counts while it finds series"
    ]
    assert len(doubts(rule("'a'", named), rule("'b'", named), external=True)) == 1


@pytest.mark.parametrize(
    ("query", "sign"),
    [
        ("sum(up{a='b'}) by (pod)", ""),
        ("sum(up{a='b'} by (pod)", "("),
        ("sum(up{a='b',job", "{"),
        ("up{a='b}", "'"),
        ("up}", "}"),
        ("up[5m)", ")"),
        (r'up{a="\"}"}', ""),
        ("up{a=`(`} # )", ""),
    ],
)
def test_a_query_that_is_cut_off_is_found(query: str, sign: str) -> None:
    assert find_stray_sign(query) == sign


MISTAKES = {
    "a cut-off query": ("metricsQuery: 'sum(up{<<.LabelMatchers>>,job'", "metricsQuery is cut off"),
    "a cut-off selector": ("seriesQuery: 'up{a=\"b\"'", "seriesQuery is cut off, or has a stray {"),
    "a function": ("seriesQuery: 'rate(up[1m])'", "seriesQuery has a ( outside of quotes"),
    "a range": ("seriesQuery: 'up{a=\"b\"}[5m]'", "seriesQuery has a [ outside of quotes"),
}


@pytest.mark.parametrize(("line", "said"), MISTAKES.values(), ids=MISTAKES)
def test_what_no_engine_reads_is_a_mistake(line: str, said: str) -> None:
    base = {"seriesQuery": "seriesQuery: up", "metricsQuery": QUERY}
    base[line.partition(":")[0]] = line
    rules = rules_of("rules:\n- {}\n  {}\n  {}\n".format(PODS, *base.values()).encode())
    (problem,) = rules.problems
    assert problem.broken
    assert problem.text.startswith(said)
    assert problem.line == 3 + list(base).index(line.partition(":")[0])


def test_selectors_that_are_not_plain_are_not_judged() -> None:
    for text in (
        "a or b",
        "{a='b' or c='d'}",
        '{"my.metric"}',
        "{a=~'\\\\d'}",
        "{",
        "{a='b' c='d'}",
    ):
        assert matchers_of(text) is None
    assert matchers_of("up{}") == (("__name__", "=", "up"),)

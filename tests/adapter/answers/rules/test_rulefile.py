"""Rules files: a mistake costs its rule, and is named with its line."""

from __future__ import annotations

import pytest

from adapter.answers.rules.filenodes import MAX_ENTRIES
from adapter.answers.rules.rulefile import (
    MAX_BYTES,
    MAX_PROBLEMS,
    MAX_RULES,
    RulesFileError,
    read_rules,
)
from adapter.answers.rules.ruleset import RuleSet, rule_set
from apiservice.provider import GroupResource

GOOD = "- {seriesQuery: up, metricsQuery: up, resources: {template: <<.Resource>>}}\n"


def read(text: str) -> RuleSet:
    return rule_set(read_rules(text.encode()))


def test_every_key_is_read() -> None:
    file = read_rules(
        b"""
rules:
- seriesQuery: '{__name__=~"^a_.*"}'
  seriesFilters: [{is: "^a"}, {isNot: "_total$"}]
  resources:
    template: "kube_<<.Resource>>"
    overrides:
      ns: {resource: namespace}
      app: {group: apps, resource: deployment}
    namespaced: false
  name: {matches: "^a_(.*)$", as: "${1}_b"}
  metricsQuery: sum(<<.Series>>)
externalRules:
- {seriesQuery: up, metricsQuery: up}
"""
    )
    (rule,), (outside,) = file.custom, file.external
    assert not file.problems
    assert (rule.name, rule.line, rule.series_query) == ("rules[0]", 3, '{__name__=~"^a_.*"}')
    assert [(pattern.expression, pattern.positive) for pattern in rule.series_filters] == [
        ("^a", True),
        ("_total$", False),
    ]
    assert rule.overrides == (
        ("ns", GroupResource("namespace", "")),
        ("app", GroupResource("deployment", "apps")),
    )
    assert (rule.template, rule.namespaced) == ("kube_<<.Resource>>", False)
    assert (rule.matches, rule.as_, rule.metrics_query) == (
        "^a_(.*)$",
        "${1}_b",
        "sum(<<.Series>>)",
    )
    assert (outside.name, outside.namespaced, outside.matches, outside.as_) == (
        "externalRules[0]",
        True,
        "",
        "",
    )


@pytest.mark.parametrize(
    ("rule", "line", "text"),
    [
        ("- {seriesQuery: up}", 3, "metricsQuery is missing"),
        ("- {metricsQuery: up}", 3, "seriesQuery is missing"),
        ("- seriesQuery: up\n  metricsQuery: up\n  query: up", 5, "unknown key query"),
        ("- seriesQuery: up\n  seriesQuery: up", 4, "twice"),
        ("- text", 3, "must be a mapping"),
        (
            "- seriesQuery: up\n  metricsQuery: up\n  name: {matches: '(?=x)'}",
            5,
            "is not a regular expression",
        ),
        (
            "- seriesQuery: up\n  metricsQuery: up\n  seriesFilters: [{is: '('}]",
            5,
            "is not a regular expression",
        ),
        ("- seriesQuery: up\n  metricsQuery: <<.Nope>>", 4, "no field .Nope"),
        ("- seriesQuery: up\n  metricsQuery: <<join .GroupBySlice>>", 4, "join is not defined"),
        (
            "- {seriesQuery: up, metricsQuery: up, name: {matches: '(a)(b)'}}",
            3,
            "name.as is missing",
        ),
        (
            "- {seriesQuery: up, metricsQuery: up, resources: {template: static}}",
            3,
            "does not contain <<.Resource>>",
        ),
        ("- {seriesQuery: up, seriesFilters: [{is: a, isNot: b}]}", 3, "either is or isNot"),
        ("- {seriesQuery: up, seriesFilters: {is: a}}", 3, "must be a list"),
        ("- {seriesQuery: up, resources: {overrides: {a: {}}}}", 3, "names no resource"),
        ("- {seriesQuery: up, resources: {namespaced: 'false'}}", 3, "true or false"),
        ("- {seriesQuery: [up]}", 3, "must be a text"),
    ],
)
def test_a_mistake_costs_its_rule_and_is_named_with_its_line(
    rule: str, line: int, text: str
) -> None:
    rules = read(f"rules:\n{GOOD}{rule}\n{GOOD}")
    assert [good.name for good in rules.custom] == ["rules[0]", "rules[2]"]
    (mistake,) = (problem for problem in rules.problems if problem.broken)
    assert (mistake.line, mistake.rule) == (line, "rules[1]")
    assert text in mistake.text
    assert str(mistake).startswith(f"line {line}: rules[1]: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "must be a mapping"),
        ("rules: {a: b}", "rules must be a list"),
        ("rules: [a", "is not YAML"),
        ("rules: []\nrules: []", "given twice"),
        ("a: b\n" + " " * MAX_BYTES, "is larger than"),
        ("rules: " + "[" * 5000, "is not YAML"),
    ],
)
def test_a_file_that_is_not_a_rules_file_is_rejected(text: str, said: str) -> None:
    with pytest.raises(RulesFileError, match=said):
        read(text)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "rules:\n", "rules: []\nexternalRules: null\n"]
)
def test_an_empty_file_has_no_rules(text: str) -> None:
    assert read(text) == RuleSet(custom=[], external=[], problems=())


def test_resource_rules_are_checked_and_reported_as_not_served() -> None:
    rules = read("resourceRules:\n  window: 5m\n  cpu: {containerQuery: a, nodeQuery: b}\n")
    assert rules.resource is None
    (problem,) = rules.problems
    assert not problem.broken
    assert "metrics.k8s.io is not served" in problem.text
    wrong, _ = sorted(read("resourceRules:\n  window: five\n").problems, reverse=True)
    assert (wrong.line, "is not a duration" in wrong.text) == (2, True)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("resourceRules: [a]", 1, "must be a mapping"),
        ("resourceRules:\n  disk: {}", 2, "unknown key disk"),
        ("resourceRules:\n  window: 5 minutes", 2, "is not a duration"),
        ("resourceRules:\n  window: 5s3m", 2, "is not a duration"),
        ("resourceRules:\n  cpu:\n    nodes: a", 3, "unknown key nodes"),
        ("resourceRules:\n  cpu:\n    nodeQuery: <<.Nope>>", 3, "nodeQuery: the template"),
        ("resourceRules:\n  cpu:\n    resources: {template: a}", 3, "<<.Resource>>"),
    ],
)
def test_a_mistake_in_resource_rules_leaves_them_out(text: str, line: int, said: str) -> None:
    rules = rule_set(read_rules(f"{text}\n".encode()), resource_metrics=True)
    assert rules.resource is None
    mistake = next(problem for problem in rules.problems if problem.broken)
    assert mistake.line == line
    assert said in mistake.text


@pytest.mark.parametrize(
    ("window", "milliseconds"),
    [("5m", 300_000), ("1m30s", 90_000), ("1d1ms", 86_400_001), ("0", 0), ("0s", 0)],
)
def test_windows_are_durations_of_prometheus(window: str, milliseconds: int) -> None:
    file = read_rules(f"resourceRules: {{window: {window}}}\n".encode())
    assert file.resource is not None
    assert file.resource.window == milliseconds


def test_an_unknown_key_of_the_file_is_reported() -> None:
    (problem,) = read(f"rules:\n{GOOD}ruls: []\n").problems
    assert (problem.line, problem.rule, problem.broken) == (3, "ruls", False)


def test_rules_entries_and_problems_are_bounded() -> None:
    rules = read("rules:\n" + GOOD * (MAX_RULES + 1))
    assert len(rules.custom) == MAX_RULES
    assert "those after the first" in rules.problems[0].text
    many = ", ".join("{is: a}" for _ in range(MAX_ENTRIES + 1))
    (problem,) = read(f"rules:\n- {{seriesQuery: up, seriesFilters: [{many}]}}\n").problems
    assert "the most are" in problem.text
    labels = ", ".join(f"l{place}: {{resource: pod}}" for place in range(MAX_ENTRIES + 1))
    (problem,) = read(f"rules:\n- {{resources: {{overrides: {{{labels}}}}}}}\n").problems
    assert "the most are" in problem.text
    assert len(read_rules(b"rules:\n" + b"- x\n" * 500).problems) == MAX_PROBLEMS

"""Anything that a rule, a template or a file contains costs that rule alone, and is one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.rules import doubts, promql, promqltokens, registry, rulefile, ruleset
from adapter.answers.rules.gotemplate.errors import TemplateError, UnsupportedError
from adapter.answers.rules.gotemplate.parser import MOST_VARIABLES
from adapter.answers.rules.gotemplate.template import Arguments, GoTemplate
from adapter.answers.rules.hiding import find_hidden_metrics
from adapter.answers.rules.kinds import BUILT_IN, KindTable
from adapter.answers.rules.promql import ObjectKey
from adapter.answers.rules.promqltokens import NotWidenedError
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import MAX_BYTES, RulesFileError, RuleText
from adapter.answers.rules.ruleset import RuleSet, rules_of
from adapter.answers.rules.series import SeriesShape
from adapter.answers.rules.widening import why_narrow
from adapter.pipeline.catalog import Catalog
from apiservice.runtime.steps import at_once
from tests.adapter.answers.rules.test_gotemplate import ARGUMENTS, WRITTEN
from tests.adapter.fuzzing import bent

FILES = [
    path.read_bytes()
    for path in sorted((Path(__file__).parents[3] / "e2e" / "rulefiles").glob("*.yaml"))
]
CATALOG = Catalog()
QUERIES = sorted({rule.text.metrics_query for data in FILES for rule in rules_of(data).custom})
TEMPLATES = [*WRITTEN, *QUERIES]
MARKS = ["<<", ">>", "<<.LabelMatchers>>", "{", "}", "(", ")", ",", '"', "'", "=", "=~", "[5m]"]
MARKS += [
    "by",
    "offset",
    "|",
    "`",
    "9" * 5_000,
    "1e",
    "$x",
    ":=",
    "end",
    "\\",
    "-",
    " by (",
    "\ud800",
]


def rule_of(query: str) -> RuleText:
    return RuleText("rules[0]", 1, series_query="up", metrics_query=query)


def compiled(data: bytes) -> RuleSet | None:
    """Compile a file as `serve` does; None if it is rejected as a whole."""
    rules: RuleSet | None = None
    texts: list[str] = []
    try:
        rules = rules_of(data, resource_metrics=True)
    except RulesFileError as error:
        texts.append(str(error))
    else:
        texts += [problem.text for problem in rules.problems]
        texts += [why_narrow(rule) for rule in rules.custom]
        texts += [
            hidden.names for hidden in find_hidden_metrics(rules, CATALOG.metrics, CATALOG.series)
        ]
    assert not any("\n" in text or "report it" in text for text in texts)
    return rules


def prefixes(text: str) -> Iterator[str]:
    return (text[:end] for end in range(len(text) + 1))


@pytest.mark.parametrize("query", QUERIES)
def test_every_prefix_of_a_query_is_a_rule_or_a_problem(query: str) -> None:
    problems: list[rulefile.RuleProblem] = []
    made = ruleset.compile_rules([rule_of(cut) for cut in prefixes(query)], problems)
    assert len(made) + len(problems) == len(query) + 1
    assert not any("report it" in why_narrow(rule) for rule in made)
    assert not any("report it" in problem.text for problem in problems)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_prefix_of_a_template_is_written_or_an_error(template: str) -> None:
    for cut in prefixes(template):
        try:
            text = GoTemplate(cut).execute(ARGUMENTS)
        except TemplateError as error:
            text = str(error)
        assert "report it" not in text


@given(
    st.sampled_from(TEMPLATES),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), st.sampled_from(MARKS)), max_size=5),
)
def test_a_bent_template_is_a_rule_or_a_problem(
    template: str, bends: list[tuple[float, int, str]]
) -> None:
    for share, length, mark in bends:
        start = round(share * len(template))
        template = template[:start] + mark + template[start + length :]
    problems: list[rulefile.RuleProblem] = []
    made = ruleset.compile_rules([rule_of(template)], problems)
    assert len(made) + len(problems) == 1
    assert not any("report it" in why_narrow(rule) for rule in made)
    assert not any("report it" in problem.text for problem in problems)


@given(bent(FILES))
def test_a_bent_file_gives_rules_or_one_line(data: bytes) -> None:
    compiled(data)


@pytest.mark.parametrize("data", FILES, ids=range(len(FILES)))
def test_every_tenth_prefix_of_a_file_gives_rules_or_one_line(data: bytes) -> None:
    step = max(1, len(data) // 150)
    for end in range(0, len(data), step):
        compiled(data[:end])


COST = {
    "a selector that is cut off": "'sum(up{<<.LabelMatchers>>,job'",
    "a number of 5,000 digits": "'<<print " + "9" * 5_000 + ">>'",
    "a fraction of 5,000 digits": "'<<" + "9" * 5_000 + ".5>>'",
    "a tag without a value": "!!int ''",
    "doubled": '"<<$x := `aaaaaaaaaaaaaaaaaaaaaa`>>' + "<<$x = print $x $x>>" * 28 + '"',
    "doubled by printf": '"<<$x := `aa`>>' + "<<$x = printf `%s%q` $x $x>>" * 28 + '"',
    "long calls": '"<<$x := `' + "a" * 1000 + "`>>" + "<<print " + "$x " * 9000 + '>>"',
    "empty loops": '"' + "<<range .GroupBySlice>>" * 30 + "<<end>>" * 30 + '"',
    "variables": '"' + "<<$x := 1>>" * 5000 + '"',
    "deep parentheses": '"<<' + "(" * 5000 + ')>>"',
    "deep queries": '"' + "(" * 30_000 + '"',
}


@pytest.mark.parametrize("query", COST.values(), ids=COST)
def test_a_hostile_query_costs_its_rule_alone(query: str) -> None:
    good = "- {seriesQuery: up, metricsQuery: up}\n"
    rules = compiled(f"rules:\n{good}- seriesQuery: up\n  metricsQuery: {query}\n{good}".encode())
    assert rules is not None
    assert {rule.name for rule in rules.custom} >= {"rules[0]", "rules[2]"}


def test_what_a_function_returns_is_bounded() -> None:
    doubled = "<<$x := .Series>>" + "<<$x = print $x $x>>" * 28
    with pytest.raises(UnsupportedError, match="print makes more than"):
        GoTemplate(doubled).execute(Arguments(Series="series"))


def test_calls_and_the_texts_that_they_read_are_steps() -> None:
    template = GoTemplate("<<if eq .Series `x`>>a<<end>>" * 100)
    assert template.execute(Arguments(Series="s" * 2000)) == ""
    with pytest.raises(UnsupportedError, match="steps"):
        template.execute(Arguments(Series="s" * 20_000))


def test_variables_are_bounded() -> None:
    good = "".join(f"<<$x{number} := 1>>" for number in range(MOST_VARIABLES - 1))
    assert GoTemplate(good).execute(Arguments()) == ""
    with pytest.raises(UnsupportedError, match="variables"):
        GoTemplate(good + "<<$y := 1>>")


def test_aliases_do_not_multiply_a_rule() -> None:
    long = "a" * 60_000
    text = f"rules:\n- &a {{seriesQuery: up, metricsQuery: {long}}}\n" + "- *a\n" * 900
    rules = rules_of(text.encode())
    assert len(rules.custom) == MAX_BYTES // 60_002
    (mistake,) = (problem for problem in rules.problems if problem.broken)
    assert "aliases make this list longer" in mistake.text


def test_merge_keys_are_the_keys_of_the_rule() -> None:
    text = """
rules:
- &base {seriesQuery: up, metricsQuery: up, name: {as: a}, resources: {template: <<.Resource>>}}
- {<<: *base, name: {as: b}}
- <<: [*base]
  seriesQuery: down
  name: {as: c}
"""
    rules = rules_of(text.encode())
    assert [(rule.text.as_, rule.selector) for rule in rules.custom] == [
        ("a", "up"),
        ("b", "up"),
        ("c", "down"),
    ]
    assert not rules.problems


def test_a_mistake_of_the_program_costs_the_rule_and_is_named() -> None:
    text = b"rules:\n- {seriesQuery: a, metricsQuery: up}\n- {seriesQuery: b, metricsQuery: up}\n"

    def made(text: RuleText) -> MetricRule:
        if text.series_query == "a":
            raise ZeroDivisionError("why")
        return MetricRule(text)

    with mock.patch.object(ruleset, "MetricRule", made):
        rules = rules_of(text)
    assert [rule.name for rule in rules.custom] == ["rules[1]"]
    (mistake,) = (problem for problem in rules.problems if problem.broken)
    assert (mistake.line, mistake.rule, mistake.broken) == (2, "rules[0]", True)
    assert "fails on it (ZeroDivisionError: why); please report it" in mistake.text


def test_a_mistake_of_the_program_in_a_file_rejects_the_file() -> None:
    with (
        mock.patch.object(ruleset, "rule_set", side_effect=KeyError("x")),
        pytest.raises(RulesFileError, match="KeyError"),
    ):
        rules_of(b"rules: []")


def test_a_mistake_of_the_program_about_doubts_keeps_the_rule() -> None:
    with mock.patch.object(doubts, "matchers_of", side_effect=IndexError("list index")):
        rules = rules_of(b"rules:\n- {seriesQuery: a, metricsQuery: up}\n")
    assert len(rules.custom) == 1
    (problem,) = rules.problems
    assert (problem.broken, "IndexError" in problem.text) == (False, True)


def test_a_mistake_of_the_program_while_widening_keeps_the_rule() -> None:
    (made,) = rules_of(b"rules:\n- {seriesQuery: a, metricsQuery: up}\n").custom
    with mock.patch.object(promqltokens, "tokens", side_effect=IndexError("list index")):
        assert "IndexError" in why_narrow(made)


def test_a_mistake_of_the_program_with_series_costs_the_rule() -> None:
    rules = rules_of(
        b"""
rules:
- {seriesQuery: a, metricsQuery: up, resources: {overrides: {pod: {resource: pod}}}}
- {seriesQuery: b, metricsQuery: up, resources: {overrides: {pod: {resource: pod}}}}
"""
    ).custom
    shapes = [[SeriesShape(name, frozenset({"pod"}))] for name in ("a", "b")]
    with mock.patch.object(rules[0], "metric", side_effect=OverflowError("big")):
        metrics = at_once(
            registry.build(list(zip(rules, shapes, strict=True)), [], KindTable(BUILT_IN))
        )
    assert {name for _, name in metrics.custom} == {"b"}
    ((failed, why),) = metrics.failed
    assert failed is rules[0]
    assert "OverflowError" in why


def test_a_query_that_ends_in_a_selector_is_not_widened() -> None:
    with pytest.raises(NotWidenedError, match="ends too early"):
        promql.widen_query(f"sum(up{{{promql.SENTINEL},job", ObjectKey("pod", "namespace"))

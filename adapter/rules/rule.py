"""A rule that is ready for use: its expressions and templates are compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from adapter.rules import matchers
from adapter.rules.compiling import (
    EXAMPLE,
    LABEL_EXAMPLE,
    RuleError,
    label_pattern_of,
    pattern_of,
    template_of,
)
from adapter.rules.gotemplate.errors import TemplateError
from adapter.rules.gotemplate.nodes import Node
from adapter.rules.gotemplate.template import Arguments, GoTemplate
from adapter.rules.guard import unexpected
from adapter.rules.pattern import Pattern
from adapter.rules.resourcerule import ResourceRules, compile_resource_rules
from adapter.rules.rulefile import (
    RuleProblem,
    RulesFile,
    RulesFileError,
    RuleText,
    read_rules,
)
from apiservice.errors import BadQuery
from apiservice.labels.selector import Selector

LONGEST_QUERY: Final = 64 << 10
"""Characters of a series query."""


class RuleObjects(NamedTuple):
    """The objects that a query is about."""

    label: str
    """The label with their names."""
    names: Sequence[str]
    namespace: str | None
    """None if they are not in a namespace."""
    namespace_label: str = ""


class MetricRule:
    """A compiled rule.

    Raises:
        RuleError: at construction, if an expression or template is invalid.
    """

    def __init__(self, text: RuleText) -> None:
        self.text = text
        self.name = text.name
        self.selector = text.series_query
        if not text.series_query.strip():
            raise RuleError("seriesQuery", "seriesQuery is missing")
        if len(text.series_query) > LONGEST_QUERY:
            raise RuleError("seriesQuery", f"seriesQuery has more than {LONGEST_QUERY} characters")
        if not text.metrics_query.strip():
            raise RuleError("metricsQuery", "metricsQuery is missing")
        self._filters = [
            (pattern_of("seriesFilters", each.expression), each.positive)
            for each in text.series_filters
        ]
        self._matches = pattern_of("name", text.matches or ".*")
        if text.matches:
            self._filters.append((self._matches, True))
        self._as = text.as_ or self._usual_name()
        self._query = template_of("metricsQuery", text.metrics_query, EXAMPLE)
        self.label_template: GoTemplate | None = None
        self.label_pattern: Pattern | None = None
        if text.template:
            self.label_template = template_of("resources", text.template, LABEL_EXAMPLE)
            self.label_pattern = label_pattern_of(self.label_template)

    def _usual_name(self) -> str:
        if self._matches.groups > 1:
            raise RuleError(
                "name", "name.as is missing, and name.matches has more than one capture group"
            )
        return "$1" if self._matches.groups else "$0"

    def admits(self, series: str) -> bool:
        """Return whether the filters let a series' name through."""
        return all(pattern.matches(series) == positive for pattern, positive in self._filters)

    def metric(self, series: str) -> str:
        """Return the API name of a series' metric; empty if it has none."""
        captures = self._matches.captures(series)
        return "" if captures is None else captures.expand(self._as)

    def query(self, series: str, objects: RuleObjects, selector: Selector) -> str:
        """Return the query for the metric of objects.

        Raises:
            BadQuery: PromQL cannot express the selector, or the template fails.
        """
        expressions, values = _requirements(selector)
        if objects.namespace is not None:
            label = objects.namespace_label
            expressions.append(matchers.matcher(label, "=", objects.namespace))
            values[label] = objects.namespace
        expressions.append(matchers.of_names(objects.label, objects.names))
        values[objects.label] = "|".join(objects.names)
        return self._execute(series, expressions, values, [objects.label])

    def external_query(
        self, series: str, namespace: str | None, label: str, selector: Selector
    ) -> str:
        """Return the query for an external metric; ``namespace`` is None if it is not limited.

        Raises:
            BadQuery: as for :meth:`query`.
        """
        expressions, values = _requirements(selector)
        if namespace is not None:
            expressions.append(matchers.matcher(label, "=", namespace))
            values[label] = namespace
        return self._execute(series, expressions, values, [])

    @property
    def template_nodes(self) -> Sequence[Node]:
        """The nodes of ``metricsQuery``."""
        return self._query.nodes

    def rendered(self, series: str, expressions: str, label: str) -> str:
        """Return the query for objects with a text in place of the label matchers.

        Raises:
            BadQuery: the template fails.
        """
        return self._execute(series, [expressions], {}, [label])

    def _execute(
        self, series: str, expressions: list[str], values: dict[str, str], group_by: list[str]
    ) -> str:
        arguments = Arguments(
            Series=series,
            LabelMatchers=",".join(expressions),
            LabelValuesByName=values,
            GroupBy=",".join(group_by),
            GroupBySlice=group_by,
        )
        try:
            query = self._query.execute(arguments)
        except TemplateError as error:
            raise BadQuery(f"{self.name}: metricsQuery: {error}") from None
        if not query:
            raise BadQuery(f"{self.name}: metricsQuery gives an empty query")
        return query


def _requirements(selector: Selector) -> tuple[list[str], dict[str, str]]:
    expressions: list[str] = []
    values: dict[str, str] = {}
    for requirement in selector.requirements:
        expression, value = matchers.of_requirement(requirement)
        expressions.append(expression)
        values[requirement.key] = value
    return expressions, values


def compile_rules(texts: Sequence[RuleText], problems: list[RuleProblem]) -> list[MetricRule]:
    """Return the rules that can be used, and add what is wrong with the others to ``problems``."""
    rules: list[MetricRule] = []
    for text in texts:
        try:
            with unexpected(RuleError, partial(RuleError, "")):
                rules.append(MetricRule(text))
        except RuleError as error:
            line = text.lines.get(error.key, text.line)
            problems.append(RuleProblem(line, text.name, str(error)))
    return rules


class RuleSet(NamedTuple):
    """The rules of a file, and what is wrong with it."""

    custom: Sequence[MetricRule] = ()
    external: Sequence[MetricRule] = ()
    problems: Sequence[RuleProblem] = ()
    resource: ResourceRules | None = None
    """``resourceRules``; None if they are not served."""


def rule_set(file: RulesFile, *, resource_metrics: bool = False) -> RuleSet:
    """Return the usable rules of a file.

    Args:
        file: as read.
        resource_metrics: whether ``resourceRules`` are served.
    """
    problems = list(file.problems)
    custom = compile_rules(file.custom, problems)
    external = compile_rules(file.external, problems)
    resource = None
    if resource_metrics:
        resource = compile_resource_rules(file, problems)
    elif file.has_resource_rules:
        problems += _not_served(file)
    return RuleSet(custom, external, tuple(sorted(problems)), resource)


def rules_of(data: bytes, *, resource_metrics: bool = False) -> RuleSet:
    """Return the usable rules of a file's content.

    Raises:
        RulesFileError: it cannot be used at all.
    """
    with unexpected(RulesFileError):
        return rule_set(read_rules(data), resource_metrics=resource_metrics)


def _not_served(file: RulesFile) -> Iterator[RuleProblem]:
    """Yield what is wrong with ``resourceRules`` that are not served."""
    line = file.resource_line
    text = (
        "metrics.k8s.io is not served: set rules.resource_metrics to true, or keep metrics-server "
        "for kubectl top and for HPAs on cpu and memory"
    )
    yield RuleProblem(line, "resourceRules", text, broken=False)
    if file.resource_problem is not None:
        yield file.resource_problem._replace(broken=False)
